"""How calls end: the one exit of every error, and copies that no tool can change afterwards."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ci_agent.hooks import Decision, ToolCallOutcome, ToolCallStage
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, TextContent, ToolResultContent
from ci_agent.tool import ToolResult


def create_error_tool_result(
    message: str, stage: ToolCallStage, *, decision: Decision | None = None, cancelled: bool = False
) -> ToolCallOutcome:
    """The one exit of every error road. The model reads the message; a decision that denied goes into the details."""
    content = (TextContent(message),)
    if cancelled:
        return ToolCallOutcome("cancelled", stage, content)
    if decision is not None:
        return ToolCallOutcome("denied", stage, content, {"decision": copy_json(asdict(decision))}, decision)
    return ToolCallOutcome("error", stage, content)


def create_cancelled_tool_result(what_became_of_it: str, reason: str | None) -> ToolCallOutcome:
    text = f"{what_became_of_it} Cancelled: {reason or 'no reason given'}."
    return create_error_tool_result(text, "cancelled", cancelled=True)


def copy_result(result: object) -> ToolResult:
    """A copy that shares nothing with the tool. TypeError or ValueError when it is none, or nothing to be recorded."""
    if not isinstance(result, ToolResult):
        raise TypeError(f"the tool returned {type(result).__name__} instead of a ToolResult")
    return ToolResult(copy_content(result.content), copy_json(result.details), result.terminate)


def copy_content(content: Iterable[ToolResultContent]) -> tuple[ToolResultContent, ...]:
    parts = tuple(content)
    for part in parts:
        _check_part(part)
    return parts


def copy_json(value: JsonObject | None) -> Any:
    """Through JSON and back, which refuses what no record can hold. Tuples become lists."""
    return json.loads(json.dumps(value))


def _check_part(part: object) -> None:
    if not isinstance(part, TextContent | ImageContent):
        raise TypeError(f"the content has a part of type {type(part).__name__} instead of text or an image")
