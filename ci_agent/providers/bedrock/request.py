"""Makes a request to Bedrock's Converse API out of a conversation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import quote

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from ci_agent.provider import Context, StreamOptions
from ci_agent.providers.bedrock.models import (
    inference_config,
    is_claude,
    output_config,
    takes_cache_points,
    takes_signatures,
    thinking_fields,
)
from ci_agent.providers.wire.api import ApiRequest, Target
from ci_agent.providers.wire.history import (
    IdRule,
    alternating,
    arguments_object,
    cleaned,
    sendable_history,
    without_lone_surrogates,
)
from ci_agent.providers.wire.tool_names import ToolNames, wire_tool_names
from ci_agent.providers.wire.tool_schemas import without_top_level_alternatives
from ci_agent.providers.wire.untrusted_json import can_be_sent, text_at

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_TOOL_NAME = 64
_IDS = IdRule(re.compile(r"[a-zA-Z0-9_-]"), max_length=64)
_IMAGE_FORMATS = {"image/gif": "gif", "image/jpeg": "jpeg", "image/png": "png", "image/webp": "webp"}
_CACHE_POINT: JsonObject = {"cachePoint": {"type": "default"}}
_NO_OUTPUT = "(no output)"
_NOT_OFFERED = "No longer offered. Must not be called."


@dataclass(frozen=True, slots=True)
class BedrockTraits:
    """How a server of this API differs from Amazon's own."""

    takes_cache_points: bool = True
    """For models that take them at all."""


def build_converse_request(
    traits: BedrockTraits, target: Target, context: Context, options: StreamOptions
) -> ApiRequest:
    """A BuildRequest, for a server with these traits."""
    names = wire_tool_names(context.tools, _TOOL_NAME, _MAX_TOOL_NAME)
    history = sendable_history(context.messages, target, _IDS)
    messages = alternating(history, lambda message: _blocks(target, message, names))
    thinking = thinking_fields(target, options, goes_on_without_thinking=_goes_on_without_thinking(messages))
    body: JsonObject = {"messages": messages}
    if context.system_prompt.strip():
        body["system"] = [{"text": cleaned(context.system_prompt)}]
    tools = [*_tools(context, names), *_tools_of_history(messages, context)]
    if tools:
        body["toolConfig"] = {"tools": tools}
    for name, fields in (
        ("inferenceConfig", inference_config(target, options, thinking)),
        ("additionalModelRequestFields", thinking),
        ("outputConfig", output_config(target, options)),
    ):
        if fields:
            body[name] = fields
    if traits.takes_cache_points and takes_cache_points(target):
        _mark_cached(body)
    return ApiRequest(f"/model/{quote(target.model.id, safe='')}/converse-stream", body, {}, names.from_wire)


def _tools(context: Context, names: ToolNames) -> Iterator[Json]:
    for tool in context.tools:
        described = {"description": tool.description} if tool.description.strip() else {}
        yield _tool(names.wire(tool.name), described, without_top_level_alternatives(tool.parameters))


def _tools_of_history(messages: Sequence[JsonObject], context: Context) -> Iterator[Json]:
    """A history with calls needs tools beside it: those that were called, when there are no others."""
    if context.tools:
        return
    called = [block["toolUse"]["name"] for message in messages for block in message["content"] if "toolUse" in block]
    for name in dict.fromkeys(called):
        yield _tool(name, {"description": _NOT_OFFERED}, {"type": "object"})


def _tool(name: str, described: JsonObject, schema: JsonObject) -> Json:
    return cleaned({"toolSpec": {"name": name, **described, "inputSchema": {"json": schema}}})


def _mark_cached(body: JsonObject) -> None:
    """Up to three marks of the four there may be: what never changes in a run, and the whole conversation so far."""
    user = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in (body.get("system"), body.get("toolConfig", {}).get("tools"), user[-1] if user else None):
        if blocks:
            blocks.append(_CACHE_POINT)


# Messages


def _blocks(target: Target, message: Message, names: ToolNames) -> Sequence[JsonObject]:
    match message:
        case UserMessage():
            return [_user_block(part) for part in message.content]
        case ToolResultMessage():
            return [_result_block(message)]
        case AssistantMessage():
            blocks = [block for part in message.content for block in _assistant_blocks(target, part, names)]
            while blocks and "reasoningContent" in blocks[-1]:  # thinking that nothing follows is refused
                blocks.pop()
            return blocks
    assert_never(message)


def _user_block(part: TextContent | ImageContent) -> JsonObject:
    if isinstance(part, TextContent):
        return {"text": part.text}
    image_format = _IMAGE_FORMATS.get(part.mime_type.lower())
    if image_format is None:
        return {"text": f"[an image of the type {part.mime_type}, which cannot be sent]"}
    return {"image": {"format": image_format, "source": {"bytes": part.data_base64}}}


def _result_block(message: ToolResultMessage) -> JsonObject:
    content = [_user_block(part) for part in message.content] or [{"text": _NO_OUTPUT}]
    status = "error" if message.is_error else "success"
    return {"toolResult": {"toolUseId": message.tool_call_id, "content": content, "status": status}}


def _assistant_blocks(target: Target, part: AssistantContent, names: ToolNames) -> Iterator[JsonObject]:
    match part:
        case TextContent():
            if part.text.strip():
                yield {"text": part.text}
        case ThinkingContent():
            yield from _thinking_blocks(target, part)
        case ToolCall():
            call = {"toolUseId": part.id, "name": names.wire(part.name), "input": arguments_object(part.arguments_json)}
            yield {"toolUse": call}
        case _:
            assert_never(part)


def _thinking_blocks(target: Target, part: ThinkingContent) -> Iterator[JsonObject]:
    """What is signed or sealed goes back byte for byte. What is not, from a model that signs, is text."""
    signature, sealed = text_at(part.replay, "signature"), text_at(part.replay, "redactedContent")
    if sealed:
        yield {"reasoningContent": {"redactedContent": sealed}}
    if signature and takes_signatures(target) and can_be_sent(part.text):
        yield {"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}
    elif part.text.strip():
        text: JsonObject = {"text": without_lone_surrogates(part.text)}
        yield text if is_claude(target) else {"reasoningContent": {"reasoningText": text}}


def _goes_on_without_thinking(messages: Sequence[JsonObject]) -> bool:
    """Whether the model is in the middle of a turn whose last calls do not begin with thinking."""
    if len(messages) < 2 or "toolResult" not in messages[-1]["content"][0]:
        return False
    return "reasoningContent" not in messages[-2]["content"][0]
