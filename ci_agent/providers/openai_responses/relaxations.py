"""What a server of the OpenAI Responses API can do without, once it has refused a request."""

from dataclasses import replace

from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.relaxations import leave_out, relaxation, relaxed
from ci_agent.providers.wire.untrusted_json import text_at

_LESSER_EFFORT = {"none": "minimal", "minimal": "low"}
"""The least that a model takes differs; nothing stands for less than `low`."""


def relax(request: ApiRequest, error: ApiError) -> ApiRequest | None:
    """The request without what the server complains of; None when that cannot be left out."""
    return relaxed(_RELAXATIONS, request, error)


def _without_reasoning_items(request: ApiRequest) -> ApiRequest:
    """Items and reasoning belong together, so without the reasoning no item keeps its id."""
    items = request.body["input"]
    if not any(item.get("type") == "reasoning" for item in items):
        return request
    plain = [_plain_item(item) for item in items if item.get("type") != "reasoning"]
    return replace(request, body={**request.body, "input": plain})


def _plain_item(item: JsonObject) -> JsonObject:
    if item.get("type") != "message":
        return {key: value for key, value in item.items() if key != "id"}
    phase = {"phase": item["phase"]} if "phase" in item else {}
    return {"role": "assistant", "content": text_at(item["content"][0], "text"), **phase}


def _with_lesser_effort(request: ApiRequest) -> ApiRequest:
    effort = text_at(request.body, "reasoning", "effort")
    if effort not in _LESSER_EFFORT:
        return leave_out("reasoning", "effort")(request)
    reasoning = {**request.body["reasoning"], "effort": _LESSER_EFFORT[effort]}
    return replace(request, body={**request.body, "reasoning": reasoning})


def _without_strict(request: ApiRequest) -> ApiRequest:
    tools = [{key: value for key, value in tool.items() if key != "strict"} for tool in request.body.get("tools", [])]
    return replace(request, body={**request.body, "tools": tools}) if tools else request


_RELAXATIONS = (
    relaxation(r"'reasoning'|encrypted.content", _without_reasoning_items),
    relaxation(r"\binclude\b|encrypted.content", leave_out("include")),
    relaxation(r"summary|summaries", leave_out("reasoning", "summary")),
    relaxation(r"effort", _with_lesser_effort),
    relaxation(r"\breasoning\b", leave_out("reasoning")),
    relaxation(r"temperature", leave_out("temperature")),
    relaxation(r"text\.format|response_format|json_schema", leave_out("text")),
    relaxation(r"prompt_cache_key", leave_out("prompt_cache_key")),
    relaxation(r"\bstore\b", leave_out("store")),
    relaxation(r"\bstrict\b", _without_strict),
)
