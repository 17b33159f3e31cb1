"""What a deny rule forbids, in other words: it must stay forbidden."""

import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from ci_agent.policy.compiled.rule_index import SHARED_DENIES
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.lint.samples import (
    command_call,
    command_patterns,
    fill,
    sample_calls,
    sample_paths,
    sample_words,
    tool_names,
)
from ci_agent.policy.matchers.command_patterns import parse_has_token
from ci_agent.policy.rules import Rule
from ci_agent.policy.variants.arguments import other_spellings
from ci_agent.policy.variants.command_words import file_effects, simple_commands, with_word
from ci_agent.policy.variants.options import harmless_options
from ci_agent.policy.variants.variant import Variant
from ci_agent.urls import InvalidUrlError, parse_url

_MAX_PATHS: Final = 4
"""Of a rule with many globs these many stand for all when they are tried in commands."""

_LINES: Final = (
    *("/usr/bin/COMMAND", "./COMMAND", "''COMMAND", "\\COMMAND", "command COMMAND", "env COMMAND", "timeout 5 COMMAND"),
    *("nohup COMMAND", "(COMMAND)", "true && COMMAND", "! COMMAND", "if COMMAND; then true; fi", "echo $(COMMAND)"),
    *("f() { COMMAND; }; f", "COMMAND \\\n", "COMMAND &", "$Y COMMAND"),
    *("bash -c QUOTED", "eval QUOTED", "xargs COMMAND"),
)
"""In each of them bash runs COMMAND, with at most some words behind it."""


def forbidden_samples(rule: Rule) -> Iterator[Witness]:
    """Calls that a deny rule may be about; what decides them must be asked."""
    yield from sample_calls(rule)
    for token in rule.has or ():
        told = fill(parse_has_token(token).alternatives[0])
        yield from (command_call([*sample_words(pattern), told]) for pattern in command_patterns(rule))


def deny_variants(site: Site, rule: Rule, call: Witness) -> Iterator[Variant]:
    """For a call that the rule forbids."""
    if call.tool in FILE_TOOLS and isinstance(call.arguments.get("path"), str):
        yield from (_with(call, "path", text) for text in _other_paths(call.arguments["path"]))
    elif call.tool == "fetch" and isinstance(call.arguments.get("url"), str):
        yield from (_with(call, "url", text) for text in _other_urls(call.arguments["url"]))
    elif call.tool == "bash" and isinstance(call.arguments.get("command"), str):
        yield from (_with(call, "command", text) for text in _other_lines(site, rule, call.arguments["command"]))
    for hostile in other_spellings(rule, call):
        yield Variant("other spelling", hostile)


def forbidden_files(site: Site, rule: Rule, commands: Iterable[Sequence[str]]) -> Iterator[Variant]:
    """A file that the rule forbids, where an allowed simple command would take it for its own."""
    effects = {effect for effect, tools in SHARED_DENIES.items() if not set(tools).isdisjoint(tool_names(rule))}
    if not rule.path or rule.args or not effects:
        return
    paths = [path for path in islice(sample_paths(rule.path), _MAX_PATHS) if not path.startswith("~")]
    for words in commands:
        for line in (*_redirected(words, paths, effects), *_as_operand(site, words, paths, effects)):
            yield Variant("other spelling", Witness("bash", {"command": line}))


def _with(call: Witness, name: str, text: str) -> Variant:
    return Variant("other spelling", Witness(call.tool, {**call.arguments, name: text}))


def _other_paths(path: str) -> Iterator[str]:
    """The same file, on systems that fold names too, without asking the disk."""
    yield from (path.upper(), path.swapcase(), unicodedata.normalize("NFD", path))
    if not path.startswith(("/", "~")):
        yield from (f"./{path}", f"y/../{path}", f".//{path}")
    folder, slash, name = path.rpartition("/")
    yield f"{folder}{slash}./{name}"


def _other_urls(text: str) -> Iterator[str]:
    try:
        url = parse_url(text)
    except InvalidUrlError:
        return
    host = f"[{url.host}]" if ":" in url.host else url.host
    port = "" if url.port is None else f":{url.port}"
    for authority in (host.upper(), f"{host}.", f"{host}{port}", f"y@{host}", f"{host}\\@y", f"{host}%2e"):
        yield f"{url.scheme}://{authority}{url.rest}"
    if url.address is not None and url.address.version == 4:
        for spelling in (str(int(url.address)), hex(int(url.address)), f"[::ffff:{url.address}]"):
            yield f"{url.scheme}://{spelling}{url.rest}"


def _other_lines(site: Site, rule: Rule, line: str) -> Iterator[str]:
    commands = simple_commands(site, line)
    if len(commands) != 1 or shlex.split(line) != list(commands[0]):
        return
    for words in (list(commands[0]), *_told_otherwise(rule, commands[0])):
        command = shlex.join(words)
        for template in _LINES:
            yield template.replace("COMMAND", command).replace("QUOTED", shlex.quote(command))
    words = list(commands[0])
    yield shlex.join([words[0].upper(), *words[1:]])
    for at, option in harmless_options(words):
        yield shlex.join([*words[:at], option, *words[at:]])


def _told_otherwise(rule: Rule, words: Sequence[str]) -> Iterator[list[str]]:
    """The command with an option that the rule looks for in other spellings."""
    options = {wild.literal for text in rule.has or () for wild in parse_has_token(text).alternatives}
    for at, word in enumerate(words):
        if word in options:
            for told in _spellings(word):
                yield [*words[:at], told, *words[at + 1 :]]


def _spellings(option: str) -> Iterator[str]:
    if option.startswith("--"):
        yield from (f"{option}=y", option[:-1])
    elif option.startswith("-") and len(option) == len("-f"):
        yield from (f"-q{option[1]}", f"{option}q")


def _redirected(words: Sequence[str], paths: Sequence[str], effects: set[FileEffect]) -> Iterator[str]:
    operators = [*["<"] * ("read" in effects), *[">", ">>"] * ("write" in effects)]
    yield from (f"{shlex.join(words)} {operator} {shlex.quote(path)}" for operator in operators for path in paths)


def _as_operand(site: Site, words: Sequence[str], paths: Sequence[str], effects: set[FileEffect]) -> Iterator[str]:
    for at in range(1, len(words) + 1):
        if at < len(words) and words[at].startswith("-"):
            continue
        for path in paths:
            if not effects.isdisjoint(file_effects(site, words, at, path)):
                quoted = shlex.quote(path)
                yield with_word(words, at, quoted)
                if not path.startswith("/"):
                    yield from (with_word(words, at, f"{folder}/{quoted}") for folder in (".", '"$PWD"', "y/.."))
