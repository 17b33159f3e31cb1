"""What the built-in tools have in common: closed schemas, whole numbers, results of text."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.messages import TextContent
from ci_agent.tool import Execute, OnUpdate, ToolResult

Run: TypeAlias = Callable[[JsonObject, CancelToken], ToolResult]
"""The work of a tool that neither needs the call's id nor reports partial results."""


def executing(run: Run) -> Execute:
    def execute(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        del call_id, on_update
        cancel.raise_if_cancelled()
        return run(arguments, cancel)

    return execute


def closed_object(properties: dict[str, JsonObject], required: Sequence[str]) -> JsonObject:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text_property(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def flag_property(description: str) -> JsonObject:
    return {"type": "boolean", "description": description}


def number_property(description: str, *, minimum: int = 1, maximum: int | None = None) -> JsonObject:
    bounds = {"minimum": minimum} if maximum is None else {"minimum": minimum, "maximum": maximum}
    return {"type": "integer", "description": description, **bounds}


def whole_number(arguments: JsonObject, name: str, default: int) -> int:
    """An optional argument as int: JSON Schema takes 1.0 for an integer, Python would not."""
    return int(arguments.get(name, default))


def text_result(text: str, details: JsonObject | None = None) -> ToolResult:
    return ToolResult((TextContent(text),), details)
