"""Reads what the OpenAI Responses API answers: a stream of events about output items, or one response.

What a part's `replay` holds: a text the `id` and `phase` of its message item, a call the `id` of its item; reasoning,
and any other item that is not known, is a thinking part whose `item` is the whole item.
"""

import json
from collections.abc import Iterator
from typing import assert_never

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import Usage
from ci_agent.provider import ContentEvent
from ci_agent.providers.openai_responses.slots import (
    DELTAS,
    WHOLE,
    Channel,
    Slot,
    output_index,
    slot_of_event,
    slot_of_part,
    text_of,
)
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.errors_on_wire import error_from_object
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.other_formats import refuse_other_formats
from ci_agent.providers.wire.sse import read_json_events
from ci_agent.providers.wire.untrusted_json import can_be_sent, list_at, object_at, text_at
from ci_agent.providers.wire.usage_counts import count_at

ENDPOINT = "/responses"

_LAST_EVENTS = (
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
    "response.done",
)


def read_stream(chunks: Iterator[bytes], assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadStream."""
    reader = _ResponseReader(assembly)
    for name, data in read_json_events(chunks):
        yield from reader.take(text_at(data, "type") or name, data)
        if reader.ended or name == "[DONE]":
            break
    yield from reader.finish()


def read_answer(body: Json, assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadAnswer."""
    reader = _ResponseReader(assembly)
    yield from reader.take_answer(body)
    yield from reader.finish()


class _ResponseReader:
    def __init__(self, assembly: Assembly) -> None:
        self.ended = False
        """Whether the server said that there is no more."""
        self._assembly = assembly
        self._items: dict[int, JsonObject] = {}
        """The items that have begun, as they began."""
        self._done: set[int] = set()
        self._said: dict[Slot, list[str]] = {}
        self._thinks_in: dict[int, Channel] = {}

    def take(self, kind: str, data: JsonObject) -> Iterator[ContentEvent]:
        """One event of a stream. Kinds that are not known are skipped."""
        if kind in DELTAS:
            channel, counter = DELTAS[kind]
            yield from self._say(slot_of_event(data, channel, counter), text_at(data, "delta"))
        elif kind in WHOLE:
            channel, counter, name = WHOLE[kind]
            yield from self._complete(slot_of_event(data, channel, counter), text_of(data, name))
        elif kind in _LAST_EVENTS:
            yield from self._end(kind, object_at(data, "response"))
        elif kind == "response.output_item.added":
            yield from self._begin_item(output_index(data), object_at(data, "item"))
        elif kind == "response.output_item.done":
            yield from self._end_item(output_index(data), object_at(data, "item"))
        elif kind == "[DONE]":
            self.ended = bool(self._items) and self._done >= self._items.keys()
        else:
            refuse_other_formats(ENDPOINT, kind, data)
            self._identify(object_at(data, "response"))

    def take_answer(self, body: Json) -> Iterator[ContentEvent]:
        """A whole response."""
        if not isinstance(body, dict):
            raise _malformed(f"the server's answer at {ENDPOINT} is no JSON object", retryable=False)
        refuse_other_formats(ENDPOINT, text_at(body, "type"), body)
        if not isinstance(body.get("output"), list):
            raise _malformed(f"the server's answer at {ENDPOINT} is no response: it has no output", retryable=False)
        yield from self._end("response.completed", body)

    def finish(self) -> Iterator[ContentEvent]:
        if not self.ended:
            raise ApiError("truncated", "the stream ended before the response did", retryable=True)
        if self._assembly.stop_reason != "length":
            self._check_calls()
        yield from self._assembly.end_content()
        refusal = "".join("".join(pieces) for slot, pieces in self._said.items() if slot.channel == "refusal")
        if refusal:
            raise ApiError("refused", f"the model declined to answer: {refusal[:500]}", retryable=False)
        self._assembly.stop_reason = self._assembly.end_turn(terminated=True)

    def _check_calls(self) -> None:
        """A call whose end the server did not tell must at least be whole JSON; nothing may be something lost."""
        for index in self._items.keys() - self._done:
            is_call = text_at(self._items[index], "type") == "function_call"
            if is_call and not _is_json("".join(self._said.get(Slot(index, "arguments", 0), ()))):
                raise _malformed("the response ended in the middle of a tool call", retryable=True)

    # The response

    def _identify(self, response: JsonObject) -> None:
        self._assembly.identify(response_id=text_at(response, "id"), model=text_at(response, "model"))

    def _end(self, kind: str, response: JsonObject) -> Iterator[ContentEvent]:
        self._identify(response)
        self._assembly.usage = _usage(object_at(response, "usage")) or self._assembly.usage
        yield from self._take_output(list_at(response, "output"))
        status = text_at(response, "status")
        if f"response.{status}" not in _LAST_EVENTS:
            status = kind.removeprefix("response.")
        match status:
            case "completed" | "done":
                pass
            case "incomplete":
                self._stop_early(text_at(response, "incomplete_details", "reason"))
            case _:
                raise _failure(status, response)
        self.ended = True

    def _take_output(self, output: list[Json]) -> Iterator[ContentEvent]:
        """What the last event repeats counts only where the events before left something open: its positions need not
        be theirs, and nothing may be taken twice."""
        is_all = not self._items
        for index, item in enumerate(output):
            if is_all or (index not in self._done and _is_same_item(self._items.get(index), item)):
                yield from self._end_item(index, object_at({"item": item}, "item"))

    def _stop_early(self, reason: str) -> None:
        match reason:
            case "max_output_tokens" | "max_tokens" | "length" | "":
                self._assembly.stop_reason = "length"
            case "content_filter":
                raise ApiError("refused", "a content filter cut the response off", retryable=False)
            case _:
                raise _malformed(
                    f"the response ended for a reason that is not known: {reason[:100]!r}", retryable=False
                )

    # Items

    def _begin_item(self, index: int, item: JsonObject) -> Iterator[ContentEvent]:
        begun = self._items.get(index)
        if begun is not None:
            if not _is_same_item(begun, item):
                raise _malformed(f"output item {index} began twice", retryable=True)
            return
        self._items[index] = item
        match text_at(item, "type"):
            case "function_call":
                yield from self._assembly.tool_call(key=index, id=_call_id(item), name=text_at(item, "name"))
            case "reasoning":
                yield from self._assembly.keep("thinking", {}, index)

    def _end_item(self, index: int, item: JsonObject) -> Iterator[ContentEvent]:
        if index in self._done:
            return
        yield from self._begin_item(index, item)
        self._done.add(index)
        match text_at(item, "type"):
            case "":
                pass
            case "message":
                yield from self._complete_parts(index, list_at(item, "content"))
                if any(slot.output_index == index for slot in self._said):
                    self._assembly.keep("text", _texts_at(item, "id", "phase"), index)
                yield from self._assembly.end_part("text", index)
            case "function_call":
                yield from self._end_call(index, item)
            case "reasoning":
                yield from self._complete_parts(index, list_at(item, "summary"))
                yield from self._complete_parts(index, list_at(item, "content"))
                yield from self._keep_item(index, item)
            case _:
                yield from self._keep_item(index, item)

    def _end_call(self, index: int, item: JsonObject) -> Iterator[ContentEvent]:
        begun = self._items[index]
        id_ = "" if _call_id(begun) else _call_id(item)
        name = "" if text_at(begun, "name") else text_at(item, "name")
        yield from self._assembly.tool_call(key=index, id=id_, name=name)
        yield from self._complete(Slot(index, "arguments", 0), text_of(item, "arguments"))
        if text_at(item, "status") == "incomplete":  # even if the whole response is said to be complete
            self._assembly.stop_reason = "length"
        self._assembly.keep("toolcall", _texts_at(item, "id"), index)
        yield from self._assembly.end_part("toolcall", index)

    def _keep_item(self, index: int, item: JsonObject) -> Iterator[ContentEvent]:
        if can_be_sent(item):
            self._assembly.keep("thinking", {"item": item}, index)
        return self._assembly.end_part("thinking", index)

    # Texts

    def _complete_parts(self, index: int, parts: list[Json]) -> Iterator[ContentEvent]:
        for number, part in enumerate(parts):
            found = slot_of_part(index, number, part)
            if found is not None:
                yield from self._complete(*found)

    def _complete(self, slot: Slot, whole: str) -> Iterator[ContentEvent]:
        """Say what of the whole text the pieces did not bring."""
        said = "".join(self._said.get(slot, ()))
        if whole.startswith(said):
            yield from self._say(slot, whole[len(said) :])
        elif slot.channel == "arguments" and whole and not _is_same_json(said, whole):
            raise _malformed("a tool call's arguments are not what its pieces were", retryable=True)

    def _say(self, slot: Slot, piece: str) -> Iterator[ContentEvent]:
        if not piece:
            return
        is_first = slot not in self._said
        self._said.setdefault(slot, []).append(piece)
        match slot.channel:
            case "text" | "refusal":
                yield from self._assembly.text(piece, slot.output_index)
            case "arguments":
                yield from self._assembly.tool_call(key=slot.output_index, arguments=piece)
            case "summary" | "reasoning":
                if self._thinks_in.setdefault(slot.output_index, slot.channel) == slot.channel:
                    paragraph = "\n\n" if is_first and slot.part > 0 else ""
                    yield from self._assembly.thinking(paragraph + piece, slot.output_index)
            case _:
                assert_never(slot.channel)


def _call_id(item: JsonObject) -> str:
    return text_at(item, "call_id") or text_at(item, "id")


def _is_same_item(begun: JsonObject | None, item: Json) -> bool:
    """Whether an item is the one that began at this place; its id may have changed."""
    if begun is None or text_at(begun, "type") != text_at(item, "type"):
        return False
    return all(len({text_at(begun, key), text_at(item, key)} - {""}) < 2 for key in ("call_id", "name"))


def _texts_at(source: JsonObject, *names: str) -> JsonObject:
    return {name: text_at(source, name) for name in names if text_at(source, name)}


def _usage(usage: JsonObject) -> Usage | None:
    """The API counts what it read from and wrote to its cache as input."""
    sent, said = count_at(usage, "input_tokens"), count_at(usage, "output_tokens")
    if sent is None and said is None:
        return None
    read = count_at(usage, "input_tokens_details", "cached_tokens") or 0
    written = count_at(usage, "input_tokens_details", "cache_write_tokens") or 0
    return Usage(
        input_tokens=max(0, (sent or 0) - read - written),
        output_tokens=said or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_same_json(one: str, other: str) -> bool:
    return _is_json(one) and _is_json(other) and bool(json.loads(one) == json.loads(other))


def _failure(status: str, response: JsonObject) -> ApiError:
    if object_at(response, "error"):
        return error_from_object({"error": response["error"]}, status=None)
    return ApiError("server", f"the response is {status}, and the server does not say why", retryable=True)


def _malformed(problem: str, *, retryable: bool) -> ApiError:
    return ApiError("malformed", problem, retryable=retryable)
