"""How calls end: the one exit of every error, and copies that no tool can change afterwards."""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from ci_agent.agent.wording import show_exception
from ci_agent.errors import ToolError
from ci_agent.hooks import Decision, ToolCallOutcome, ToolCallStage, ToolCallStatus
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, TextContent, ToolResultContent
from ci_agent.tool import ToolResult


def create_error_tool_result(
    message: str, stage: ToolCallStage, *, status: ToolCallStatus = "error", details: JsonObject | None = None
) -> ToolCallOutcome:
    """The one exit of every road on which a call fails. The model reads the message, the details are for the record."""
    return ToolCallOutcome(status, stage, (TextContent(message),), details)


def create_denied_tool_result(decision: Decision) -> ToolCallOutcome:
    details = {"decision": copy_json(asdict(decision))}
    outcome = create_error_tool_result(decision.reason, "before_tool_call", status="denied", details=details)
    return replace(outcome, decision=decision)


def create_cancelled_tool_result(what_became_of_it: str, reason: str | None) -> ToolCallOutcome:
    message = f"{what_became_of_it} Cancelled: {reason or 'no reason given'}."
    return create_error_tool_result(message, "cancelled", status="cancelled")


def create_failed_tool_result(error: Exception) -> ToolCallOutcome:
    """Of what a tool raised; the details of a ToolError are kept where a record can hold them."""
    details = error.details if isinstance(error, ToolError) else None
    try:
        return create_error_tool_result(show_exception(error), "execute", details=copy_json(details))
    except (TypeError, ValueError, RecursionError):
        return create_error_tool_result(show_exception(error), "execute")


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
