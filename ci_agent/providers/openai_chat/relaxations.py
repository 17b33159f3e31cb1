"""What a server of Chat Completions can do without, once it has refused a request."""

from dataclasses import replace

from ci_agent.json_types import JsonObject
from ci_agent.providers.openai_chat.messages import THINKING_FIELDS, VERBATIM_FIELDS
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.relaxations import leave_out, relaxation, relaxed
from ci_agent.providers.wire.untrusted_json import text_at

_LESSER_EFFORT = {"none": "minimal", "minimal": "low"}
"""The least that a model takes differs; nothing stands for less than `low`."""


def relax(request: ApiRequest, error: ApiError) -> ApiRequest | None:
    """The request without what the server complains of; None when that cannot be left out."""
    return relaxed(_RELAXATIONS, request, error)


def _with_newer_limit(request: ApiRequest) -> ApiRequest:
    """The limit of the answer has two names; it is never left out."""
    body = request.body
    if "max_tokens" not in body:
        return request
    named = {"max_completion_tokens" if key == "max_tokens" else key: value for key, value in body.items()}
    return replace(request, body=named)


def _with_lesser_effort(request: ApiRequest) -> ApiRequest:
    effort = text_at(request.body, "reasoning_effort")
    if effort not in _LESSER_EFFORT:
        return leave_out("reasoning_effort")(request)
    return replace(request, body={**request.body, "reasoning_effort": _LESSER_EFFORT[effort]})


def _without_thinking(request: ApiRequest) -> ApiRequest:
    """Without the thoughts of earlier messages."""
    messages = [_unthought(message) for message in request.body["messages"]]
    return replace(request, body={**request.body, "messages": messages})


def _unthought(message: JsonObject) -> JsonObject:
    return {key: value for key, value in message.items() if key not in (*THINKING_FIELDS, *VERBATIM_FIELDS)}


_RELAXATIONS = (
    relaxation(r"max_completion_tokens|max_tokens.{0,40}not supported", _with_newer_limit),
    relaxation(r"stream_options|include_usage", leave_out("stream_options")),
    relaxation(r"temperature", leave_out("temperature")),
    relaxation(r"reasoning_format", leave_out("reasoning_format")),
    relaxation(r"chat_template", leave_out("chat_template_kwargs")),
    relaxation(r"reasoning_effort|effort", _with_lesser_effort),
    relaxation(r"response_format|json_schema|json mode|grammar", leave_out("response_format")),
    relaxation(r"prompt_cache_key", leave_out("prompt_cache_key")),
    relaxation(r"\breasoning\b", leave_out("reasoning")),
    relaxation(r"\bthinking\b", leave_out("thinking")),
    relaxation(r"^(?!.*\bmust\b).*(?:reasoning_(?:content|details|text)|extra_content)", _without_thinking),
)
