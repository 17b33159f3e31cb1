"""Calls as people write them in a policy: `{bash: git push}` for a tool and all its arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.matchers.tool_names import parse_tool_pattern


@dataclass(frozen=True, slots=True)
class Shorthand:
    argument: str
    """The argument that a bare value stands for."""
    placeholders: Mapping[str, Json]
    """Required arguments that no rule is about; added when they are not written."""


SHORTHANDS: Final[Mapping[str, Shorthand]] = {
    "bash": Shorthand("command", {}),
    "read": Shorthand("path", {}),
    "write": Shorthand("path", {"content": ""}),
    "edit": Shorthand("path", {"edits": [{"old": "old text", "new": "new text"}]}),
    "grep": Shorthand("path", {"pattern": "text"}),
    "find": Shorthand("path", {"pattern": "*"}),
    "ls": Shorthand("path", {}),
    "fetch": Shorthand("url", {}),
    "propose": Shorthand("kind", {}),
}

BUILTIN_TOOLS: Final = frozenset(SHORTHANDS)


class WrongTypeError(ValueError):
    """A value has another type than it may have. A ValueError, because pydantic passes every other exception on."""


def expand_call(tool: str, written: Json) -> JsonObject:
    """The arguments of a call written as `{TOOL: VALUE}`; ValueError when a bare value has no argument to stand for."""
    shorthand = SHORTHANDS.get(tool)
    if isinstance(written, dict):
        return {**shorthand.placeholders, **written} if shorthand else dict(written)
    if shorthand is None:
        raise ValueError(f"write the arguments of {tool} as a mapping: a bare value stands only for a built-in tool's")
    if not isinstance(written, str):
        cure = "" if isinstance(written, list) else ": put it in quotes"
        raise WrongTypeError(f"the {shorthand.argument} of {tool} is text{cure or ', not a list'}")
    return {**shorthand.placeholders, shorthand.argument: written}


def example_calls(tools: Sequence[str], example: str | JsonObject) -> list[tuple[str, JsonObject]]:
    """The calls (tool, arguments) that an example of a rule for these tool patterns stands for.

    `{TOOL: VALUE}` with a tool of the rule is that call; anything else is tried with each tool that the rule spells.
    ValueError when the rule spells none, or when the text has no argument to stand for.
    """
    patterns = [parse_tool_pattern(tool) for tool in tools]
    if isinstance(example, dict) and len(example) == 1:
        ((name, written),) = example.items()
        if any(pattern.covers(name) for pattern in patterns):
            return [(name, expand_call(name, written))]
    names = [name for pattern in patterns for name in pattern.literals or ()]
    if not names:
        raise ValueError(
            f"say which tool is called: write the example as {{TOOL: {{...}}}}, TOOL being one of {tools[0]}"
        )
    return [(name, expand_call(name, example)) for name in names]
