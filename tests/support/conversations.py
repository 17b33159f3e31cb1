"""Conversations written briefly, and what an API makes of one; for the tests of requests."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, Message, TextContent, ToolResultMessage, UserMessage
from ci_agent.provider import Context, Model, StreamOptions
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.wire.api import Api, ApiRequest, Target
from ci_agent.providers.wire.failures import ApiError
from ci_agent.tool import OnUpdate, Tool, ToolResult

NOW = datetime(2026, 1, 2, tzinfo=UTC)
IMAGE = ImageContent("image/png", "QUJD")
CLOSED: JsonObject = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
"""A schema that every API can hold a model to."""


def user(*content: TextContent | ImageContent | str) -> UserMessage:
    return UserMessage(tuple(TextContent(part) if isinstance(part, str) else part for part in content), NOW)


def result(
    id_: str, *content: TextContent | ImageContent, name: str = "ls", is_error: bool = False
) -> ToolResultMessage:
    return ToolResultMessage(id_, name, content, is_error, NOW)


def offered(name: str, description: str, parameters: JsonObject) -> Tool:
    """A tool that the model is told of and that nobody runs."""
    return Tool(name, description, parameters, _never_run)


def _never_run(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
    raise AssertionError((call_id, arguments, cancel, on_update))


LS = offered("ls", "Lists files.", {"type": "object", "properties": {"path": {"type": "string"}}})


def request_of(
    api: Api,
    model: Model,
    *messages: Message,
    system: str = "",
    tools: tuple[Tool, ...] = (),
    facts: ModelFacts | None = None,
    options: StreamOptions | None = None,
    **more_options: Any,
) -> ApiRequest:
    """What the API sends for this conversation, which is a mere "hi" when there are no messages."""
    target = Target(model, api.name, facts or ModelFacts())
    context = Context(system, messages or (user("hi"),), tools)
    return api.build_request(target, context, replace(options or StreamOptions(), **more_options))


def besides(request: ApiRequest, *usual: str) -> JsonObject:
    """What the body of the request says besides what every request says."""
    return {key: value for key, value in request.body.items() if key not in usual}


def refused(message: str, status: int = 400) -> ApiError:
    return ApiError("request", message, retryable=False, status=status)
