"""Reads what Gemini and Vertex answer: chunks that are whole responses, each with the parts that are new.

What a part's `replay` holds: its `thoughtSignature`. A part with one stays a part of its own, for it must go back as it
came; those without one are joined.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import StopReason, Usage
from ci_agent.provider import ContentEvent
from ci_agent.providers.gemini.arguments import PartialArguments
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.failures import ApiError, FailureKind
from ci_agent.providers.wire.other_formats import refuse_other_formats
from ci_agent.providers.wire.sse import read_json_events
from ci_agent.providers.wire.untrusted_json import can_be_sent, list_at, object_at, text_at, value_at
from ci_agent.providers.wire.usage_counts import count_at

ENDPOINT = ":generateContent"
SIGNATURE = "thoughtSignature"

_STOP_REASONS: dict[str, StopReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_BAD_CALL: tuple[FailureKind, str, bool] = ("bad_call", "the model made a tool call that cannot be read", True)
_DECLINED: tuple[FailureKind, str, bool] = ("refused", "the answer was stopped", False)
_FAILED: dict[str, tuple[FailureKind, str, bool]] = {
    "MALFORMED_FUNCTION_CALL": _BAD_CALL,
    "UNEXPECTED_TOOL_CALL": _BAD_CALL,
    "TOO_MANY_TOOL_CALLS": _BAD_CALL,
    "MALFORMED_RESPONSE": ("malformed", "the model made an answer that cannot be read", True),
    "MISSING_THOUGHT_SIGNATURE": ("request", "a tool call was sent without its signature", False),
    "OTHER": ("server", "the answer was stopped without a reason", True),
    "SAFETY": _DECLINED,
    "RECITATION": _DECLINED,
    "LANGUAGE": _DECLINED,
    "BLOCKLIST": _DECLINED,
    "PROHIBITED_CONTENT": _DECLINED,
    "SPII": _DECLINED,
    "MODEL_ARMOR": _DECLINED,
    "IMAGE_SAFETY": _DECLINED,
}
"""Reasons that are failures: their kind, what happened, whether trying again may help."""

_COUNTS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
)


def read_stream(chunks: Iterator[bytes], assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadStream. There is no last event: the end is the reason for it, and then the end of the bytes."""
    reader = _GeminiReader(assembly)
    for name, data in read_json_events(chunks):
        yield from reader.take(name, data)
    yield from reader.finish()


def read_answer(body: Json, assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadAnswer: of one response, or of the list that a stream is when nobody asked for events."""
    responses = body if isinstance(body, list) else [body]
    reader = _GeminiReader(assembly)
    for response in responses:
        if not isinstance(response, dict):
            raise ApiError("malformed", f"the server's answer at {ENDPOINT} is no JSON object", retryable=False)
        yield from reader.take("", response)
    if not any("candidates" in response for response in responses):
        problem = f"the server's answer at {ENDPOINT} has no candidates. Is the base URL right?"
        raise ApiError("malformed", problem, retryable=False)
    yield from reader.finish()


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments still come."""

    key: int
    arguments: PartialArguments


@dataclass(slots=True)
class _GeminiReader:
    assembly: Assembly
    parts: int = 0
    """How many have begun; the latest one's number is its key."""
    joining: Literal["text", "thinking"] | None = None
    """What the latest part is, if more of it may be joined to it."""
    call: _OpenCall | None = None
    failure: ApiError | None = None
    """Why the message is none, as far as the reason for its end says."""
    counts: dict[str, int] = field(default_factory=dict)

    def take(self, name: str, data: JsonObject) -> Iterator[ContentEvent]:
        """A chunk, or a whole response."""
        self._count(object_at(data, "usageMetadata"))
        refuse_other_formats(ENDPOINT, name, data)
        self.assembly.identify(response_id=text_at(data, "responseId"), model=text_at(data, "modelVersion"))
        candidates = [candidate for candidate in list_at(data, "candidates") if isinstance(candidate, dict)]
        if not candidates:
            _refuse_blocked(data)
            return
        for part in list_at(candidates[0], "content", "parts"):
            yield from self._part(part)
        self._stop(text_at(candidates[0], "finishReason"), text_at(candidates[0], "finishMessage"))

    def finish(self) -> Iterator[ContentEvent]:
        if self.failure is not None:
            raise self.failure
        if self.assembly.stop_reason is not None:
            yield from self._end_call(is_cut=self.assembly.stop_reason == "length")
        reason = self.assembly.end_turn(terminated=False)
        yield from self.assembly.end_content()
        self.assembly.stop_reason = reason

    # Parts

    def _part(self, part: Json) -> Iterator[ContentEvent]:
        """Kinds of parts that nobody asked for, such as code that the server ran, are skipped."""
        signature = text_at(part, SIGNATURE)
        replay: JsonObject = {SIGNATURE: signature} if signature and can_be_sent(signature) else {}
        if isinstance(part, dict) and isinstance(part.get("functionCall"), dict):
            yield from self._call_part(part["functionCall"], replay)
        elif replay or text_at(part, "text"):
            kind: Literal["text", "thinking"] = "thinking" if value_at(part, "thought") is True else "text"
            yield from self._say(kind, text_at(part, "text"), replay)

    def _say(self, kind: Literal["text", "thinking"], text: str, replay: JsonObject) -> Iterator[ContentEvent]:
        if replay or self.joining != kind:
            yield from self._begin_part()
        add = self.assembly.text if kind == "text" else self.assembly.thinking
        yield from add(text, self.parts)
        if replay:
            yield from self.assembly.keep(kind, replay, self.parts)
        self.joining = None if replay else kind

    def _begin_part(self) -> Iterator[ContentEvent]:
        if self.joining is not None:
            yield from self.assembly.end_part(self.joining, self.parts)
        self.joining = None
        self.parts += 1

    # Calls

    def _call_part(self, call: JsonObject, replay: JsonObject) -> Iterator[ContentEvent]:
        """A whole call, or the beginning, a piece or the end of one whose arguments come in pieces."""
        name = text_at(call, "name")
        pieces = list_at(call, "partialArgs")
        if name:
            yield from self._end_call()
            yield from self._begin_part()
            yield from self.assembly.tool_call(key=self.parts, id=text_at(call, "id"), name=name, replay=replay)
            if not (pieces or call.get("willContinue") is True):
                yield from self.assembly.tool_call(key=self.parts, arguments=call.get("args"))
                yield from self.assembly.end_part("toolcall", self.parts)
                return
            self.call = _OpenCall(self.parts, PartialArguments(object_at(call, "args")))
        elif self.call is None:
            _refuse_nameless(call)
            return
        self.call.arguments.add(pieces)
        yield from self.assembly.keep("toolcall", replay, self.call.key)
        if call.get("willContinue") is not True:
            yield from self._end_call()

    def _end_call(self, *, is_cut: bool = False) -> Iterator[ContentEvent]:
        """End the call whose arguments were coming; some servers leave it to what follows to tell that."""
        call, self.call = self.call, None
        if call is None:
            return
        if not (is_cut or call.arguments.is_complete):
            raise ApiError("malformed", "the arguments of a tool call ended in the middle of a text", retryable=True)
        yield from self.assembly.tool_call(key=call.key, arguments=call.arguments.value())
        yield from self.assembly.end_part("toolcall", call.key)

    # The message

    def _count(self, usage: JsonObject) -> None:
        """Counts are of the whole message so far; a chunk without one, or with none, says nothing new."""
        for name in _COUNTS:
            tokens = count_at(usage, name)
            if tokens:
                self.counts[name] = tokens
        if self.counts:
            prompt, tools, cached, said, thought = (self.counts.get(name, 0) for name in _COUNTS)
            self.assembly.usage = Usage(max(prompt + tools - cached, 0), said + thought, cached)

    def _stop(self, reason: str, said: str) -> None:
        """That something was cut off outweighs the rest."""
        if reason in _STOP_REASONS:
            if self.assembly.stop_reason != "length":
                self.assembly.stop_reason = _STOP_REASONS[reason]
        elif reason in _FAILED:
            kind, problem, retryable = _FAILED[reason]
            why = f": {said[:300]}" if said else ""
            self.failure = ApiError(kind, f"{problem} ({reason}){why}", retryable)
        elif reason and reason != "FINISH_REASON_UNSPECIFIED":
            problem = f"the message ended for a reason that is not known: {reason[:100]!r}"
            self.failure = ApiError("malformed", problem, retryable=False)


def _refuse_blocked(data: JsonObject) -> None:
    """Raise ApiError when the prompt was not even shown to the model."""
    reason = text_at(data, "promptFeedback", "blockReason")
    if reason:
        said = text_at(data, "promptFeedback", "blockReasonMessage")
        why = f": {said[:300]}" if said else ""
        raise ApiError("refused", f"the server did not take the prompt ({reason[:100]}){why}", retryable=False)


def _refuse_nameless(call: JsonObject) -> None:
    """Raise ApiError for a piece of a call that never began. An empty one is the end of a call, told twice."""
    if call.get("args") or call.get("partialArgs"):
        raise ApiError("malformed", "the stream holds a piece of a tool call without a name", retryable=True)
