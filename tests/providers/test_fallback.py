"""Another model takes over for the rest of the run."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.messages import AssistantMessage, StopReason, TextContent, Usage
from ci_agent.provider import (
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamNotice,
    StreamOptions,
    StreamStart,
)
from ci_agent.providers.fallback import create_fallback_stream

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = Context("", (), ())
A, B = Model("p", "a"), Model("q", "b")


def message(text: str, stop_reason: StopReason, tokens: int) -> AssistantMessage:
    error = text if stop_reason == "error" else None
    return AssistantMessage(
        (TextContent(text),), stop_reason, "p", "m", "a", NOW, usage=Usage(tokens), error_message=error
    )


@dataclass
class Scripted:
    end: StreamDone | StreamFailed
    asked: list[Model] = field(default_factory=list)

    def __call__(
        self, model: Model, _context: Context, _options: StreamOptions, _cancel: CancelToken, /
    ) -> Iterator[StreamEvent]:
        self.asked.append(model)
        yield StreamStart()
        yield self.end


def ask(*models: tuple[Model, Scripted], times: int = 1) -> list[list[StreamEvent]]:
    stream = create_fallback_stream(models)
    return [list(stream(A, CONTEXT, StreamOptions(), CancelToken())) for _ in range(times)]


BROKEN = StreamFailed(message("no\nway", "error", 3))
FINE = StreamDone(message("hi", "stop", 4))


def test_the_next_model_answers_from_then_on_and_all_cost_is_told() -> None:
    first, second = Scripted(BROKEN), Scripted(FINE)
    assert ask((A, first), (B, second), times=2) == [
        [
            StreamStart(),
            StreamNotice("fallback", "q:b in place of p:a: no way"),
            StreamDone(message("hi", "stop", 7)),
        ],
        [StreamStart(), FINE],
    ]
    assert (first.asked, second.asked) == ([A], [B, B])


def test_the_failure_of_the_last_is_the_answer() -> None:
    last = StreamFailed(message("neither", "error", 5))
    *_, end = ask((A, Scripted(BROKEN)), (B, Scripted(last)))[0]
    told = replace(
        message("neither", "error", 8), error_message="neither (before it p:a: no way)", error_retryable=False
    )
    assert end == StreamFailed(told)


@pytest.mark.parametrize(("first", "last", "either"), [(True, False, True), (False, True, True), (False, False, False)])
def test_trying_later_can_help_if_it_can_with_any_model(first: bool, last: bool, either: bool) -> None:
    ends = [StreamFailed(replace(message("no", "error", 1), error_retryable=may_pass)) for may_pass in (first, last)]
    *_, end = ask((A, Scripted(ends[0])), (B, Scripted(ends[1])))[0]
    assert isinstance(end, StreamFailed)
    assert end.message.error_retryable is either


def test_what_failed_in_an_earlier_turn_is_told_no_more() -> None:
    first, second = Scripted(BROKEN), Scripted(FINE)
    stream = create_fallback_stream([(A, first), (B, second)])
    list(stream(A, CONTEXT, StreamOptions(), CancelToken()))
    second.end = StreamFailed(message("neither", "error", 5))
    assert list(stream(A, CONTEXT, StreamOptions(), CancelToken())) == [StreamStart(), second.end]


def test_a_request_that_is_too_long_for_one_may_fit_into_the_next() -> None:
    too_long = StreamFailed(message("long", "error", 1), is_overflow=True)
    *_, end = ask((A, Scripted(too_long)), (B, Scripted(FINE)))[0]
    assert end == StreamDone(message("hi", "stop", 5))


def test_a_cancelled_request_is_given_to_nobody_else() -> None:
    cancelled = StreamFailed(message("", "aborted", 1))
    second = Scripted(FINE)
    assert ask((A, Scripted(cancelled)), (B, second)) == [[StreamStart(), cancelled]]
    assert second.asked == []


def test_one_model_alone_needs_nothing_around_it() -> None:
    only = Scripted(FINE)
    assert create_fallback_stream([(A, only)]) is only
