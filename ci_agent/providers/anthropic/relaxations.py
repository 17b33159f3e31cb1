"""What a server of the Anthropic Messages API can do without, once it has refused a request."""

from dataclasses import replace

from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.relaxations import leave_out, relaxation, relaxed
from ci_agent.providers.wire.untrusted_json import text_at

_THINKING_BLOCKS = ("thinking", "redacted_thinking")


def relax(request: ApiRequest, error: ApiError) -> ApiRequest | None:
    """The request without what the server complains of; None when that cannot be left out."""
    return relaxed(_RELAXATIONS, request, error)


def _without_thinking_in_history(request: ApiRequest) -> ApiRequest:
    """Thinking may be left out of the history, but then a model with a budget may not think on."""
    messages = [_without_thinking_blocks(message) for message in request.body["messages"]]
    if messages == request.body["messages"]:
        return request
    lesser = replace(request, body={**request.body, "messages": [each for each in messages if each["content"]]})
    has_budget = text_at(request.body, "thinking", "type") == "enabled"
    return leave_out("thinking")(lesser) if has_budget else lesser


def _without_thinking_blocks(message: JsonObject) -> JsonObject:
    return {**message, "content": [block for block in message["content"] if block.get("type") not in _THINKING_BLOCKS]}


def _without_thinking(request: ApiRequest) -> ApiRequest:
    return leave_out("output_config", "effort")(leave_out("thinking")(request))


def _without_schema(request: ApiRequest) -> ApiRequest:
    return leave_out("output_config", "format")(request)


def _without_cache_marks(request: ApiRequest) -> ApiRequest:
    body = dict(request.body)
    for name in ("system", "tools"):
        if name in body:
            body[name] = [_without_mark(block) for block in body[name]]
    body["messages"] = [
        {**message, "content": [_without_mark(block) for block in message["content"]]} for message in body["messages"]
    ]
    return replace(request, body=body)


def _without_mark(block: JsonObject) -> JsonObject:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _without_beta(request: ApiRequest) -> ApiRequest:
    headers = {name: value for name, value in request.headers.items() if name != "anthropic-beta"}
    return replace(request, headers=headers)


_RELAXATIONS = (
    relaxation(r"output_config\.format|output_format|json_schema|structured.output", _without_schema),
    relaxation(r"temperature", leave_out("temperature")),
    relaxation(r"effort", leave_out("output_config", "effort")),
    relaxation(r"signature|thinking.{0,20} block|expected .{0,3}thinking", _without_thinking_in_history),
    relaxation(r"interleaved|anthropic-beta", _without_beta),
    relaxation(r"thinking|budget_tokens", _without_thinking),
    relaxation(r"cache_control", _without_cache_marks),
    relaxation(r"output_config", leave_out("output_config")),
)
