"""Rules that reach further than they look."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ci_agent.policy.lint.finding import LintFinding, Subject, Witness, warning
from ci_agent.policy.lint.samples import command_call, command_patterns, fill, sample_words, tool_names
from ci_agent.policy.matchers.command_patterns import CommandPattern, TokenPattern, parse_env_pattern
from ci_agent.policy.matchers.wildcards import Wildcard
from ci_agent.policy.rules import Rule
from ci_agent.steering_names import changes_what_runs
from ci_agent.strict_yaml import quote

_ANY_COMMAND: Final = ("some-program",)

_CODE: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "fish"), (["-c", "id"], ["x.sh"])),
    **dict.fromkeys(("python", "python3", "pypy3"), (["-c", "print(1)"], ["x.py"], ["-m", "x"], ["-"])),
    **dict.fromkeys(("node", "nodejs"), (["-e", "1"], ["x.js"], ["-"])),
    **dict.fromkeys(("deno", "bun"), (["eval", "1"], ["run", "x.ts"], ["x.ts"])),
    **dict.fromkeys(("perl", "ruby", "lua", "php", "Rscript"), (["-e", "1"], ["-r", "1"], ["x"])),
    **dict.fromkeys(("awk", "gawk", "mawk"), (['BEGIN{system("id")}'],)),
    **dict.fromkeys(("env", "xargs", "sudo", "doas", "nohup", "timeout", "nice", "exec"), (["id"], ["5", "id"])),
    **dict.fromkeys(("eval", "source", "."), (["id"], ["x.sh"])),
    **dict.fromkeys(("npx", "bunx", "uvx", "pipx"), (["x"], ["run", "x"])),
    **dict.fromkeys(("docker", "podman"), (["run", "x"], ["exec", "x", "id"])),
    "find": ([".", "-exec", "id", ";"],),
    "ssh": (["x", "id"],),
    "npm": (["exec", "x"],),
    "make": (["--eval=$(shell id)"], ["SHELL=x"]),
    "git": (["-c", "core.pager=id", "log"], ["x"]),
}
"""Arguments with which a program runs whatever it is told to."""


def find_wide_grants(subject: Subject) -> Iterator[LintFinding]:
    for rule in subject.own_rules:
        if rule.effect == "allow":
            yield from _grants_everything(subject, rule)
            for pattern in command_patterns(rule):
                yield from _runs_any_code(subject, rule, pattern)
                yield from _no_word_boundary(subject, rule, pattern)
            yield from _environment(subject, rule)


def _grants_everything(subject: Subject, rule: Rule) -> Iterator[LintFinding]:
    if any(not pattern.tokens for pattern in command_patterns(rule)):
        yield from _if_allowed(subject, rule, "grants every command", [command_call(_ANY_COMMAND)])
    for tool in tool_names(rule):
        if tool == "x__x" and not rule.args:
            yield from _if_allowed(subject, rule, "grants every tool of every server", [Witness(tool, {})])
        if tool == "fetch" and (rule.host is None or "**" in rule.host):
            witness = Witness(tool, {"url": "https://example.com/?q=what-was-read"})
            yield from _if_allowed(subject, rule, "grants every public host, also to send things to", [witness])


def _if_allowed(subject: Subject, rule: Rule, message: str, witnesses: Sequence[Witness]) -> Iterator[LintFinding]:
    witness = subject.first_allowed(witnesses)
    if witness:
        yield warning("grants-everything", rule, message, witness)


def _runs_any_code(subject: Subject, rule: Rule, pattern: CommandPattern) -> Iterator[LintFinding]:
    for program in _programs(pattern):
        commands = [[program, *arguments] for arguments in _CODE[program]]
        witness = subject.first_allowed([command_call(words) for words in commands if _fits(pattern, words)])
        if witness:
            yield warning("runs-any-code", rule, f"{quote(pattern.text)} lets {program} run anything", witness)


def _programs(pattern: CommandPattern) -> list[str]:
    """The interpreters that the first word spells."""
    if not pattern.tokens or not (pattern.rest or len(pattern.tokens) > 1):
        return []
    return [
        wild.literal for wild in pattern.tokens[0].alternatives if wild.literal is not None and wild.literal in _CODE
    ]


def _fits(pattern: CommandPattern, words: Sequence[str]) -> bool:
    size = len(pattern.tokens)
    fits = all(token.matches(word) for token, word in zip(pattern.tokens, words, strict=False))
    return fits and (len(words) == size or (pattern.rest and len(words) > size))


def _no_word_boundary(subject: Subject, rule: Rule, pattern: CommandPattern) -> Iterator[LintFinding]:
    words = sample_words(pattern)
    for index, token in enumerate(pattern.tokens):
        wild = _open_ended(token)
        if wild is None:
            continue
        witness = command_call([*words[:index], fill(wild), *words[index + 1 :]])
        if subject.allows(witness):
            meant = wild.prefix
            message = f"{quote(token.text)} is about every word that begins with {quote(meant)}"
            yield warning("no-word-boundary", rule, message, witness)


def _open_ended(token: TokenPattern) -> Wildcard | None:
    """An alternative whose last `*` continues a word (`git*`, `test*`) instead of beginning one (`src/*`, `--x=*`)."""
    for wild in token.alternatives:
        *_, before, after = ("", *wild.chunks)
        if not after and before[-1:].isalnum() and len(wild.chunks) > 1:
            return wild
    return None


def _environment(subject: Subject, rule: Rule) -> Iterator[LintFinding]:
    """No wildcard covers such a variable."""
    for text in rule.env or ():
        for name in sorted(filter(changes_what_runs, parse_env_pattern(text).literals)):
            calls = [command_call(words, assignment=f"{name}=x") for words in _commands(rule)]
            witness = subject.first_allowed(calls)
            if witness:
                yield warning("environment", rule, f"{name} makes programs run something else", witness)


def _commands(rule: Rule) -> list[list[str]]:
    return [sample_words(pattern) or list(_ANY_COMMAND) for pattern in command_patterns(rule)]
