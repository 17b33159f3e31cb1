"""What providers share that play messages which are there already: a message as events, and a failure."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import assert_never

from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from ci_agent.provider import ContentDelta, ContentEnd, ContentStart, Model, PartKind, StreamEvent, StreamFailed


class PlayedFailure:
    """Builds the last event of a stream that fails, with nothing received and nothing to pay."""

    def __init__(self, model: Model, api: str, now: Callable[[], datetime]) -> None:
        self._model = model
        self._api = api
        self._now = now

    def __call__(self, stop_reason: StopReason, problem: str, *, retryable: bool | None) -> StreamFailed:
        message = AssistantMessage(
            content=(),
            stop_reason=stop_reason,
            provider=self._model.provider,
            model=self._model.id,
            api=self._api,
            timestamp=self._now(),
            usage=Usage(cost_usd=0),
            error_message=problem,
            error_retryable=retryable,
        )
        return StreamFailed(message)


def content_events(message: AssistantMessage) -> Iterator[StreamEvent]:
    """Each part of the message, whole."""
    for index, part in enumerate(message.content):
        kind, text = _kind_and_text(part)
        yield ContentStart(kind, index)
        yield ContentDelta(kind, index, text)
        yield ContentEnd(kind, index)


def _kind_and_text(part: AssistantContent) -> tuple[PartKind, str]:
    match part:
        case TextContent(text):
            return "text", text
        case ThinkingContent(text):
            return "thinking", text
        case ToolCall():
            return "toolcall", part.arguments_json
    assert_never(part)
