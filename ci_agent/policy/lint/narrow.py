"""Patterns that are about less than they seem to be: deny rules that end too early, spellings of other tools."""

import re
from collections.abc import Iterator
from typing import Final

from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.lint.finding import LintFinding, Subject, Witness, warning
from ci_agent.policy.lint.samples import command_call, command_patterns, path_glob, sample_words
from ci_agent.policy.matchers.command_patterns import CommandPattern
from ci_agent.policy.programs.load import find_profile, load_profile
from ci_agent.policy.rules import Rule
from ci_agent.strict_yaml import quote

_FOLDER_TOOLS: Final = ("read", "write", "edit", "grep")
"""Tools that reach what is in a folder."""

_RUN_SCRIPTS_BY_NAME: Final = frozenset({"bun", "pnpm", "yarn"})
"""`yarn test:*` is about the project's scripts `test:unit`, `test:web`..."""


def find_narrow_patterns(subject: Subject) -> Iterator[LintFinding]:
    for rule in subject.own_rules:
        yield from _foreign(rule)
        yield from _words_of_one(rule)
        if rule.effect == "deny" and not (rule.has or rule.args or rule.paths or rule.host):
            yield from _short_commands(subject, rule)
            yield from _folders_alone(subject, rule)


def _foreign(rule: Rule) -> Iterator[LintFinding]:
    """Spellings that mean something in other tools' patterns, and nothing that a command could be here."""
    for pattern in command_patterns(rule):
        meant = _meant(pattern)
        if meant is not None:
            message = f"{rule.id}: {quote(pattern.text)} is about no command that anybody types: write {quote(meant)}"
            yield LintFinding("error", "matches-nothing", message, rule.id, rule.source)


def _words_of_one(rule: Rule) -> Iterator[LintFinding]:
    """`[git, status]` is two commands, and was probably meant as one of two words."""
    texts = [pattern.text for pattern in command_patterns(rule)]
    first = texts[0] if texts else ""
    for word in texts[1:]:
        if find_profile(word) is None and _is_subcommand([first, word]):
            meant = f"{first} {word}"
            message = f"{quote(word)} stands as a command of its own: write {quote(meant)} if it belongs to {first}"
            yield warning("matches-nothing", rule, message)
            return


def _meant(pattern: CommandPattern) -> str | None:
    """How a pattern in another tool's style is written here; None when it is in none."""
    words = [token.text for token in pattern.tokens]
    if not words:
        return None
    if not pattern.rest and words[-1].endswith(":*") and _is_prefix_of_words(words):
        return " ".join([*words[:-1], words[-1].removesuffix(":*"), "**"])
    if words[0].startswith(("^", "/")) and words[-1].endswith(("$", "/")) and re.search(r"\.[*+]", pattern.text):
        plain = re.sub(r"\.[*+]", "", pattern.text.strip("^$/")).split()
        return " ".join([*plain, "**"])
    return None


def _is_prefix_of_words(words: list[str]) -> bool:
    """Whether the word before `:*` is a program, a subcommand or an option, to which nobody adds a colon."""
    last = words[-1].removesuffix(":*")
    return len(words) == 1 or last.startswith("-") or _is_subcommand([*words[:-1], last])


def _is_subcommand(words: list[str]) -> bool:
    profile = None if words[0] in _RUN_SCRIPTS_BY_NAME else find_profile(words[0])
    for word in words[1:]:
        section = profile.commands.get(word) if profile else None
        if section is None:
            return False
        profile = load_profile(section)
    return True


def _short_commands(subject: Subject, rule: Rule) -> Iterator[LintFinding]:
    for pattern in command_patterns(rule):
        if pattern.rest or not pattern.tokens:
            continue
        bare = ["".join(token.alternatives[0].chunks) for token in pattern.tokens]
        calls = [command_call([*words, "x"]) for words in (bare, sample_words(pattern)) if all(words)]
        witness = subject.first_allowed(calls)
        if witness is not None:
            message = f"{quote(pattern.text)} forbids no command with further words: write {quote(_longer(pattern))}"
            yield warning("narrow-deny", rule, message, witness)


def _longer(pattern: CommandPattern) -> str:
    """With any further words; `push*` of one who meant that becomes `push`."""
    *words, last = (token.text for token in pattern.tokens)
    return " ".join([*words, last.rstrip("*") or last, "**"]) if last != "*" else " ".join([*words, "**"])


def _folders_alone(subject: Subject, rule: Rule) -> Iterator[LintFinding]:
    tools = [tool for tool in _FOLDER_TOOLS if tool in rule.tools]
    texts = rule.path or ()
    for text in texts if tools else ():
        literal = not set(text) & set("*{")
        if literal and path_glob(text).anchor == "workspace" and subject.is_folder(text):
            inside = f"{text.rstrip('/')}/x"
            witness = subject.first_allowed([Witness(tools[0], expand_call(tools[0], inside))])
            if witness is not None:
                wanted = f'["{text}", "{text.rstrip("/")}/**"]'
                message = f"{quote(text)} is a folder, and what is in it is not forbidden: write {wanted}"
                yield warning("narrow-deny", rule, message, witness)
