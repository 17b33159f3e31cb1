"""Reads what Bedrock's Converse API answers: an event stream about content blocks, or one message.

What a thinking part's `replay` holds: its `signature`, or all of it as `redactedContent`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import StopReason, Usage
from ci_agent.provider import ContentEvent
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.event_stream import read_json_messages
from ci_agent.providers.wire.failures import ApiError, FailureKind
from ci_agent.providers.wire.other_formats import refuse_other_formats
from ci_agent.providers.wire.untrusted_json import can_be_sent, object_at, text_at, value_at
from ci_agent.providers.wire.usage_counts import count_at

ENDPOINT = "/converse"

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_FAILED: dict[str, tuple[FailureKind, str, bool]] = {
    "guardrail_intervened": ("refused", "a guardrail stopped the answer", False),
    "content_filtered": ("refused", "a filter stopped the answer", False),
    "malformed_tool_use": ("bad_call", "the model made a tool call that cannot be read", True),
    "malformed_model_output": ("malformed", "the model made an answer that cannot be read", True),
}
"""Reasons that are failures: their kind, what happened, whether trying again may help."""

_USAGE_FIELDS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")


def read_stream(chunks: Iterator[bytes], assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadStream. Reads on after the reason for the end, since usage comes later."""
    reader = _ConverseReader(assembly)
    for kind, data in read_json_messages(chunks):
        yield from reader.take(kind, data)
    yield from reader.finish()


def read_answer(body: Json, assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadAnswer."""
    if not isinstance(body, dict):
        raise ApiError("malformed", f"the server's answer at {ENDPOINT} is no JSON object", retryable=False)
    refuse_other_formats(ENDPOINT, text_at(body, "type"), body)
    content = value_at(body, "output", "message", "content")
    if not isinstance(content, list):
        problem = f"the server's answer at {ENDPOINT} is no message: it has no content. Is the base URL right?"
        raise ApiError("malformed", problem, retryable=False)
    reader = _ConverseReader(assembly)
    for index, block in enumerate(content):
        yield from reader.take_block(index, block)
    reader.count(object_at(body, "usage"))
    reader.stop(text_at(body, "stopReason"))
    yield from reader.finish()


@dataclass(slots=True)
class _ConverseReader:
    assembly: Assembly
    begun: bool = False
    """Whether the server said that a message begins."""
    open_calls: set[int] = field(default_factory=set)
    """Indexes of the blocks that are calls and have not ended."""
    failure: ApiError | None = None
    """Why the message is none, as far as the reason for its end says."""
    counts: dict[str, int] = field(default_factory=dict)

    def take(self, kind: str, data: JsonObject) -> Iterator[ContentEvent]:
        """One event of a stream. Kinds that are not known are skipped."""
        match kind:
            case "messageStart":
                self._begin()
            case "contentBlockStart":
                yield from self._begin_block(_index(data), object_at(data, "start", "toolUse"))
            case "contentBlockDelta":
                yield from self._add(_index(data), object_at(data, "delta"))
            case "contentBlockStop":
                yield from self._end_block(_index(data))
            case "messageStop":
                self.stop(text_at(data, "stopReason"))
            case "metadata":
                self.count(object_at(data, "usage"))

    def take_block(self, index: int, block: Json) -> Iterator[ContentEvent]:
        """A whole block of an answer that was not streamed."""
        call = object_at(block, "toolUse")
        if call:
            yield from self._begin_block(index, call)
            yield from self.assembly.tool_call(key=index, arguments=call.get("input"))
        yield from self.assembly.text(text_at(block, "text"), index)
        reasoning = object_at(block, "reasoningContent")
        yield from self._think(index, {**reasoning, **object_at(reasoning, "reasoningText")})
        yield from self._end_block(index)

    def count(self, usage: JsonObject) -> None:
        """The last number of each field counts."""
        for name in _USAGE_FIELDS:
            tokens = count_at(usage, name)
            if tokens is not None:
                self.counts[name] = tokens
        if self.counts:
            fresh, said, read, written = (self.counts.get(name, 0) for name in _USAGE_FIELDS)
            self.assembly.usage = Usage(fresh, said, read, written)

    def stop(self, reason: str) -> None:
        if reason in _STOP_REASONS:
            if self.assembly.stop_reason != "length":  # what was cut off stays so, whatever is said after it
                self.assembly.stop_reason = _STOP_REASONS[reason]
        elif reason in _FAILED:
            kind, problem, retryable = _FAILED[reason]
            self.failure = ApiError(kind, f"{problem} ({reason})", retryable)
        elif reason:
            problem = f"the message ended for a reason that is not known: {reason[:100]!r}"
            self.failure = ApiError("malformed", problem, retryable=False)

    def finish(self) -> Iterator[ContentEvent]:
        """End the message. A call whose end the server did not tell may lack a piece, even if it reads as JSON."""
        if self.failure is not None:
            raise self.failure
        reason = self.assembly.end_turn(terminated=False)
        if reason != "length" and self.open_calls:
            raise ApiError("malformed", "the message ended in the middle of a tool call", retryable=True)
        yield from self.assembly.end_content()
        self.assembly.stop_reason = reason

    def _begin(self) -> None:
        if self.begun:
            raise ApiError("malformed", "another message began in the middle of this one", retryable=True)
        self.begun = True

    def _refuse_after_end(self, index: int) -> None:
        if self.assembly.stop_reason is not None:
            raise ApiError("malformed", f"content block {index} went on after the message's end", retryable=True)

    def _begin_block(self, index: int, call: JsonObject) -> Iterator[ContentEvent]:
        """Only calls have a beginning; text and thinking begin with their first piece."""
        if not call:
            return
        self._refuse_after_end(index)
        if index in self.open_calls:
            raise ApiError("malformed", f"content block {index} began before its predecessor ended", retryable=True)
        self.open_calls.add(index)
        yield from self.assembly.tool_call(key=index, id=text_at(call, "toolUseId"), name=text_at(call, "name"))

    def _add(self, index: int, delta: JsonObject) -> Iterator[ContentEvent]:
        self._refuse_after_end(index)
        call, text, thought = object_at(delta, "toolUse"), text_at(delta, "text"), object_at(delta, "reasoningContent")
        if index in self.open_calls and (text or thought):
            raise ApiError("malformed", f"content block {index} is a tool call and something else", retryable=True)
        if call:
            if index not in self.open_calls:
                problem = f"a piece of a tool call in content block {index}, which is none that is open"
                raise ApiError("malformed", problem, retryable=True)
            yield from self.assembly.tool_call(key=index, arguments=call.get("input"))
        yield from self.assembly.text(text, index)
        yield from self._think(index, thought)

    def _think(self, index: int, piece: JsonObject) -> Iterator[ContentEvent]:
        yield from self.assembly.thinking(text_at(piece, "text"), index)
        for name in ("signature", "redactedContent"):
            opaque = text_at(piece, name)
            if opaque and can_be_sent(opaque):
                yield from self.assembly.keep("thinking", {name: opaque}, index)

    def _end_block(self, index: int) -> Iterator[ContentEvent]:
        self.open_calls.discard(index)
        for kind in ("text", "thinking", "toolcall"):
            yield from self.assembly.end_part(kind, index)


def _index(data: JsonObject) -> int:
    index = count_at(data, "contentBlockIndex")
    if index is None:
        raise ApiError("malformed", "an event about a content block does not say about which", retryable=True)
    return index
