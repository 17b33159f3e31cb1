"""What a model behind Bedrock's Converse API can do without, once it has refused a request."""

from collections.abc import Callable
from dataclasses import replace

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.relaxations import leave_out, relaxation, relaxed

_FIELDS = "additionalModelRequestFields"
_STREAMED, _WHOLE = "/converse-stream", "/converse"


def relax(request: ApiRequest, error: ApiError) -> ApiRequest | None:
    """The request without what the server complains of; None when that cannot be left out."""
    return relaxed(_RELAXATIONS, request, error)


def _without_stream(request: ApiRequest) -> ApiRequest:
    """Some models do not stream, or not along with tools."""
    return replace(request, path=request.path.removesuffix(_STREAMED) + _WHOLE) if _streams(request) else request


def _streams(request: ApiRequest) -> bool:
    return request.path.endswith(_STREAMED)


def _without_cache_points(request: ApiRequest) -> ApiRequest:
    lesser = _with_blocks(request, lambda blocks: [block for block in blocks if "cachePoint" not in block])
    body = dict(lesser.body)
    if "system" in body:
        body["system"] = [block for block in body["system"] if "cachePoint" not in block]
    if "toolConfig" in body:
        tools = [tool for tool in body["toolConfig"]["tools"] if "cachePoint" not in tool]
        body["toolConfig"] = {**body["toolConfig"], "tools": tools}
    return replace(lesser, body=body)


def _without_thinking_in_history(request: ApiRequest) -> ApiRequest:
    """Thinking may be left out of the history, but then a model with a budget may not think on."""
    lesser = _with_blocks(request, lambda blocks: [block for block in blocks if "reasoningContent" not in block])
    if lesser == request:
        return request
    has_budget = "budget_tokens" in request.body.get(_FIELDS, {}).get("thinking", {})
    return _without_thinking(lesser) if has_budget else lesser


def _without_thinking(request: ApiRequest) -> ApiRequest:
    return leave_out(_FIELDS)(request)


def _without_status(request: ApiRequest) -> ApiRequest:
    """An error without its mark says in words what it is."""
    return _with_blocks(request, lambda blocks: [_unmarked(block) for block in blocks])


def _unmarked(block: JsonObject) -> JsonObject:
    result = block.get("toolResult")
    if result is None or "status" not in result:
        return block
    unmarked = {key: value for key, value in result.items() if key != "status"}
    if result["status"] == "error":
        unmarked["content"] = [{"text": "The tool failed:"}, *result["content"]]
    return {"toolResult": unmarked}


def _with_blocks(request: ApiRequest, change: Callable[[list[Json]], list[Json]]) -> ApiRequest:
    """The request with the blocks of its messages changed, and messages left out that have none then."""
    messages = [{**message, "content": change(message["content"])} for message in request.body["messages"]]
    return replace(request, body={**request.body, "messages": [each for each in messages if each["content"]]})


_RELAXATIONS = (
    relaxation(r"support.{0,60}stream|stream.{0,60}support", _without_stream),
    relaxation(r"cache[_ ]?(?:point|control)|caching", _without_cache_points),
    relaxation(r"outputconfig|textformat|json_?schema|structured output", leave_out("outputConfig")),
    relaxation(r"temperature", leave_out("inferenceConfig", "temperature")),
    relaxation(r"\bstatus\b", _without_status),
    relaxation(r"anthropic_beta|beta flag", leave_out(_FIELDS, "anthropic_beta")),
    relaxation(r"output_config|effort", leave_out(_FIELDS, "output_config")),
    relaxation(r"signature|reasoningcontent|reasoning content|thinking.{0,20} block", _without_thinking_in_history),
    relaxation(r"thinking|reasoning|effort|additionalmodelrequestfields", _without_thinking),
)
