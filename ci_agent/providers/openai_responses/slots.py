"""Where a piece of text belongs in a response: which output item, which kind of text in it, which part of that."""

import json
from typing import Literal, NamedTuple, TypeAlias

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.untrusted_json import text_at
from ci_agent.providers.wire.usage_counts import count_at

Channel: TypeAlias = Literal["text", "refusal", "arguments", "summary", "reasoning"]

DELTAS: dict[str, tuple[Channel, str]] = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.function_call_arguments.delta": ("arguments", ""),
    "response.reasoning_summary_text.delta": ("summary", "summary_index"),
    "response.reasoning_text.delta": ("reasoning", "content_index"),
}
"""Where the text in `delta` belongs, and which field counts the parts of the item."""

WHOLE: dict[str, tuple[Channel, str, str]] = {
    "response.output_text.done": ("text", "content_index", "text"),
    "response.refusal.done": ("refusal", "content_index", "refusal"),
    "response.function_call_arguments.done": ("arguments", "", "arguments"),
    "response.reasoning_summary_text.done": ("summary", "summary_index", "text"),
    "response.reasoning_text.done": ("reasoning", "content_index", "text"),
}
"""The same for events that repeat the whole text; servers may send nothing before."""

_PARTS: dict[str, tuple[Channel, str]] = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary_text": ("summary", "text"),
    "reasoning_text": ("reasoning", "text"),
}
"""The same for the parts of a finished item, by their type."""


class Slot(NamedTuple):
    """One running text: items are known by their place, for some servers change their ids on the way."""

    output_index: int
    channel: Channel
    part: int


def slot_of_event(data: JsonObject, channel: Channel, counter: str) -> Slot:
    return Slot(output_index(data), channel, count_at(data, counter) or 0)


def slot_of_part(output_index: int, number: int, part: Json) -> tuple[Slot, str] | None:
    """The place and the text of a part of a finished item; None for parts of other kinds."""
    kind = text_at(part, "type")
    if kind not in _PARTS:
        return None
    channel, name = _PARTS[kind]
    return Slot(output_index, channel, number), text_at(part, name)


def output_index(data: JsonObject) -> int:
    index = count_at(data, "output_index")
    if index is None:
        raise ApiError("malformed", "an event about an output item does not say about which", retryable=True)
    return index


def text_of(source: JsonObject, name: str) -> str:
    """A text; of arguments that came as an object, their JSON."""
    value = source.get(name)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else text_at(source, name)
