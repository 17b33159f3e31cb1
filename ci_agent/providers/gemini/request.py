"""Makes a request to Gemini or Vertex out of a conversation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
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
from ci_agent.providers.gemini.models import is_third_or_later, thinking_config
from ci_agent.providers.gemini.response import SIGNATURE
from ci_agent.providers.gemini.schemas import gemini_schema
from ci_agent.providers.wire.api import ApiRequest, Target
from ci_agent.providers.wire.history import arguments_object, cleaned, is_made_by, sendable_history
from ci_agent.providers.wire.tool_names import ToolNames, wire_tool_names
from ci_agent.providers.wire.tool_schemas import openapi_subset, without_top_level_alternatives
from ci_agent.providers.wire.untrusted_json import can_be_sent, text_at

NO_SIGNATURE = "skip_thought_signature_validator"
"""Google's word for a call that another model made, in place of the signature that newer models want."""

_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_MAX_TOOL_NAME = 64
_IMAGES_OF_RESULTS = "Images of the tool results above:"


@dataclass(frozen=True, slots=True)
class GeminiTraits:
    """How a server of this API differs from Google's own for developers."""

    takes_bearer: bool = False
    """Keys are tokens for the Authorization header, unless they look like an API key."""
    takes_json_schema: bool = True
    """Whether tools may have `parametersJsonSchema`; some proxies only know the subset of OpenAPI in `parameters`."""


def build_gemini_request(traits: GeminiTraits, target: Target, context: Context, options: StreamOptions) -> ApiRequest:
    """A BuildRequest, for a server with these traits."""
    names = wire_tool_names(context.tools, _TOOL_NAME, _MAX_TOOL_NAME)
    body: JsonObject = {}
    if context.system_prompt.strip():
        body["systemInstruction"] = {"parts": [{"text": cleaned(context.system_prompt)}]}
    body["contents"] = list(_contents(target, context, names))
    if context.tools:
        body["tools"] = [{"functionDeclarations": _declarations(traits, context, names)}]
    config = _generation_config(target, context, options)
    if config:
        body["generationConfig"] = config
    return ApiRequest(_path(target.model.id), body, {}, names.from_wire)


def _path(model_id: str) -> str:
    """A model may be named with its collection, as the API lists it: `models/NAME`, `tunedModels/NAME`."""
    collection, _, name = model_id.rpartition("/")
    known = collection if collection in ("models", "tunedModels") else "models"
    model = name if collection == known else model_id
    return f"/{known}/{quote(model, safe='')}:streamGenerateContent?alt=sse"


def _declarations(traits: GeminiTraits, context: Context, names: ToolNames) -> list[Json]:
    return [
        cleaned(
            {"name": names.wire(tool.name), "description": tool.description, **_parameters(traits, tool.parameters)}
        )
        for tool in context.tools
    ]


def _parameters(traits: GeminiTraits, schema: JsonObject) -> JsonObject:
    if not traits.takes_json_schema:
        return openapi_parameters(schema)
    return {"parametersJsonSchema": gemini_schema(without_top_level_alternatives(schema))}


def openapi_parameters(schema: JsonObject) -> JsonObject:
    """The field for servers that know no other; to them an object without properties is none, and is left out."""
    reduced = openapi_subset(without_top_level_alternatives(schema))
    return {"parameters": reduced} if reduced.get("properties") else {}


def _generation_config(target: Target, context: Context, options: StreamOptions) -> JsonObject:
    """The schema of the answer goes along with tools only to models that can call a tool all the same."""
    config: JsonObject = {}
    if options.max_output_tokens is not None:
        config["maxOutputTokens"] = options.max_output_tokens
    if options.temperature is not None and target.facts.takes_temperature is not False:
        config["temperature"] = options.temperature
    thinking = thinking_config(target, options)
    if thinking is not None:
        config["thinkingConfig"] = thinking
    schema = options.output_schema
    usable = target.facts.enforces_schema is not False and (not context.tools or is_third_or_later(target))
    if schema is not None and usable:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": cleaned(gemini_schema(schema))}
    return config


# Contents


def _contents(target: Target, context: Context, names: ToolNames) -> Iterator[JsonObject]:
    """Messages of one kind that follow each other are one content: all results of a turn, above all."""
    history = sendable_history(context.messages, target)
    ids = _ids_to_send(context.messages, history, target)
    for kind, group in groupby(history, key=type):
        messages = tuple(group)
        if kind is ToolResultMessage:
            yield from _results(target, messages, names, ids)
            continue
        parts = [part for message in messages for part in _parts(target, message, names, ids)]
        if parts:
            yield {"role": "model" if kind is AssistantMessage else "user", "parts": parts}


def _ids_to_send(messages: Sequence[Message], history: Sequence[Message], target: Target) -> set[str]:
    """Ids go back to a server that gives them: those of all calls of a message in which it gave any. Elsewhere order
    and names tell which result is whose."""
    received = {call.id for message in _own(messages, target) for call in message.tool_calls if call.id}
    own = [message.tool_calls for message in _own(history, target)]
    return {call.id for calls in own if any(call.id in received for call in calls) for call in calls}


def _own(messages: Sequence[Message], target: Target) -> Iterator[AssistantMessage]:
    for message in messages:
        if isinstance(message, AssistantMessage) and is_made_by(message, target):
            yield message


def _parts(target: Target, message: Message, names: ToolNames, ids: set[str]) -> Iterator[JsonObject]:
    match message:
        case UserMessage():
            yield from (_user_part(part) for part in message.content)
        case AssistantMessage():
            parts = [part for part in message.content if _is_sent(part)]
            is_signed = is_made_by(message, target) or not is_third_or_later(target)
            unsigned = None if is_signed else next(iter(message.tool_calls), None)
            for part in parts:
                yield _model_part(part, names, ids) | ({SIGNATURE: NO_SIGNATURE} if part is unsigned else {})
        case ToolResultMessage():
            yield _result_part(target, message, names, ids)
        case _:
            assert_never(message)


def _user_part(part: TextContent | ImageContent) -> JsonObject:
    if isinstance(part, TextContent):
        return {"text": part.text}
    return {"inlineData": {"mimeType": part.mime_type, "data": part.data_base64}}


def _is_sent(part: AssistantContent) -> bool:
    """Thinking without a signature is a summary for people: the model gets nothing from it."""
    return not isinstance(part, ThinkingContent) or (bool(_signature(part)) and can_be_sent(part.text))


def _model_part(part: AssistantContent, names: ToolNames, ids: set[str]) -> JsonObject:
    match part:
        case TextContent():
            return {"text": part.text} | _signature(part)
        case ThinkingContent():
            return {"text": part.text, "thought": True} | _signature(part)
        case ToolCall():
            arguments = arguments_object(part.arguments_json)
            call = _id(part.id, ids) | {"name": names.wire(part.name), "args": arguments}
            return {"functionCall": call} | _signature(part)
    assert_never(part)


def _signature(part: AssistantContent) -> JsonObject:
    signature = text_at(part.replay, SIGNATURE)
    return {SIGNATURE: signature} if signature else {}


def _id(id_: str, ids: set[str]) -> JsonObject:
    return {"id": id_} if id_ in ids else {}


def _results(target: Target, messages: Sequence[Message], names: ToolNames, ids: set[str]) -> Iterator[JsonObject]:
    """As many results as calls, and nothing else beside them; older models get the images in a content of their own."""
    yield {"role": "user", "parts": [part for message in messages for part in _parts(target, message, names, ids)]}
    images = [image for message in messages for image in _images(message)]
    if images and not is_third_or_later(target):
        yield {"role": "user", "parts": [{"text": _IMAGES_OF_RESULTS}, *images]}


def _result_part(target: Target, message: ToolResultMessage, names: ToolNames, ids: set[str]) -> JsonObject:
    text = "\n".join(part.text for part in message.content if isinstance(part, TextContent))
    response = _id(message.tool_call_id, ids) | {
        "name": names.wire(message.tool_name),
        "response": {"error" if message.is_error else "output": text},
    }
    images = list(_images(message)) if is_third_or_later(target) else []
    return {"functionResponse": response | ({"parts": images} if images else {})}


def _images(message: Message) -> Iterator[JsonObject]:
    if isinstance(message, ToolResultMessage):
        yield from (_user_part(part) for part in message.content if isinstance(part, ImageContent))
