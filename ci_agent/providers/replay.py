"""`replay:TRANSCRIPT`: a model that says again what it said in a recorded run. No key, no network, nothing to pay."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantContent, AssistantMessage, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import (
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamFn,
    StreamNotice,
    StreamOptions,
    StreamStart,
)
from ci_agent.providers.played import PlayedFailure, content_events
from ci_agent.spelling import counted

API = "replay"


def create_replay_stream(document: JsonObject, file: str, now: Callable[[], datetime]) -> StreamFn:
    """A stream function that plays the assistant's messages of a transcript document in their order, once, whatever
    is asked. What each of them used, its unknown cost too, is what the record says: limits of tokens, and of a cost
    that is known, end the run where they ended that one."""
    recorded = [message for message in document["messages"] if message["role"] == "assistant"]
    messages = iter(recorded)
    redactions = document["redactions"]["count"]

    def stream(model: Model, _context: Context, _options: StreamOptions, cancel: CancelToken) -> Iterator[StreamEvent]:
        nonlocal redactions
        yield StreamStart()
        if redactions:
            yield StreamNotice("warning", f"{counted(redactions, 'secret')} of {file} stay hidden: calls have them so")
            redactions = 0
        failed = PlayedFailure(model, API, now)
        message = None if cancel.is_cancelled else next(messages, None)
        if cancel.is_cancelled:
            yield failed("aborted", cancel.reason or "cancelled", retryable=None)
        elif message is None:
            problem = f"the record {file} has {counted(len(recorded), 'turn')}, and the loop asked for one more"
            yield failed("error", f"{problem}: this run went on where that one had ended", retryable=False)
        else:
            yield from _played(message, model, now())

    return stream


def has_unknown_cost(document: JsonObject) -> bool:
    """Whether a message of the record does not say what it cost: with it the cost of a whole run is unknown."""
    said = (message for message in document["messages"] if message["role"] == "assistant")
    return any(message["usage"].get("cost_usd") is None for message in said)


def _played(recorded: JsonObject, model: Model, timestamp: datetime) -> Iterator[StreamEvent]:
    message = AssistantMessage(
        content=tuple(map(_part, recorded["content"])),
        stop_reason=recorded["stop_reason"],
        provider=model.provider,
        model=model.id,
        api=API,
        timestamp=timestamp,
        usage=Usage(**recorded["usage"]),
        error_message=recorded["error_message"],
        error_retryable=recorded["error_retryable"],
    )
    yield from content_events(message)
    yield StreamFailed(message) if message.stop_reason in ("error", "aborted") else StreamDone(message)


def _part(part: JsonObject) -> AssistantContent:
    match part["type"]:
        case "text":
            return TextContent(part["text"])
        case "thinking":
            return ThinkingContent(part["text"])
        case _:
            return ToolCall(part["id"], part["name"], _arguments_text(part))


def _arguments_text(part: JsonObject) -> str:
    raw = part.get("arguments_json")
    return json.dumps(part["arguments"], ensure_ascii=False) if raw is None else str(raw)
