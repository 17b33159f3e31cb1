"""A conversation as the messages of a Chat Completions request.

What a part's `replay` holds: thinking the `field` that it came in, `reasoning_details` and `extra_content` verbatim;
a call its `extra_content`.
"""

from collections.abc import Iterable, Iterator, Sequence

from ci_agent.json_types import JsonObject
from ci_agent.messages import (
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
from ci_agent.providers.openai_chat.traits import ChatTraits
from ci_agent.providers.wire.api import Target
from ci_agent.providers.wire.history import sendable_history, without_lone_surrogates
from ci_agent.providers.wire.tool_names import ToolNames

THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
LIST_FIELD = "content"
"""Where thinking came as an item of the content."""
VERBATIM_FIELDS = ("reasoning_details", "extra_content")

_NO_OUTPUT = "(no output)"
_ONLY_IMAGES = "(images, in the next message of the user)"


def chat_messages(
    traits: ChatTraits, target: Target, context: Context, options: StreamOptions, names: ToolNames
) -> list[JsonObject]:
    """The system prompt, and all messages. A user never speaks twice in a row: templates of many models refuse that."""
    system = without_lone_surrogates(context.system_prompt).strip()
    messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for message in _wire_messages(traits, sendable_history(context.messages, target, traits.ids), names):
        if message["role"] == "user" and messages and messages[-1]["role"] == "user":
            messages[-1]["content"] = _joined(messages[-1]["content"], message["content"])
        else:
            messages.append(message)
    if traits.thinks_in_every_message:
        _think_in_every_message(messages, options)
    return messages


def _wire_messages(traits: ChatTraits, history: Iterable[Message], names: ToolNames) -> Iterator[JsonObject]:
    """Images of results follow the last result of the turn as a user's: most servers take none in a result."""
    images: list[JsonObject] = []
    for message in history:
        if images and not isinstance(message, ToolResultMessage):
            yield {"role": "user", "content": images}
            images = []
        match message:
            case UserMessage():
                yield {"role": "user", "content": _user_content(message.content)}
            case AssistantMessage():
                yield _assistant_message(message, names)
            case ToolResultMessage():
                yield _result_message(traits, message, names)
                images += [] if traits.rich_results else _images_of(message)
    if images:
        yield {"role": "user", "content": images}


# What a user says


def _user_content(content: Sequence[TextContent | ImageContent]) -> str | list[JsonObject]:
    """Plain text where it can be: some models answer lists with lists."""
    if any(isinstance(part, ImageContent) for part in content):
        return [_part(part) for part in content]
    return "\n\n".join(part.text for part in content if isinstance(part, TextContent))


def _part(part: TextContent | ImageContent) -> JsonObject:
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": f"data:{part.mime_type};base64,{part.data_base64}"}}


def _joined(first: str | list[JsonObject], second: str | list[JsonObject]) -> str | list[JsonObject]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: str | list[JsonObject]) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


# What the model said


def _assistant_message(message: AssistantMessage, names: ToolNames) -> JsonObject:
    text = "\n\n".join(part.text for part in message.content if isinstance(part, TextContent))
    wire: JsonObject = {"role": "assistant", "content": text}
    for part in message.content:
        if isinstance(part, ThinkingContent):
            _put_thinking(wire, part)
    if message.tool_calls:
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [_call(call, names) for call in message.tool_calls]
    return wire


def _put_thinking(wire: JsonObject, part: ThinkingContent) -> None:
    replay = part.replay or {}
    field = replay.get("field")
    if field in THINKING_FIELDS:
        wire[field] = part.text
    elif field == LIST_FIELD:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
        wire["content"] = [thought, *(_as_parts(wire["content"]) if wire["content"] else [])]
    wire.update({name: replay[name] for name in VERBATIM_FIELDS if name in replay})


def _call(call: ToolCall, names: ToolNames) -> JsonObject:
    function = {"name": names.wire(call.name), "arguments": call.arguments_json}
    kept = {name: value for name, value in (call.replay or {}).items() if name in VERBATIM_FIELDS}
    return {"id": call.id, "type": "function", "function": function, **kept}


def _think_in_every_message(messages: list[JsonObject], options: StreamOptions) -> None:
    answers = [message for message in messages if message["role"] == "assistant"]
    if options.thinking not in (None, "off") or any("reasoning_content" in answer for answer in answers):
        for answer in answers:
            answer.setdefault("reasoning_content", "")


# What the tools said


def _result_message(traits: ChatTraits, message: ToolResultMessage, names: ToolNames) -> JsonObject:
    """There is no flag for errors, so the text says it."""
    text = "\n".join(part.text for part in message.content if isinstance(part, TextContent))
    images = [_part(part) for part in message.content if isinstance(part, ImageContent)]
    text = text or (_ONLY_IMAGES if images and not traits.rich_results else _NO_OUTPUT)
    text = f"Error: {text}" if message.is_error else text
    wire: JsonObject = {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}
    if traits.rich_results:
        wire["name"] = names.wire(message.tool_name)
        wire["content"] = [*_as_parts(text), *images] if images else text
    return wire


def _images_of(message: ToolResultMessage) -> list[JsonObject]:
    images = [_part(part) for part in message.content if isinstance(part, ImageContent)]
    label = f"From the result of {message.tool_name} ({message.tool_call_id}):"
    return [*_as_parts(label), *images] if images else []
