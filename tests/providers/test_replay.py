"""The model that says again what it said in a recorded run."""

from datetime import UTC, datetime

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
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
from ci_agent.providers.replay import create_replay_stream

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("replay", "run.json")


def said(*parts: JsonObject, stop_reason: str = "stop", **more: Json) -> JsonObject:
    return {
        "role": "assistant",
        "content": list(parts),
        "stop_reason": stop_reason,
        "error_message": None,
        "error_retryable": None,
        "usage": {"input_tokens": 900, "output_tokens": 9, "cost_usd": 0.5},
        **more,
    }


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def play(*messages: JsonObject, redactions: int = 0) -> StreamFn:
    user = {"role": "user", "content": [text("Do it.")]}
    document: JsonObject = {"messages": [user, *messages], "redactions": {"count": redactions}}
    return create_replay_stream(document, "run.json", lambda: NOW)


def ask(stream: StreamFn, cancel: CancelToken | None = None) -> list[StreamEvent]:
    return list(stream(MODEL, Context("", (), ()), StreamOptions(), cancel or CancelToken()))


def message(
    *content: AssistantContent, stop: StopReason = "stop", error: str | None = None, cost_usd: float | None = 0.5
) -> AssistantMessage:
    return AssistantMessage(
        content=content,
        stop_reason=stop,
        provider="replay",
        model="run.json",
        api="replay",
        timestamp=NOW,
        usage=Usage(input_tokens=900, output_tokens=9, cost_usd=cost_usd),
        error_message=error,
        error_retryable=None if error is None else True,
    )


def test_each_message_comes_again_whole_with_what_it_used() -> None:
    parts: list[JsonObject] = [
        {"type": "thinking", "text": "Hm.", "replay": {"signature": "x"}},
        text("I look."),
        {"type": "tool_call", "id": "a", "name": "ls", "arguments": {"path": "ä"}},
        {"type": "tool_call", "id": "b", "name": "read", "arguments": None, "arguments_json": '{"pa'},
    ]
    expected = message(
        ThinkingContent("Hm."),
        TextContent("I look."),
        ToolCall("a", "ls", '{"path": "ä"}'),
        ToolCall("b", "read", '{"pa'),
        stop="tool_use",
    )
    stream = play(said(*parts, stop_reason="tool_use"), said(text("Done.")))
    assert ask(stream) == [
        StreamStart(),
        *(ContentStart("thinking", 0), ContentDelta("thinking", 0, "Hm."), ContentEnd("thinking", 0)),
        *(ContentStart("text", 1), ContentDelta("text", 1, "I look."), ContentEnd("text", 1)),
        *(ContentStart("toolcall", 2), ContentDelta("toolcall", 2, '{"path": "ä"}'), ContentEnd("toolcall", 2)),
        *(ContentStart("toolcall", 3), ContentDelta("toolcall", 3, '{"pa'), ContentEnd("toolcall", 3)),
        StreamDone(expected),
    ]
    assert ask(stream)[-1] == StreamDone(message(TextContent("Done.")))


def test_a_failure_comes_again_as_one() -> None:
    failed = said(text("Half"), stop_reason="error", error_message="overloaded", error_retryable=True)
    assert ask(play(failed))[-1] == StreamFailed(message(TextContent("Half"), stop="error", error="overloaded"))


def test_a_run_that_goes_on_where_the_record_ends_fails_and_says_so() -> None:
    stream = play(said(text("Done.")))
    ask(stream)
    last = ask(stream)[-1]
    assert isinstance(last, StreamFailed)
    assert last.message.error_message == (
        "the record run.json has 1 turn, and the loop asked for one more: this run went on where that one had ended"
    )
    assert last.message.error_retryable is False


def test_a_record_with_hidden_secrets_is_told_of_once() -> None:
    stream = play(said(text("One."), stop_reason="tool_use"), said(text("Two.")), redactions=2)
    notices = [[event for event in ask(stream) if isinstance(event, StreamNotice)] for _ in range(2)]
    assert notices == [[StreamNotice("warning", "2 secrets of run.json stay hidden: calls have them so")], []]


@pytest.mark.parametrize("messages", [(), (said(text("x")),)])
def test_a_run_that_was_cancelled_gets_no_message(messages: tuple[JsonObject, ...]) -> None:
    cancel = CancelToken()
    cancel.cancel("received SIGTERM")
    last = ask(play(*messages), cancel)[-1]
    assert isinstance(last, StreamFailed)
    assert (last.message.stop_reason, last.message.error_message) == ("aborted", "received SIGTERM")


def test_a_cost_that_was_not_known_is_not_known_again() -> None:
    usage: JsonObject = {"input_tokens": 900, "output_tokens": 9, "cost_usd": None}
    assert ask(play(said(text("Done."), usage=usage)))[-1] == StreamDone(message(TextContent("Done."), cost_usd=None))
