"""Calls that a rule is about, made from its patterns: the simplest text that each of them matches."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.file.calls import BUILTIN_TOOLS, expand_call
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.matchers.argument_tests import parse_argument_selector
from ci_agent.policy.matchers.command_patterns import CommandPattern, parse_command_pattern
from ci_agent.policy.matchers.hosts import HostPattern, parse_host_pattern
from ci_agent.policy.matchers.path_globs import PathGlob, parse_path_glob
from ci_agent.policy.matchers.tool_names import ToolPattern, parse_tool_pattern
from ci_agent.policy.matchers.wildcards import Wildcard
from ci_agent.policy.rules import Rule

FILLING: Final = "x"
"""What a wildcard becomes."""

FILE_TOOLS: Final = frozenset({"read", "write", "edit", "grep", "find", "ls"})


def sample_calls(rule: Rule) -> Iterator[Witness]:
    """At least one call for each tool and each pattern of a rule; what it decides must be asked."""
    for tool in tool_names(rule):
        if tool == "bash":
            yield from (command_call(sample_words(pattern)) for pattern in command_patterns(rule))
        elif tool in FILE_TOOLS:
            yield from (Witness(tool, expand_call(tool, path)) for path in sample_paths(rule.path))
        elif tool == "fetch":
            yield from (Witness(tool, {"url": url}) for url in sample_urls(rule))
        else:
            yield Witness(tool, sample_arguments(rule))


def tool_names(rule: Rule) -> list[str]:
    """Names that the rule's tool patterns match: spelled ones, built-in ones, one that is made up for a wildcard."""
    names: list[str] = []
    for text in rule.tools:
        pattern = tool_pattern(text)
        if pattern.literals is not None:
            names += pattern.literals
        else:
            names += [name for name in sorted(BUILTIN_TOOLS) if pattern.covers(name)]
            names += ["__".join(map(fill, parts)) for parts in pattern.alternatives if len(parts) > 1]
    return list(dict.fromkeys(names))


def command_patterns(rule: Rule) -> list[CommandPattern]:
    return [_command_pattern(words) for words in rule.command or ()]


@lru_cache(maxsize=16_384)
def _command_pattern(words: tuple[str, ...]) -> CommandPattern:
    return parse_command_pattern(words)


@lru_cache(maxsize=16_384)
def path_glob(text: str) -> PathGlob:
    return parse_path_glob(text)


@lru_cache(maxsize=1_024)
def tool_pattern(text: str) -> ToolPattern:
    return parse_tool_pattern(text)


def sample_words(pattern: CommandPattern) -> list[str]:
    return [fill(token.alternatives[0]) for token in pattern.tokens]


def command_call(words: Sequence[str], *, assignment: str = "") -> Witness:
    return Witness("bash", {"command": f"{assignment} {shlex.join(words)}".strip()})


def sample_paths(globs: Sequence[str] | None) -> Iterator[str]:
    """One path for each alternative of each glob; one in the workspace when there are none."""
    if globs is None:
        yield FILLING
    for text in globs or ():
        glob = path_glob(text)
        start = {"workspace": "", "root": "/", "home": "~/"}[glob.anchor]
        for parts in glob.alternatives:
            yield start + "/".join(fill(part) for part in parts if part is not None)


def sample_urls(rule: Rule) -> Iterator[str]:
    scheme = rule.scheme[0] if rule.scheme else "https"
    port = f":{rule.port[0]}" if rule.port else ""
    for text in rule.host or ("**",):
        yield f"{scheme}://{_sample_host(parse_host_pattern(text))}{port}/"


def sample_arguments(rule: Rule) -> JsonObject:
    """The arguments that the rule tests, with values that may pass."""
    arguments: JsonObject = {}
    for selector, tests in (rule.args or {}).items():
        if "absent" not in tests:
            _put(arguments, [step.key for step in parse_argument_selector(selector).steps], _sample_value(tests))
    return arguments


def fill(wild: Wildcard) -> str:
    """A text that the pattern matches."""
    return FILLING.join(wild.chunks)


def _sample_host(pattern: HostPattern) -> str:
    if pattern.network is not None:
        address = str(pattern.network.network_address)
        return f"[{address}]" if ":" in address else address
    if pattern.suffix is not None:
        return FILLING + pattern.suffix
    return pattern.name or "example.com"


def _sample_value(tests: Mapping[str, Json]) -> Json:
    if "const" in tests:
        return tests["const"]
    if isinstance(tests.get("enum"), list):
        return tests["enum"][0]
    if "min" in tests or "max" in tests:
        return tests.get("min", tests.get("max"))
    return FILLING


def _put(target: JsonObject, keys: Sequence[str | None], value: Json) -> None:
    """Put a value where a selector looks; None among the keys is the one item of a list."""
    key, *rest = keys
    inner: Json = value
    while rest and rest[-1] is None:
        rest = rest[:-1]
        inner = [inner]
    if not rest:
        target[str(key)] = inner
        return
    if rest[0] is None:
        child: JsonObject = {}
        _put(child, rest[1:], inner)
        target[str(key)] = [child]
        return
    following = target.setdefault(str(key), {})
    if isinstance(following, dict):
        _put(following, rest, inner)
