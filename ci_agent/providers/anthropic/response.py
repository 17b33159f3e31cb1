"""Reads what the Anthropic Messages API answers: a stream of events about content blocks, or one message.

What a part's `replay` holds: a thinking part its `signature`, a text its `citations`; anything else that the model said
or that the server did is a thinking part without text whose `block` is the whole block.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.messages import Usage
from ci_agent.provider import ContentEvent
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.other_formats import refuse_other_formats
from ci_agent.providers.wire.sse import read_json_events
from ci_agent.providers.wire.untrusted_json import can_be_sent, list_at, object_at, text_at
from ci_agent.providers.wire.usage_counts import count_at

ENDPOINT = "/v1/messages"

_STOP_REASONS: dict[str, Literal["stop", "length", "tool_use"]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_use",
}

_USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def read_stream(chunks: Iterator[bytes], assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadStream."""
    reader = _MessageReader(assembly)
    for name, data in read_json_events(chunks):
        yield from reader.take(text_at(data, "type") or name, data)
        if reader.ended:
            break
    yield from reader.finish()


def read_answer(body: Json, assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadAnswer."""
    reader = _MessageReader(assembly)
    yield from reader.take_answer(body)
    yield from reader.finish()


@dataclass(slots=True)
class _Block:
    """A content block that is still open."""

    type: str
    start: JsonObject
    pieces: list[str] = field(default_factory=list)
    """Of its text, or of the JSON text of its input."""
    signature: str = ""
    citations: list[Json] = field(default_factory=list)


class _MessageReader:
    def __init__(self, assembly: Assembly) -> None:
        self.ended = False
        """Whether the server said that there is no more."""
        self._assembly = assembly
        self._id: str | None = None
        """None: no message has begun."""
        self._open: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}

    def take(self, kind: str, data: JsonObject) -> Iterator[ContentEvent]:
        """One event of a stream. Kinds that are not known are skipped, `ping` among them."""
        match kind:
            case "message_start":
                self._begin(object_at(data, "message"))
            case "content_block_start":
                yield from self._begin_block(_index(data), object_at(data, "content_block"))
            case "content_block_delta":
                yield from self._add(_index(data), object_at(data, "delta"))
            case "content_block_stop":
                yield from self._end_block(_index(data))
            case "message_delta":
                self._count(object_at(data, "usage"))
                self._stop(object_at(data, "delta"))
            case "message_stop" | "[DONE]":
                self.ended = True
            case _:
                refuse_other_formats(ENDPOINT, kind, data)

    def take_answer(self, body: Json) -> Iterator[ContentEvent]:
        """A whole message."""
        if not isinstance(body, dict):
            raise _malformed(f"the server's answer at {ENDPOINT} is no JSON object", retryable=False)
        refuse_other_formats(ENDPOINT, text_at(body, "type"), body)
        content = body.get("content")
        if not isinstance(content, list):
            raise _malformed(f"the server's answer at {ENDPOINT} is no message: it has no content", retryable=False)
        self._begin(body)
        for index, block in enumerate(content):
            yield from self._begin_block(index, object_at({"block": block}, "block"))
            yield from self._end_block(index)
        self._stop(body)
        self.ended = True

    def finish(self) -> Iterator[ContentEvent]:
        """End the message. A call whose end the server did not tell may lack a piece, even if it reads as JSON."""
        if not self.ended:
            raise ApiError("truncated", "the stream ended before the message did", retryable=True)
        if self._assembly.stop_reason != "length" and any(block.type == "tool_use" for block in self._open.values()):
            raise _malformed("the message ended in the middle of a tool call", retryable=True)
        for index in tuple(self._open):
            yield from self._end_block(index)
        yield from self._assembly.end_content()
        self._assembly.stop_reason = self._assembly.end_turn(terminated=True)

    # The message

    def _begin(self, message: JsonObject) -> None:
        """Some proxies repeat the beginning; that of another message means that two streams were spliced."""
        id_ = text_at(message, "id")
        if self._id is not None and id_ != self._id:
            raise _malformed("another message began in the middle of this one", retryable=True)
        self._id = id_
        self._assembly.identify(response_id=id_, model=text_at(message, "model"))
        self._count(object_at(message, "usage"))

    def _count(self, usage: JsonObject) -> None:
        """The last number of each field counts: the end of a stream may leave fields out or correct them."""
        for name in _USAGE_FIELDS:
            tokens = count_at(usage, name)
            if tokens is not None:
                self._usage[name] = tokens
        if self._usage:
            self._assembly.usage = Usage(
                input_tokens=self._usage.get("input_tokens", 0),
                output_tokens=self._usage.get("output_tokens", 0),
                cache_read_tokens=self._usage.get("cache_read_input_tokens", 0),
                cache_write_tokens=self._usage.get("cache_creation_input_tokens", 0),
            )

    def _stop(self, source: JsonObject) -> None:
        reason = text_at(source, "stop_reason")
        if not reason:
            return
        if reason not in _STOP_REASONS:
            raise _failed_stop(reason, text_at(source, "stop_details", "explanation"))
        if self._assembly.stop_reason != "length":  # what was cut off stays so, whatever is said after it
            self._assembly.stop_reason = _STOP_REASONS[reason]

    # Content blocks

    def _begin_block(self, index: int, start: JsonObject) -> Iterator[ContentEvent]:
        if index in self._open:
            raise _malformed(f"content block {index} began before its predecessor ended", retryable=True)
        block = self._open[index] = _Block(text_at(start, "type"), start, signature=text_at(start, "signature"))
        match block.type:
            case "text":
                block.citations.extend(list_at(start, "citations"))
                yield from self._assembly.text(text_at(start, "text"), index)
            case "thinking":
                yield from self._think(index, block, text_at(start, "thinking"))
            case "tool_use":
                id_, name = text_at(start, "id"), text_at(start, "name")
                yield from self._assembly.tool_call(key=index, id=id_, name=name)

    def _add(self, index: int, delta: JsonObject) -> Iterator[ContentEvent]:
        block = self._open.get(index)
        if block is None:
            raise _malformed(f"a piece of content block {index}, which is not open", retryable=True)
        match block.type, text_at(delta, "type"):
            case "text", "text_delta":
                yield from self._assembly.text(text_at(delta, "text"), index)
            case "text", "citations_delta":
                block.citations.append(delta.get("citation"))
            case "thinking", "thinking_delta":
                yield from self._think(index, block, text_at(delta, "thinking"))
            case "thinking", "signature_delta":
                block.signature = text_at(delta, "signature")
            case "tool_use", "input_json_delta":
                piece = text_at(delta, "partial_json")
                block.pieces.append(piece)
                yield from self._assembly.tool_call(key=index, arguments=piece)
            case _, "input_json_delta":
                block.pieces.append(text_at(delta, "partial_json"))

    def _think(self, index: int, block: _Block, piece: str) -> Iterator[ContentEvent]:
        block.pieces.append(piece)
        yield from self._assembly.thinking(piece, index)

    def _end_block(self, index: int) -> Iterator[ContentEvent]:
        block = self._open.pop(index, None)
        if block is None or not block.type:
            return
        match block.type:
            case "text":
                if block.citations and can_be_sent(block.citations):
                    self._assembly.keep("text", {"citations": block.citations}, index)
                yield from self._assembly.end_part("text", index)
            case "thinking":
                if block.signature and can_be_sent(["".join(block.pieces), block.signature]):
                    self._assembly.keep("thinking", {"signature": block.signature}, index)
                yield from self._assembly.end_part("thinking", index)
            case "tool_use":
                yield from self._assembly.tool_call(key=index, arguments=_input_at_start(block))
                yield from self._assembly.end_part("toolcall", index)
            case _:
                yield from self._keep_whole(index, block)

    def _keep_whole(self, index: int, block: _Block) -> Iterator[ContentEvent]:
        whole = _with_input(block)
        if can_be_sent(whole):
            self._assembly.keep("thinking", {"block": whole}, index)
        return self._assembly.end_part("thinking", index)


def _index(data: JsonObject) -> int:
    index = count_at(data, "index")
    if index is None:
        raise _malformed("an event about a content block does not say about which", retryable=True)
    return index


def _input_at_start(block: _Block) -> Json:
    """The input of a call that came with its beginning; None when there is none, or when it came in pieces."""
    return None if any(block.pieces) else block.start.get("input") or None


def _with_input(block: _Block) -> JsonObject:
    """The whole block, with the input that came in pieces."""
    text = "".join(block.pieces)
    if not text:
        return block.start
    try:
        return {**block.start, "input": parse_json(text)}
    except ValueError as error:
        raise _malformed(f"the input of a {block.type} block is no JSON: {error}", retryable=True) from error


def _failed_stop(reason: str, explanation: str) -> ApiError:
    why = f": {explanation[:500]}" if explanation else ""
    match reason:
        case "refusal" | "sensitive":
            return ApiError("refused", f"the model declined to answer ({reason}){why}", retryable=False)
        case "pause_turn":
            pause = "the server paused the message in the middle of tools of its own, which were not asked for"
            return ApiError("request", f"{pause} (pause_turn): turn them off at the proxy", retryable=False)
        case _:
            return _malformed(f"the message ended for a reason that is not known: {reason[:100]!r}", retryable=False)


def _malformed(problem: str, *, retryable: bool) -> ApiError:
    return ApiError("malformed", problem, retryable=retryable)
