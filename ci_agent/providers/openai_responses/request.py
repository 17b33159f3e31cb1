"""Makes a request to the OpenAI Responses API out of a conversation. Nothing is stored at the server: each request
holds all of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from ci_agent.provider import Context, StreamOptions
from ci_agent.providers.wire.api import ApiRequest, Target
from ci_agent.providers.wire.history import IdRule, cleaned, is_made_by, sendable_history
from ci_agent.providers.wire.tool_names import ToolNames, wire_tool_names
from ci_agent.providers.wire.tool_schemas import is_strict, without_top_level_alternatives
from ci_agent.providers.wire.untrusted_json import text_at, value_at

PATH = "/responses"

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MAX_TOOL_NAME = 64
_IDS = IdRule(re.compile(r"[A-Za-z0-9_-]"), max_length=64)
_MAX_CACHE_KEY = 64


@dataclass(frozen=True, slots=True)
class ResponsesTraits:
    """How a server of this API differs from OpenAI's own."""

    key_header: str | None = None
    """The header that carries the bare key; None: Authorization, as a bearer token."""
    takes_cache_key: bool = True
    takes_text_between_calls: bool = True
    """Whether the calls of a turn may have something else between them."""


def build_responses_request(
    traits: ResponsesTraits, target: Target, context: Context, options: StreamOptions
) -> ApiRequest:
    """A BuildRequest, for a server with these traits."""
    names = wire_tool_names(context.tools, _TOOL_NAME, _MAX_TOOL_NAME)
    body: JsonObject = {"model": target.model.id, "stream": True, "store": False}
    if context.system_prompt.strip():
        body["instructions"] = cleaned(context.system_prompt)
    body["input"] = _input(traits, target, context, names)
    if context.tools:
        body["tools"] = _tools(context, names)
    if target.facts.thinks is not False:
        body["include"] = ["reasoning.encrypted_content"]
        body |= _reasoning(options)
    if options.max_output_tokens is not None:
        body["max_output_tokens"] = options.max_output_tokens
    if options.temperature is not None and target.facts.takes_temperature is not False:
        body["temperature"] = options.temperature
    if options.output_schema is not None and target.facts.enforces_schema is not False:
        body |= _text_format(options.output_schema)
    if options.conversation_id is not None and traits.takes_cache_key:
        body["prompt_cache_key"] = options.conversation_id[:_MAX_CACHE_KEY]
    return ApiRequest(PATH, body, tool_names=names.from_wire)


def _tools(context: Context, names: ToolNames) -> list[Json]:
    """Without `strict` the API would make every schema strict, and say no to most."""
    return [
        cleaned(
            {
                "type": "function",
                "name": names.wire(tool.name),
                "description": tool.description,
                "parameters": without_top_level_alternatives(tool.parameters),
                "strict": False,
            }
        )
        for tool in context.tools
    ]


def _reasoning(options: StreamOptions) -> JsonObject:
    if options.thinking is None:
        return {}
    if options.thinking == "off":
        return {"reasoning": {"effort": "none"}}
    return {"reasoning": {"effort": options.thinking, "summary": "auto"}}


def _text_format(schema: JsonObject) -> JsonObject:
    """The API takes objects alone. Where it cannot enforce all of the schema, the schema is a hint."""
    if schema.get("type") != "object":
        return {}
    answer = {"type": "json_schema", "name": "answer", "schema": cleaned(schema), "strict": is_strict(schema)}
    return {"text": {"format": answer}}


# Input items


def _input(traits: ResponsesTraits, target: Target, context: Context, names: ToolNames) -> list[JsonObject]:
    history = sendable_history(context.messages, target, _IDS)
    return [item for message in history for item in _items(traits, target, message, names)]


def _items(
    traits: ResponsesTraits,
    target: Target,
    message: UserMessage | AssistantMessage | ToolResultMessage,
    names: ToolNames,
) -> Sequence[JsonObject]:
    match message:
        case UserMessage():
            return [{"role": "user", "content": [_input_part(part) for part in message.content]}]
        case ToolResultMessage():
            return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": _output(message)}]
        case AssistantMessage():
            own = is_made_by(message, target) and all(_is_whole_item(part) for part in message.content)
            items = [item for part in message.content for item in _assistant_items(part, names, whole=own)]
            if not (own and traits.takes_text_between_calls):
                items.sort(key=lambda item: item.get("type") == "function_call")
            return _without_last_reasoning(items)
    assert_never(message)


def _input_part(part: TextContent | ImageContent) -> JsonObject:
    if isinstance(part, TextContent):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "detail": "auto", "image_url": f"data:{part.mime_type};base64,{part.data_base64}"}


def _output(message: ToolResultMessage) -> Json:
    """The API has no word for a failed call, so the text says it."""
    mark = "Error: " if message.is_error else ""
    if any(isinstance(part, ImageContent) for part in message.content):
        parts = [_input_part(part) for part in message.content]
        return [_input_part(TextContent(mark.strip())), *parts] if mark else parts
    return mark + "\n".join(part.text for part in message.content if isinstance(part, TextContent))


def _is_whole_item(part: AssistantContent) -> bool:
    """Whether the part can go back as the item that it was. The server takes no item with an id whose reasoning is
    missing, and no reasoning that it cannot decrypt; so a message goes back all in items or all without."""
    match part:
        case TextContent() | ToolCall():
            return bool(text_at(part.replay, "id"))
        case ThinkingContent():
            item = value_at(part.replay, "item")
            is_reasoning = text_at(item, "type") == "reasoning"
            return isinstance(item, dict) and (not is_reasoning or bool(text_at(item, "encrypted_content")))
    assert_never(part)


def _assistant_items(part: AssistantContent, names: ToolNames, *, whole: bool) -> Iterator[JsonObject]:
    id_ = {"id": text_at(part.replay, "id")} if whole else {}
    match part:
        case TextContent():
            phase = text_at(part.replay, "phase")
            yield {**_message_item(part.text, id_), **({"phase": phase} if phase else {})}
        case ToolCall():
            name = names.wire(part.name)
            call = {"type": "function_call", "call_id": part.id, "name": name, "arguments": part.arguments_json}
            yield {**call, **id_}
        case ThinkingContent():
            if whole:
                yield value_at(part.replay, "item")
        case _:
            assert_never(part)


def _message_item(text: str, id_: JsonObject) -> JsonObject:
    if not id_:
        return {"role": "assistant", "content": text}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", **id_, "status": "completed", "content": content}


def _without_last_reasoning(items: list[JsonObject]) -> list[JsonObject]:
    """The server refuses reasoning that nothing follows."""
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items
