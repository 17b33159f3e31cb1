"""Policies of a thousand rules that look alike, or a hundred that read arguments, each with the call that asks most."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ci_agent.json_types import JsonObject

BOUND_MS = 100
"""What such a call may take: twice as much as the slowest line under an ordinary policy."""

_ALL = "{id: all, allow: bash, command: ['**'], paths: ['**'], host: ['**']}"
_OTHERS = "{id: others, allow: srv__tool}"


class Alike(NamedTuple):
    rules: str
    """One rule, with `#` for its number."""
    tool: str
    arguments: JsonObject
    rule_count: int = 1_000


def policy_of(alike: Alike) -> str:
    rules = [alike.rules.replace("#", str(number)) for number in range(alike.rule_count)]
    return "policy: 1\nrules:\n" + "".join(f"  - {rule}\n" for rule in (*rules, _ALL, _OTHERS))


def _words(program: str, word: str, count: int) -> JsonObject:
    return {"command": " ".join([program, *(word.replace("#", str(number)) for number in range(count))])}


def _commands(command: str, count: int) -> str:
    return "; ".join(command.replace("#", str(number)) for number in range(count))


def _addresses(count: int) -> Iterator[str]:
    return (f"http://10.{number % 256}.{number // 256}.1/" for number in range(count))


_STARS = "**/*a*a*a*a*b#*"
_FILES = _words("cat", "a" * 100 + "#", 250)
_REDIRECTIONS = _commands(f"cat < {'a' * 100}# > {'a' * 100}#o", 80)
_VALUES: JsonObject = {
    "command": _commands("cat f#", 150),
    "path": "a/b/c",
    "paths": [f"a/b{number}" for number in range(290)],
}

_MANY: JsonObject = {
    "texts": [f"v{number}" for number in range(1_000)],
    "numbers": [number + 0.5 for number in range(1_000)],
    "urls": [f"https://h{number}.example.com/" for number in range(1_000)],
    "addresses": [f"https://10.{number % 256}.{number // 256}.1/" for number in range(1_000)],
}

ALIKE: Mapping[str, Alike] = {
    "denied globs, many files": Alike(f"{{id: d#, deny: read, path: ['{_STARS}']}}", "bash", _FILES),
    "denied globs, a folder": Alike(f"{{id: d#, deny: read, path: ['{_STARS}']}}", "bash", {"command": "grep -r x ."}),
    "denied globs on the way": Alike("{id: d#, deny: read, path: ['**/*a#*/*']}", "bash", {"command": "grep -r x ."}),
    "allowed globs, many files": Alike(
        f"{{id: a#, allow: bash, command: ['cat **'], paths: ['{_STARS}']}}", "bash", _FILES
    ),
    "allowed globs, redirections": Alike(
        f"{{id: a#, allow: write, path: ['{_STARS}']}}", "bash", {"command": _REDIRECTIONS}
    ),
    "denied networks, many addresses": Alike(
        "{id: d#, deny: fetch, host: ['10.#.0.0/24', '11.2.0.0/16', '12.#.0.0/16']}",
        "bash",
        {"command": "curl " + " ".join(_addresses(900))},
        256,
    ),
    "arguments read as commands, allowed": Alike(
        "{id: a#, allow: srv__other, args: {command: {command: ['x# **']}}}", "srv__other", _VALUES, 100
    ),
    "arguments read as commands, denied": Alike(
        "{id: d#, deny: srv__tool, args: {command: {command: ['x# **']}}}", "srv__tool", _VALUES, 100
    ),
    "arguments read as a path": Alike(
        "{id: d#, deny: srv__tool, args: {path: {path: ['x#/**']}}}", "srv__tool", _VALUES, 100
    ),
    "arguments read as many paths": Alike(
        "{id: d#, deny: srv__tool, args: {'paths[]': {path: ['x#/**']}}}", "srv__tool", _VALUES, 100
    ),
    "texts held against expressions": Alike(
        "{id: d#, deny: srv__tool, args: {command: {regex: '.*(x#|a*b*c*)z'}}}", "srv__tool", _VALUES
    ),
    "many texts in a list": Alike("{id: d#, deny: srv__tool, args: {'texts[]': {enum: [x#]}}}", "srv__tool", _MANY),
    "many numbers in a list": Alike("{id: d#, deny: srv__tool, args: {'numbers[]': {enum: [#]}}}", "srv__tool", _MANY),
    "many numbers in bounds": Alike("{id: d#, deny: srv__tool, args: {'numbers[]': {min: 9999#}}}", "srv__tool", _MANY),
    "many values of a type": Alike("{id: d#, deny: srv__tool, args: {'texts[]': {type: boolean}}}", "srv__tool", _MANY),
    "many hosts": Alike(
        "{id: d#, deny: srv__tool, args: {'urls[]': {host: ['x#.example.org', '*.y#.example.org']}}}",
        "srv__tool",
        _MANY,
    ),
    "many networks": Alike(
        "{id: d#, deny: srv__tool, args: {'addresses[]': {host: ['11.#.0.0/24', '12.1.0.0/16']}}}",
        "srv__tool",
        _MANY,
        256,
    ),
    "many hosts, all but one allowed": Alike(
        "{id: a#, allow: srv__other, args: {'urls[]': {host: '*.example.com'}, 'texts[]': {enum: [v#]}}}",
        "srv__other",
        {**_MANY, "urls": [*_MANY["urls"][1:], "https://elsewhere.example.org/"]},
    ),
    "words that may not be there": Alike(
        "{id: d#, deny: bash, command: '**', has: [x#]}", "bash", _words("echo", "y#", 1_900)
    ),
    "options that may not be there": Alike(
        "{id: d#, deny: bash, command: 'echo **', has: [--x#]}", "bash", {"command": _commands("echo --y# -z a b", 150)}
    ),
    "open words that may not be there": Alike(
        "{id: d#, deny: bash, command: '**', has: ['*x#*']}", "bash", _words("echo", "y#", 1_900)
    ),
}
