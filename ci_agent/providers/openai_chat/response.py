"""Reads what Chat Completions servers answer: a stream of chunks, or one completion."""

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.messages import StopReason
from ci_agent.provider import ContentEvent
from ci_agent.providers.openai_chat.messages import LIST_FIELD, THINKING_FIELDS
from ci_agent.providers.openai_chat.reasoning_details import merged_details, text_of_details
from ci_agent.providers.openai_chat.usage import usage_in
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.errors_on_wire import error_from_object
from ci_agent.providers.wire.failures import ApiError, FailureKind
from ci_agent.providers.wire.sse import read_json_events
from ci_agent.providers.wire.untrusted_json import can_be_sent, list_at, object_at, text_at
from ci_agent.providers.wire.usage_counts import count_at

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "end": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
}

_FAILED: dict[str, tuple[FailureKind, str, bool]] = {
    "content_filter": ("refused", "a content filter cut the answer off", False),
    "safety": ("refused", "a content filter cut the answer off", False),
    "refusal": ("refused", "the model declined to answer", False),
    "model_context_window_exceeded": ("overflow", "the conversation does not fit into the model's context", False),
    "insufficient_system_resource": ("overloaded", "the server ran out of resources", True),
    "error": ("server", "the server failed in the middle of the answer", True),
    "network_error": ("server", "the server lost its connection in the middle of the answer", True),
    "abort": ("server", "the server gave the answer up", True),
}
"""Reasons that are failures: their kind, what happened, whether trying again may help."""

ThinkingSource: TypeAlias = Literal["fields", "details"]


def read_stream(chunks: Iterator[bytes], assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadStream. Reads on after the reason for the end, since usage and errors come later."""
    reader = _ChatReader(assembly)
    for event, data in read_json_events(chunks):
        if event == "[DONE]":
            reader.terminated = True
            break
        yield from reader.take(event, data)
    yield from reader.finish()


def read_answer(body: Json, assembly: Assembly) -> Iterator[ContentEvent]:
    """A ReadAnswer."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        raise ApiError("malformed", "the server's answer is no JSON object", retryable=False)
    reader = _ChatReader(assembly)
    yield from reader.take("", body)
    if not any(isinstance(choice, dict) for choice in list_at(body, "choices")):
        problem = "the server's answer is no completion: it has no choices. Is the base URL right?"
        raise ApiError("malformed", problem, retryable=False)
    reader.terminated = True
    yield from reader.finish()


@dataclass(slots=True)
class _ChatReader:
    assembly: Assembly
    choice: int | None = None
    """Which of the server's choices is read; None: none has come yet."""
    terminated: bool = False
    """Whether the server said that there is no more: in so many words, or by telling usage and nothing after it."""
    failure: ApiError | None = None
    """Why the message is none, as far as its end says; an error that follows says more."""
    refusal: list[str] = field(default_factory=list)
    details: list[JsonObject] = field(default_factory=list)
    thinking_from: ThinkingSource | None = None

    def take(self, event: str, data: JsonObject) -> Iterator[ContentEvent]:
        """A chunk, or a whole completion. A chunk with an error may also tell usage."""
        choices = [choice for choice in list_at(data, "choices") if isinstance(choice, dict)]
        choice = self._own(choices)
        usage = usage_in(data, choice)
        if usage is not None:
            self.assembly.usage = usage
        self.terminated = not choices and (self.terminated or usage is not None)
        _refuse_errors(event, data, choice)
        self.assembly.identify(response_id=text_at(data, "id"), model=text_at(data, "model"))
        yield from self._delta(object_at(choice, "delta") or object_at(choice, "message"))
        self._stop(text_at(choice, "finish_reason"))

    def _own(self, choices: list[JsonObject]) -> JsonObject:
        """The choice that is the message: of several, which nobody asked for, always the one that came first."""
        for choice in choices:
            number = count_at(choice, "index") or 0
            if self.choice in (None, number):
                self.choice = number
                return choice
        return {}

    def finish(self) -> Iterator[ContentEvent]:
        if self.details and _can_be_kept(self.details):
            self.assembly.keep("thinking", {"reasoning_details": merged_details(self.details)})
        if self.failure is not None:
            raise self.failure
        if self.refusal:
            raise ApiError("refused", f"the model declined: {''.join(self.refusal)[:500]}", retryable=False)
        reason = self.assembly.end_turn(terminated=self.terminated)
        yield from self.assembly.end_content()
        self.assembly.stop_reason = reason

    def _delta(self, delta: JsonObject) -> Iterator[ContentEvent]:
        yield from self._thinking(delta)
        yield from self._content(delta.get("content"))
        refusal = text_at(delta, "refusal")
        if refusal:
            self.refusal.append(refusal)
            yield from self.assembly.text(refusal)
        for call in list_at(delta, "tool_calls"):
            if isinstance(call, dict):
                yield from self._call(_key(call.get("index")), call)
        if object_at(delta, "function_call"):
            yield from self._call("function_call", {"function": delta["function_call"]})

    def _thinking(self, delta: JsonObject) -> Iterator[ContentEvent]:
        """The same text may come in several fields, so the first that has any is the one for the whole message."""
        name = next((name for name in THINKING_FIELDS if name in delta and text_at(delta, name)), None)
        if name is not None and self.thinking_from != "details":
            yield from self._think(text_at(delta, name), name)
        if "reasoning_details" in delta:
            yield from self._details(delta)
        extra = delta.get("extra_content")
        if extra and _can_be_kept(extra):
            self.assembly.keep("thinking", {"extra_content": extra})

    def _details(self, delta: JsonObject) -> Iterator[ContentEvent]:
        details = [detail for detail in list_at(delta, "reasoning_details") if isinstance(detail, dict)]
        self.details += details
        text = text_of_details(details)
        if text and self.thinking_from != "fields":
            self.thinking_from = "details"
            yield from self.assembly.thinking(text)

    def _think(self, text: str, name: str) -> Iterator[ContentEvent]:
        if self.thinking_from is None:
            self.thinking_from = "fields"
            self.assembly.keep("thinking", {"field": name})
        yield from self.assembly.thinking(text)

    def _content(self, content: Json) -> Iterator[ContentEvent]:
        if isinstance(content, str):
            yield from self.assembly.text(content)
        for item in content if isinstance(content, list) else ():
            thought = _thought(item)
            if thought:
                yield from self._think(thought, LIST_FIELD)
            yield from self.assembly.text(item if isinstance(item, str) else text_at(item, "text"))

    def _call(self, key: Hashable, call: JsonObject) -> Iterator[ContentEvent]:
        extra = object_at(call, "extra_content")
        yield from self.assembly.tool_call(
            key=key,
            id=_id(call.get("id")),
            name=text_at(call, "function", "name"),
            arguments=object_at(call, "function").get("arguments"),
            replay={"extra_content": extra} if extra and _can_be_kept(extra) else None,
        )

    def _stop(self, reason: str) -> None:
        """A reason may come twice, and with nothing after it. That something was cut off outweighs the rest."""
        word = reason.lower()
        if not word:
            return
        if word in _STOP_REASONS:
            if self.assembly.stop_reason != "length":
                self.assembly.stop_reason = _STOP_REASONS[word]
        elif word in _FAILED:
            kind, problem, retryable = _FAILED[word]
            self.failure = ApiError(kind, f"{problem} ({reason})", retryable)
        else:
            problem = f"the message ended for a reason that is not known: {reason[:100]!r}"
            self.failure = ApiError("malformed", problem, retryable=False)


def _refuse_errors(event: str, data: JsonObject, choice: JsonObject) -> None:
    """Raise for an error object, wherever it is: in place of a chunk, beside one, in a choice."""
    is_bare = not choice and (text_at(data, "object") == "error" or ("choices" not in data and "detail" in data))
    if event == "error" or data.get("error") or is_bare:
        raise error_from_object(data, status=None)
    if choice.get("error"):
        raise error_from_object({"error": choice["error"]}, status=None)


def _key(index: Json) -> int | str | None:
    return index if isinstance(index, int | str) and not isinstance(index, bool) else None


def _id(value: Json) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _thought(item: Json) -> str:
    """The text of an item of the content that is thinking."""
    thoughts = list_at(item, "thinking")
    pieces = [thought if isinstance(thought, str) else text_at(thought, "text") for thought in thoughts]
    return "".join(pieces) or text_at(item, "thinking")


def _can_be_kept(value: Json) -> bool:
    """Whether it can be recorded and sent back: text that is no UTF-8 and deep nesting cannot."""
    try:
        parse_json(json.dumps(value))
    except (ValueError, RecursionError):
        return False
    return can_be_sent(value)
