"""A conversation that grows too long is sent in parts, and the person is told."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ci_agent.cancellation import CancelToken
from ci_agent.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
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
from ci_agent.providers.request_size import estimate_tokens
from ci_agent.providers.shrinking import SUMMARY_REQUEST, ShrinkMode, create_shrinking_stream

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("p", "m")
TASK = UserMessage((TextContent("Count the lines."),), NOW)


def answer(*content: TextContent | ToolCall, usage: Usage | None = None) -> AssistantMessage:
    stop: StopReason = "tool_use" if any(isinstance(part, ToolCall) for part in content) else "stop"
    return AssistantMessage(content, stop, "p", "m", "a", NOW, usage=usage or Usage())


def turn(number: int, characters: int) -> list[Message]:
    call = ToolCall(f"c{number}", "read", "{}")
    return [answer(call), ToolResultMessage(call.id, "read", (TextContent("x" * characters),), False, NOW)]


def conversation(*sizes: int) -> tuple[Message, ...]:
    return (TASK, *(message for number, size in enumerate(sizes) for message in turn(number, size)))


@dataclass
class Server:
    """Refuses requests longer than it takes; answers `ok`, and summaries with `SUM`."""

    takes_tokens: int
    counts_per_estimate: float = 1.0
    requests: list[Context] = field(default_factory=list)

    def __call__(
        self, _model: Model, context: Context, _options: StreamOptions, _cancel: CancelToken, /
    ) -> Iterator[StreamEvent]:
        self.requests.append(context)
        tokens = int(estimate_tokens(context) * self.counts_per_estimate)
        yield StreamStart()
        if tokens > self.takes_tokens:
            failed = AssistantMessage((), "error", "p", "m", "a", NOW, error_message="too long", error_retryable=False)
            yield StreamFailed(failed, is_overflow=True)
            return
        last = context.messages[-1]
        asked = isinstance(last, UserMessage) and last.content == (TextContent(SUMMARY_REQUEST),)
        yield StreamDone(answer(TextContent("SUM" if asked else "ok"), usage=Usage(tokens, 10)))


def ask(
    server: Server, messages: tuple[Message, ...], window: int | None, mode: ShrinkMode = "results"
) -> list[StreamEvent]:
    stream = create_shrinking_stream(server, window, mode)
    return list(stream(MODEL, Context("", messages, ()), StreamOptions(), CancelToken()))


def sent_texts(context: Context) -> list[str]:
    return ["".join(p.text for p in m.content if isinstance(p, TextContent)) for m in context.messages]


def stub(characters: str) -> str:
    return (
        f"[Left out: this result of {characters} characters no longer fits into what the model can take in. "
        "Call the tool again if it is needed, for a smaller part if that will do.]"
    )


def test_a_conversation_that_fits_is_sent_whole() -> None:
    server = Server(takes_tokens=10_000)
    messages = conversation(4000, 4000)
    events = ask(server, messages, window=10_000)
    assert [request.messages for request in server.requests] == [messages]
    assert events == [StreamStart(), StreamDone(answer(TextContent("ok"), usage=Usage(2008, 10)))]


def test_old_results_are_left_out_before_the_context_is_full() -> None:
    server = Server(takes_tokens=10_000)
    events = ask(server, conversation(20_000, 12_000, 4000), window=10_000)
    assert len(server.requests) == 1
    assert sent_texts(server.requests[0]) == [
        "Count the lines.",
        "",
        stub("20,000"),
        "",
        "x" * 12_000,
        "",
        "x" * 4000,
    ]
    assert events[1] == StreamNotice("shrunk", "1 result left out of what the model gets; about 4,052 tokens are left")


def test_an_unknown_context_is_shrunk_when_the_server_refuses() -> None:
    server = Server(takes_tokens=6000)
    events = ask(server, conversation(16_000, 16_000, 4000), window=None)
    assert [len(request.messages) for request in server.requests] == [7, 7]
    assert sent_texts(server.requests[1])[2] == stub("16,000")
    assert isinstance(events[-1], StreamDone)


def test_the_latest_result_goes_only_when_nothing_else_is_left() -> None:
    server = Server(takes_tokens=500)
    ask(server, conversation(4000, 40_000), window=None)
    assert sent_texts(server.requests[-1])[2:] == [stub("4,000"), "", stub("40,000")]


def test_the_refusal_is_the_answer_when_nothing_can_be_left_out() -> None:
    server = Server(takes_tokens=10)
    events = ask(server, conversation(4000), window=None)
    assert len(server.requests) == 2
    assert isinstance(events[-1], StreamFailed)
    assert events[-1].is_overflow


def test_nothing_is_left_out_where_that_is_switched_off() -> None:
    server = Server(takes_tokens=100)
    events = ask(server, conversation(4000), window=100, mode="off")
    assert len(server.requests) == 1
    assert isinstance(events[-1], StreamFailed)


def test_what_was_left_out_stays_left_out_so_that_prompt_caches_hold() -> None:
    server = Server(takes_tokens=10_000)
    stream = create_shrinking_stream(server, 10_000, "results")
    first = conversation(16_000, 16_000, 4000)
    list(stream(MODEL, Context("", first, ()), StreamOptions(), CancelToken()))
    list(stream(MODEL, Context("", (*first, *turn(9, 400)), ()), StreamOptions(), CancelToken()))
    assert server.requests[1].messages[: len(first)] == server.requests[0].messages


def test_the_servers_own_count_corrects_the_estimate() -> None:
    server = Server(takes_tokens=10_000, counts_per_estimate=2.0)
    stream = create_shrinking_stream(server, 10_000, "results")
    first = conversation(8000)
    list(stream(MODEL, Context("", first, ()), StreamOptions(), CancelToken()))
    list(stream(MODEL, Context("", (*first, *turn(1, 10_000)), ()), StreamOptions(), CancelToken()))
    assert len(server.requests) == 2, "the second request was shrunk before it was refused"
    assert sent_texts(server.requests[1])[2] == stub("8,000")


def test_a_summary_takes_the_place_of_older_turns_when_results_are_not_enough() -> None:
    server = Server(takes_tokens=3000)
    long_texts = tuple(answer(TextContent("y" * 3600)) if i % 2 else TASK for i in range(6))
    messages = (TASK, *long_texts, *turn(1, 400))
    events = ask(server, messages, window=3000, mode="summary")
    summary_request, request = server.requests
    assert sent_texts(summary_request)[-1] == SUMMARY_REQUEST
    assert sent_texts(request) == [
        "Count the lines.",
        "Count the lines.",
        "What happened so far, in your own summary; the messages themselves were left out:\n\nSUM",
        "",
        "x" * 400,
    ]
    assert [event.text for event in events if isinstance(event, StreamNotice)] == [
        "the turns up to message 7 are sent as a summary: SUM"
    ]
    assert isinstance(events[-1], StreamDone)
    used = [int(estimate_tokens(context)) for context in server.requests]
    assert events[-1].message.usage == Usage(sum(used), 20)


def test_a_summary_that_cannot_be_made_is_told_and_the_refusal_stands() -> None:
    server = Server(takes_tokens=50)
    messages = (TASK, answer(TextContent("y" * 4000)), TASK, answer(TextContent("z" * 4000)), TASK)
    events = ask(server, messages, window=None, mode="summary")
    assert [event for event in events if isinstance(event, StreamNotice)] == [
        StreamNotice("warning", "no summary was made: too long")
    ]
    assert isinstance(events[-1], StreamFailed)
