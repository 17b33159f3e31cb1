"""Makes a request to the Anthropic Messages API out of a conversation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

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
from ci_agent.providers.anthropic.models import ThinkingRequest, can_enforce, max_tokens, thinking_request
from ci_agent.providers.wire.api import ApiRequest, Target
from ci_agent.providers.wire.history import IdRule, alternating, arguments_object, cleaned, sendable_history
from ci_agent.providers.wire.tool_names import ToolNames, wire_tool_names
from ci_agent.providers.wire.tool_schemas import without_top_level_alternatives
from ci_agent.providers.wire.untrusted_json import list_at, text_at, value_at

PATH = "/v1/messages"
VERSION = "2023-06-01"

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MAX_TOOL_NAME = 64
_IDS = IdRule(re.compile(r"[A-Za-z0-9_-]"), max_length=64)

_THINKING_BLOCKS = ("thinking", "redacted_thinking")
_NO_OUTPUT = "(no output)"
"""The API refuses an error without content, and texts without anything but spaces."""


@dataclass(frozen=True, slots=True)
class AnthropicTraits:
    """How a server of this API differs from Anthropic's own."""

    takes_bearer: bool = False
    """The key goes into the Authorization header, as proxies want it."""
    takes_cache_control: bool = True
    signs_thinking: bool = True
    """Whether only thinking with a signature may be sent back; servers that sign nothing may want it back bare."""


def build_anthropic_request(
    traits: AnthropicTraits, target: Target, context: Context, options: StreamOptions
) -> ApiRequest:
    """A BuildRequest, for a server with these traits."""
    names = wire_tool_names(context.tools, _TOOL_NAME, _MAX_TOOL_NAME)
    history = sendable_history(context.messages, target, _IDS)
    messages = alternating(history, lambda message: _blocks(traits, message, names))
    thinking = thinking_request(target, options)
    if thinking.needs_thinking_before_calls and _goes_on_without_thinking(messages):
        thinking = ThinkingRequest()
    body: JsonObject = {"model": target.model.id, "max_tokens": max_tokens(target, options), "stream": True}
    if context.system_prompt.strip():
        body["system"] = [{"type": "text", "text": cleaned(context.system_prompt)}]
    if context.tools:
        body["tools"] = _tools(context, names)
    body["messages"] = messages
    if thinking.field is not None:
        body["thinking"] = thinking.field
    if options.temperature is not None and not thinking.thinks and target.facts.takes_temperature is not False:
        body["temperature"] = options.temperature
    output_config = _output_config(thinking, target, options)
    if output_config:
        body["output_config"] = output_config
    if traits.takes_cache_control:
        _mark_cached(body)
    headers = {"anthropic-version": VERSION, **({"anthropic-beta": thinking.beta} if thinking.beta else {})}
    return ApiRequest(PATH, body, headers, names.from_wire)


def _tools(context: Context, names: ToolNames) -> list[Json]:
    return [
        cleaned(
            {
                "name": names.wire(tool.name),
                "description": tool.description,
                "input_schema": without_top_level_alternatives(tool.parameters),
            }
        )
        for tool in context.tools
    ]


def _output_config(thinking: ThinkingRequest, target: Target, options: StreamOptions) -> JsonObject:
    """The schema is sent only where the API can hold the model to all of it; otherwise the caller's check is the one
    there is, and nothing is taken out of the schema to please the API."""
    config: JsonObject = {} if thinking.effort is None else {"effort": thinking.effort}
    schema = options.output_schema
    if schema is not None and can_enforce(schema, target):
        config["format"] = {"type": "json_schema", "schema": cleaned(schema)}
    return config


def _mark_cached(body: JsonObject) -> None:
    """Up to three marks of the four there may be: what never changes in a run, and the whole conversation so far."""
    user = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in (body.get("system"), body.get("tools"), user[-1] if user else None):
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}


# Messages


def _blocks(traits: AnthropicTraits, message: Message, names: ToolNames) -> Sequence[JsonObject]:
    match message:
        case UserMessage():
            return [_user_block(part) for part in message.content]
        case ToolResultMessage():
            return [_result_block(message)]
        case AssistantMessage():
            blocks = [block for part in message.content for block in _assistant_blocks(traits, part, names)]
            return _without_loose_ends(blocks)
    assert_never(message)


def _user_block(part: TextContent | ImageContent) -> JsonObject:
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    return {"type": "image", "source": {"type": "base64", "media_type": part.mime_type, "data": part.data_base64}}


def _result_block(message: ToolResultMessage) -> JsonObject:
    content = [_user_block(part) for part in message.content] or [{"type": "text", "text": _NO_OUTPUT}]
    block: JsonObject = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
    return block | {"is_error": True} if message.is_error else block


def _assistant_blocks(traits: AnthropicTraits, part: AssistantContent, names: ToolNames) -> Iterator[JsonObject]:
    match part:
        case TextContent():
            if part.text.strip():
                yield {"type": "text", "text": part.text, **_citations(part)}
        case ThinkingContent():
            yield from _thinking_blocks(traits, part)
        case ToolCall():
            arguments = arguments_object(part.arguments_json)
            yield {"type": "tool_use", "id": part.id, "name": names.wire(part.name), "input": arguments}
        case _:
            assert_never(part)


def _citations(part: TextContent) -> JsonObject:
    citations = list_at(part.replay, "citations")
    return {"citations": citations} if citations else {}


def _thinking_blocks(traits: AnthropicTraits, part: ThinkingContent) -> Iterator[JsonObject]:
    """What is signed goes back byte for byte. What is not, from a server that signs, is text."""
    block = value_at(part.replay, "block")
    signature = text_at(part.replay, "signature")
    if isinstance(block, dict):
        yield block
    elif signature:
        yield {"type": "thinking", "thinking": part.text, "signature": signature}
    elif part.text.strip():
        kind = "text" if traits.signs_thinking else "thinking"
        yield {"type": kind, kind: part.text}


def _without_loose_ends(blocks: list[JsonObject]) -> list[JsonObject]:
    """Without thinking that nothing follows, and without the server's own calls and results that lack the other half:
    the API refuses both."""
    used = {block.get("id") for block in blocks if _is_of_server(block, "_tool_use")}
    answered = {block.get("tool_use_id") for block in blocks if _is_of_server(block, "_tool_result")}
    kept = [
        block
        for block in blocks
        if not (_is_of_server(block, "_tool_use") and block.get("id") not in answered)
        and not (_is_of_server(block, "_tool_result") and block.get("tool_use_id") not in used)
    ]
    while kept and kept[-1]["type"] in _THINKING_BLOCKS:
        kept.pop()
    return kept


def _is_of_server(block: JsonObject, suffix: str) -> bool:
    """`server_tool_use`, `mcp_tool_use` and the results of such, unlike `tool_use`."""
    return text_at(block, "type").endswith(suffix)


def _goes_on_without_thinking(messages: list[JsonObject]) -> bool:
    """Whether the model is in the middle of a turn whose last calls do not begin with thinking, because it was off or
    another model made them."""
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in _THINKING_BLOCKS
