"""A rule as the YAML that a person pastes into a policy file."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ci_agent.json_types import Json
from ci_agent.policy.matchers.command_patterns import split_command_pattern
from ci_agent.policy.rules import Rule
from ci_agent.terminal import inert_json

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NOT_PLAIN: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

_MAX_LINE: Final = 110


def rule_yaml(rule: Rule) -> str:
    """An item of `rules:`, indented by two blanks; the loader reads it back as the same rule."""
    first, *others = list(_lines(rule))
    return "\n".join([f"  - {first}", *(f"    {line}" for line in others)])


def _lines(rule: Rule) -> Iterator[str]:
    yield f"id: {rule.id}"
    yield from _key(rule.effect, rule.tools)
    if rule.command is not None:
        yield from _key("command", [_command(tokens) for tokens in rule.command])
    for key, values in _matchers(rule).items():
        if values is not None:
            yield from _key(key, values)
    for selector, tests in (rule.args or {}).items():
        lead = "args:" if selector == next(iter(rule.args or {})) else ""
        yield from filter(None, (lead, f"  {_scalar(selector)}: {_flow(tests)}"))
    if rule.only:
        yield "only: true"


def _matchers(rule: Rule) -> Mapping[str, Sequence[Json] | None]:
    return {
        "paths": rule.paths,
        "env": rule.env,
        "path": rule.path,
        "host": rule.host,
        "scheme": rule.scheme,
        "port": rule.port,
        "method": rule.method,
    }


def _command(tokens: tuple[str, ...]) -> Json:
    """One string where that means the same tokens, else the list of them."""
    text = " ".join(tokens)
    try:
        is_same = split_command_pattern(text) == tokens
    except ValueError:
        is_same = False
    return text if is_same else list(tokens)


def _key(key: str, values: Sequence[Json]) -> Iterator[str]:
    is_one = len(values) == 1 and not isinstance(values[0], list)
    line = f"{key}: {_flow(values[0] if is_one else list(values))}"
    if len(line) <= _MAX_LINE or is_one:
        yield line
        return
    yield f"{key}:"
    yield from (f"  - {_flow(value)}" for value in values)


def _flow(value: Json) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    return _scalar(value)


def _scalar(value: Json) -> str:
    """JSON is YAML; words that nothing else could be meant by need no quotes.

    As in all that is printed, `##[` and its like are broken up: a runner would obey them.
    """
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_PLAIN:
        return value
    return inert_json(json.dumps(value, ensure_ascii=False))
