from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest
from tool_work import never_runs

from ci_agent.agent.loop import run_agent_continue, run_loop, stream_assistant_response
from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.events import AgentEnd, AgentEvent, MessageEnd, MessageUpdate, TurnEnd
from ci_agent.hooks import Decision, FinishedTurn, Hooks, ProposedToolCall
from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantMessage, Message, StopReason, TextContent, ToolResultMessage, UserMessage
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamOptions,
    StreamStart,
)
from ci_agent.tool import OnUpdate, ToolResult

if TYPE_CHECKING:
    from tests.agent.conftest import Lab


def ends_the_run(_arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> ToolResult:
    return ToolResult((TextContent("bye"),), terminate=True)


def cancelled_token(reason: str) -> CancelToken:
    token = CancelToken()
    token.cancel(reason)
    return token


def saying(*messages_by_turn: Sequence[UserMessage]) -> Callable[[FinishedTurn], Sequence[UserMessage]]:
    """A hook that has these messages after the first turn, the second, and so on; then none."""
    return lambda turn: messages_by_turn[turn.turn - 1] if turn.turn <= len(messages_by_turn) else ()


def silent(asked: list[str], name: str) -> Callable[[FinishedTurn], Sequence[UserMessage]]:
    """A hook that has nothing to say, and notes under its name in which turn it was asked."""

    def answer(turn: FinishedTurn) -> Sequence[UserMessage]:
        asked.append(f"{name} {turn.turn}")
        return ()

    return answer


# The order of events


def test_a_plain_answer_is_one_turn(lab: "Lab") -> None:
    assert lab.run([lab.say("hello")]).lines == [
        "agent_start",
        "turn_start 1",
        "message_start user go",
        "message_end user go",
        "message_start assistant",
        "message_update ContentStart",
        "message_update ContentDelta",
        "message_update ContentEnd",
        "message_end assistant stop",
        "turn_end 1 0 results",
        "agent_end 2 messages",
    ]


def test_a_call_is_executed_between_the_message_and_the_end_of_its_turn(lab: "Lab") -> None:
    ran = lab.run([[StreamDone(lab.say(lab.call("read", "a")))], [StreamDone(lab.say("done"))]], [lab.tool("read")])
    assert ran.lines[4:] == [
        "message_start assistant",
        "message_end assistant tool_use",
        "tool_execution_start 0 read",
        "tool_execution_decision 0 none",
        "tool_execution_end 0 ok -",
        "message_start tool_result a read",
        "message_end tool_result a read",
        "turn_end 1 1 results",
        "turn_start 2",
        "message_start assistant",
        "message_end assistant stop",
        "turn_end 2 0 results",
        "agent_end 4 messages",
    ]


def test_every_prompt_has_its_start_and_its_end(lab: "Lab") -> None:
    events: list[AgentEvent] = []
    prompts = [lab.user("one"), lab.user("two")]
    new = run_loop(prompts, lab.context(), lab.config(lab.play([lab.say()])), events.append, CancelToken())
    assert [event.message for event in events if isinstance(event, MessageEnd)] == [*prompts, lab.say()]
    assert new == (*prompts, lab.say())


def test_partial_messages_are_forwarded_as_they_come(lab: "Lab") -> None:
    parts: list[StreamEvent] = [
        ContentStart("text", 0),
        ContentDelta("text", 0, "he"),
        ContentDelta("text", 0, "y"),
        ContentEnd("text", 0),
    ]
    ran = lab.run([[StreamStart(), *parts, StreamDone(lab.say("hey"))]])
    assert [event.event for event in ran.events if isinstance(event, MessageUpdate)] == parts


def test_agent_end_is_last_and_has_every_new_message_and_no_old_one(lab: "Lab") -> None:
    events: list[AgentEvent] = []
    read = lab.tool("read", "text")
    asked = lab.say(lab.call("read", "a"))
    context = lab.context(lab.user("before"), lab.say("yes?"), tools=[read])
    config = lab.config(lab.play([asked, lab.say("done")]), [read])
    new = run_loop([lab.user("go")], context, config, events.append, CancelToken())
    result = ToolResultMessage("a", "read", (TextContent("text"),), is_error=False, timestamp=lab.now)
    assert new == (lab.user("go"), asked, result, lab.say("done"))
    assert [event for event in events if isinstance(event, AgentEnd)] == [AgentEnd(new)]
    assert events[-1] == AgentEnd(new)


# Asking the model


def test_a_request_has_the_conversation_so_far_and_the_tools_offered(lab: "Lab") -> None:
    requests: list[Context] = []
    read, hidden = lab.tool("read"), lab.tool("hidden")
    config = lab.config(lab.play([lab.say(lab.call("read")), lab.say("done")], requests), [read, hidden])
    context = Context("be brief", (lab.user("before"), lab.say("yes?")), (read,))
    new = run_loop([lab.user("go")], context, config, lambda _event: None, CancelToken())
    assert requests == [
        Context("be brief", (*context.messages, *new[:1]), (read,)),
        Context("be brief", (*context.messages, *new[:3]), (read,)),
    ]


def test_the_model_and_the_options_reach_the_provider(lab: "Lab") -> None:
    seen: list[tuple[Model, StreamOptions]] = []

    def stream(model: Model, _c: Context, options: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        seen.append((model, options))
        yield StreamDone(lab.say())

    lab.run(stream, options=StreamOptions(temperature=0.5))
    assert seen == [(Model("scripted", "test"), StreamOptions(temperature=0.5))]


def test_stream_assistant_response_only_generates(lab: "Lab") -> None:
    read = lab.tool("read", never_runs)
    events: list[AgentEvent] = []
    config = lab.config(lab.play([[StreamDone(lab.say(lab.call("read")))]]), [read])
    message = stream_assistant_response(lab.context(tools=[read]), config, events.append, CancelToken())
    assert message == lab.say(lab.call("read"))
    assert [type(event).__name__ for event in events] == ["MessageStart", "MessageEnd"]


def test_the_context_that_was_given_is_left_alone(lab: "Lab") -> None:
    read = lab.tool("read")
    context = lab.context(lab.user("before"), lab.say("yes?"), tools=[read])
    config = lab.config(lab.play([lab.say(lab.call("read")), lab.say()]), [read])
    run_loop([lab.user("go")], context, config, lambda _event: None, CancelToken())
    assert context == lab.context(lab.user("before"), lab.say("yes?"), tools=[read])


def test_transform_context_decides_what_the_model_sees_and_changes_nothing_else(lab: "Lab") -> None:
    seen: list[Sequence[Message]] = []

    def last_only(messages: Sequence[Message]) -> list[Message]:
        seen.append(messages)
        return [messages[-1]]

    turns = [lab.say(lab.call("read")), lab.say("done")]
    ran = lab.run(turns, [lab.tool("read")], hooks=Hooks(transform_context=last_only))
    assert [request.messages for request in ran.requests] == [(ran.messages[0],), (ran.messages[2],)]
    assert seen == [ran.messages[:1], ran.messages[:3]]
    assert len(ran.messages) == 4


# Recognising calls


def test_calls_are_found_in_the_content_whatever_the_stop_reason_says(lab: "Lab") -> None:
    ran = lab.run([lab.say(lab.call("read"), stop_reason="stop"), lab.say("done")], [lab.tool("read", "text")])
    assert ran.result_texts == ["text"]


def test_a_message_without_calls_is_an_answer_whatever_the_stop_reason_says(lab: "Lab") -> None:
    assert lab.run([lab.say("hm", stop_reason="tool_use")]).lines[-1] == "agent_end 2 messages"


@pytest.mark.parametrize("stop_reason", ["length", "error", "aborted"])
def test_calls_of_a_message_that_was_cut_off_are_not_executed_and_each_has_a_result(
    lab: "Lab", stop_reason: StopReason
) -> None:
    calls = [lab.call("write", "a", path="x"), lab.call("nobody", "b", raw='{"path": "y", "con')]
    ran = lab.run([lab.say(*calls, stop_reason=stop_reason), lab.say("done")], [lab.tool("write", never_runs)])
    begin = ran.lines.index("tool_execution_start 0 write")
    assert ran.lines[begin : begin + 9] == [
        "tool_execution_start 0 write",
        "tool_execution_end 0 error truncated_turn",
        "message_start tool_result a write",
        "message_end tool_result a write",
        "tool_execution_start 1 nobody",
        "tool_execution_end 1 error truncated_turn",
        "message_start tool_result b nobody",
        "message_end tool_result b nobody",
        "turn_end 1 2 results",
    ]


@pytest.mark.parametrize(
    ("stop_reason", "text"),
    [
        (
            "length",
            "the message was cut off at its maximum length. Send the call again, in smaller parts if it is long.",
        ),
        ("error", "the message ended early, with an error."),
        ("aborted", "the message ended early, with an error."),
    ],
)
def test_a_call_of_a_message_that_was_cut_off_is_told_so(lab: "Lab", stop_reason: StopReason, text: str) -> None:
    ran = lab.run([lab.say(lab.call("write"), stop_reason=stop_reason), lab.say("done")])
    assert ran.result_texts == [f"Not executed: {text}"]


def test_after_a_message_that_was_cut_off_by_length_the_loop_goes_on_with_the_results(lab: "Lab") -> None:
    ran = lab.run([lab.say(lab.call("write"), stop_reason="length"), lab.say("done")])
    assert ran.requests[1].messages == ran.messages[:3]
    assert ran.messages[-1] == lab.say("done")


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_a_failure_of_the_provider_is_a_message_and_ends_the_run(lab: "Lab", stop_reason: StopReason) -> None:
    failed = lab.say("half an", lab.call("read"), stop_reason=stop_reason, error_message="overloaded")
    ran = lab.run([failed])
    assert ran.lines[-2:] == ["turn_end 1 1 results", "agent_end 3 messages"]
    assert ran.messages[1] == failed


# After a turn


def test_should_stop_after_turn_sees_the_whole_turn_and_ends_the_run_gracefully(lab: "Lab") -> None:
    turns: list[FinishedTurn] = []
    asked = [lab.say(lab.call("read", "a")), lab.say(lab.call("read", "b")), lab.say("never")]

    def stop_after_two(turn: FinishedTurn) -> bool:
        turns.append(turn)
        return turn.turn == 2

    ran = lab.run(asked, [lab.tool("read")], hooks=Hooks(should_stop_after_turn=stop_after_two))
    first, second = ran.results
    assert ran.lines[-2:] == ["turn_end 2 1 results", "agent_end 5 messages"]
    assert turns == [
        FinishedTurn(1, asked[0], (first,), ran.messages[:3]),
        FinishedTurn(2, asked[1], (second,), ran.messages[:5]),
    ]


def test_should_stop_after_turn_is_asked_when_the_turn_has_ended(lab: "Lab") -> None:
    events: list[AgentEvent] = []
    hooks = Hooks(should_stop_after_turn=lambda _turn: not isinstance(events[-1], TurnEnd))
    lab.run([lab.say(lab.call("read")), lab.say("done")], [lab.tool("read")], hooks=hooks, observe=events.append)
    assert [event.turn for event in events if isinstance(event, TurnEnd)] == [1, 2]


def test_after_a_failed_turn_no_hook_is_asked(lab: "Lab") -> None:
    def not_asked(_turn: FinishedTurn) -> list[UserMessage]:
        pytest.fail("a hook was asked")

    hooks = Hooks(get_steering_messages=not_asked, get_follow_up_messages=not_asked)
    assert lab.run([lab.say(stop_reason="error")], hooks=hooks).lines[-1] == "agent_end 2 messages"


def test_steering_messages_come_before_the_next_request(lab: "Lab") -> None:
    hooks = Hooks(get_steering_messages=saying([lab.user("left"), lab.user("right")]))
    ran = lab.run([lab.say(lab.call("read")), [StreamDone(lab.say("done"))]], [lab.tool("read")], hooks=hooks)
    begin = ran.lines.index("turn_end 1 1 results")
    assert ran.lines[begin:] == [
        "turn_end 1 1 results",
        "turn_start 2",
        "message_start user left",
        "message_end user left",
        "message_start user right",
        "message_end user right",
        "message_start assistant",
        "message_end assistant stop",
        "turn_end 2 0 results",
        "agent_end 6 messages",
    ]
    assert ran.requests[1].messages == ran.messages[:5]


def test_steering_messages_keep_a_run_going_that_had_its_answer(lab: "Lab") -> None:
    asked: list[str] = []
    hooks = Hooks(
        get_steering_messages=saying([lab.user("and now?")]),
        get_follow_up_messages=silent(asked, "follow up"),
    )
    assert lab.run([lab.say("one"), lab.say("two")], hooks=hooks).messages[-1] == lab.say("two")
    assert asked == ["follow up 2"]


def test_follow_up_messages_are_asked_for_when_the_run_would_stop_and_keep_it_going(lab: "Lab") -> None:
    asked: list[int] = []

    def correct(turn: FinishedTurn) -> Sequence[UserMessage]:
        asked.append(turn.turn)
        return [lab.user("that is not JSON")] if turn.turn == 2 else []

    turns = [lab.say(lab.call("read")), lab.say("oops"), lab.say("{}")]
    ran = lab.run(turns, [lab.tool("read")], hooks=Hooks(get_follow_up_messages=correct))
    assert asked == [2, 3]
    assert ran.messages[-3:] == (lab.say("oops"), lab.user("that is not JSON"), lab.say("{}"))


def test_the_hooks_after_a_turn_are_asked_in_order(lab: "Lab") -> None:
    asked: list[str] = []
    stop = silent(asked, "stop?")
    hooks = Hooks(
        should_stop_after_turn=lambda turn: bool(stop(turn)),
        get_steering_messages=silent(asked, "steer?"),
        get_follow_up_messages=silent(asked, "follow up?"),
    )
    lab.run([lab.say("done")], hooks=hooks)
    assert asked == ["stop? 1", "steer? 1", "follow up? 1"]


def test_should_stop_wins_over_what_steering_and_follow_up_would_say(lab: "Lab") -> None:
    more = saying([lab.user("more")])
    hooks = Hooks(lambda messages: messages, None, None, lambda _turn: True, more, more)
    assert lab.run([lab.say("done")], hooks=hooks).lines[-1] == "agent_end 2 messages"


# terminate


def test_the_run_stops_when_every_result_of_the_batch_says_so(lab: "Lab") -> None:
    ran = lab.run([lab.say(lab.call("end"), lab.call("end"))], [lab.tool("end", ends_the_run)])
    assert ran.lines[-2:] == ["turn_end 1 2 results", "agent_end 4 messages"]


@pytest.mark.parametrize("other", ["plain", "missing", "denied", "broken"])
def test_the_run_goes_on_when_one_result_of_the_batch_does_not_say_so(lab: "Lab", other: str) -> None:
    def deny_one(call: ProposedToolCall) -> Decision | None:
        return Decision("deny", "default", "no") if call.tool.name == "denied" else None

    tools = [lab.tool(name, ends_the_run) for name in ("end", "denied")]
    tools += [lab.tool("plain"), lab.tool("broken", lambda *_: ToolResult((), details={1: object()}, terminate=True))]  # type: ignore[dict-item]  # broken
    turns = [lab.say(lab.call("end"), lab.call(other)), lab.say("done")]
    assert lab.run(turns, tools, hooks=Hooks(before_tool_call=deny_one)).messages[-1] == lab.say("done")


def test_a_run_that_a_tool_ends_may_be_followed_up(lab: "Lab") -> None:
    hooks = Hooks(get_follow_up_messages=saying([lab.user("not yet")]))
    ran = lab.run([lab.say(lab.call("end")), lab.say("done")], [lab.tool("end", ends_the_run)], hooks=hooks)
    assert ran.messages[-2:] == (lab.user("not yet"), lab.say("done"))


# Continuing


def test_a_conversation_is_continued_from_a_users_message(lab: "Lab") -> None:
    events: list[AgentEvent] = []
    context = lab.context(lab.user("go"), lab.say("hm"), lab.user("well?"))
    config = lab.config(lab.play([[StreamDone(lab.say("done"))]]))
    assert run_agent_continue(context, config, events.append, CancelToken()) == (lab.say("done"),)
    assert [type(event).__name__ for event in events] == [
        "AgentStart",
        "TurnStart",
        "MessageStart",
        "MessageEnd",
        "TurnEnd",
        "AgentEnd",
    ]


def test_a_conversation_is_continued_from_a_tool_result(lab: "Lab") -> None:
    requests: list[Context] = []
    result = ToolResultMessage("a", "read", (), is_error=False, timestamp=lab.now)
    context = lab.context(lab.user("go"), lab.say(lab.call("read", "a")), result)
    config = lab.config(lab.play([lab.say("done")], requests))
    assert run_agent_continue(context, config, lambda _event: None, CancelToken()) == (lab.say("done"),)
    assert requests == [context]


def test_nothing_is_continued_from_an_answer_or_from_nothing(lab: "Lab") -> None:
    events: list[AgentEvent] = []
    for context in (lab.context(), lab.context(lab.user("go"), lab.say("done"))):
        with pytest.raises(ValueError, match="nothing to continue"):
            run_agent_continue(context, lab.config(lab.play([])), events.append, CancelToken())
    assert events == []


# Cancellation


def test_a_run_that_was_cancelled_before_it_began_asks_nothing_and_is_well_formed(lab: "Lab") -> None:
    ran = lab.run([], cancel=cancelled_token("SIGTERM"))
    assert ran.lines == [
        "agent_start",
        "turn_start 1",
        "message_start user go",
        "message_end user go",
        "message_start assistant",
        "message_end assistant aborted",
        "turn_end 1 0 results",
        "agent_end 2 messages",
    ]
    assert ran.messages[1] == AssistantMessage(
        (), "aborted", "scripted", "test", "none", lab.now, error_message="Cancelled: SIGTERM."
    )


def test_a_run_that_is_cancelled_while_the_model_answers_ends_with_what_had_arrived(lab: "Lab") -> None:
    token = CancelToken()

    def stream(_m: Model, _c: Context, _o: StreamOptions, cancel: CancelToken, /) -> Iterator[StreamEvent]:
        yield StreamStart()
        token.cancel("SIGINT")
        yield StreamFailed(lab.say("half an", stop_reason="aborted", error_message=cancel.reason))

    ran = lab.run(stream, cancel=token)
    assert ran.lines[-3:] == ["message_end assistant aborted", "turn_end 1 0 results", "agent_end 2 messages"]
    assert ran.messages[1] == lab.say("half an", stop_reason="aborted", error_message="SIGINT")


def test_a_run_that_is_cancelled_while_a_tool_runs_ends_after_the_turn_and_asks_nothing_more(lab: "Lab") -> None:
    token = CancelToken()

    def cancel_the_run(_arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        token.cancel("SIGTERM")
        return "stopped"

    stop = lab.tool("stop", cancel_the_run, execution_mode="sequential")
    ran = lab.run([lab.say(lab.call("stop", "a"), lab.call("stop", "b"))], [stop], cancel=token)
    assert ran.lines[-9:] == [
        "tool_execution_end 0 ok -",
        "message_start tool_result a stop",
        "message_end tool_result a stop",
        "tool_execution_start 1 stop",
        "tool_execution_end 1 cancelled cancelled",
        "message_start tool_result b stop",
        "message_end tool_result b stop",
        "turn_end 1 2 results",
        "agent_end 4 messages",
    ]
    assert ran.result_texts == ["stopped", "Not executed. Cancelled: SIGTERM."]


def test_when_a_hook_has_cancelled_no_request_is_made_and_what_it_said_is_kept(lab: "Lab") -> None:
    token = CancelToken()

    def steer(_turn: FinishedTurn) -> Sequence[UserMessage]:
        token.cancel("enough")
        return [lab.user("more")]

    ran = lab.run([lab.say("one")], hooks=Hooks(get_steering_messages=steer), cancel=token)
    assert ran.lines[-6:] == [
        "message_start user more",
        "message_end user more",
        "message_start assistant",
        "message_end assistant aborted",
        "turn_end 2 0 results",
        "agent_end 4 messages",
    ]


def test_when_transform_context_has_cancelled_no_request_is_made(lab: "Lab") -> None:
    token = CancelToken()

    def cancel_the_run(messages: Sequence[Message]) -> Sequence[Message]:
        token.cancel("enough")
        return messages

    ran = lab.run([], hooks=Hooks(transform_context=cancel_the_run), cancel=token)
    assert ran.lines[-3:] == ["message_end assistant aborted", "turn_end 1 0 results", "agent_end 2 messages"]


def test_a_call_that_came_in_whole_after_cancellation_does_not_start(lab: "Lab") -> None:
    token = CancelToken()

    def stream(_m: Model, _c: Context, _o: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        token.cancel("SIGTERM")
        yield StreamDone(lab.say(lab.call("read")))

    assert lab.run(stream, [lab.tool("read", never_runs)], cancel=token).roads == [("cancelled", "cancelled")]


# A provider that breaks its contract


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("ends", "its stream ended without a final message"),
        ("says nothing", "its stream ended without a final message"),
        ("goes on", "its stream went on after the final message"),
        ("ends twice", "its stream went on after the final message"),
        ("failed but fine", "it sent StreamFailed with stop reason stop"),
        ("fine but failed", "it sent StreamDone with stop reason error"),
    ],
)
def test_a_stream_that_breaks_the_protocol_is_a_message_that_says_so_and_ends_the_run(
    lab: "Lab", name: str, problem: str
) -> None:
    message = lab.say("hello")
    streams: dict[str, list[StreamEvent]] = {
        "ends": [StreamStart(), ContentStart("text", 0)],
        "says nothing": [],
        "goes on": [StreamDone(message), ContentDelta("text", 0, "!")],
        "ends twice": [StreamDone(message), StreamDone(message)],
        "failed but fine": [StreamFailed(message)],
        "fine but failed": [StreamDone(lab.say("hello", stop_reason="error"))],
    }
    _, last = lab.run([streams[name]]).messages
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.error_message) == ("error", f"The provider broke the stream protocol: {problem}.")
    assert last.content == (() if name in {"ends", "says nothing"} else message.content)


def test_a_call_of_a_message_after_which_the_stream_went_on_is_not_executed(lab: "Lab") -> None:
    ran = lab.run([[StreamDone(lab.say(lab.call("read"))), StreamStart()]], [lab.tool("read", never_runs)])
    assert ran.roads == [("error", "truncated_turn")]


def test_a_stream_that_goes_on_for_ever_after_its_final_message_is_left(lab: "Lab") -> None:
    def stream(_m: Model, _c: Context, _o: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        while True:
            yield StreamDone(lab.say("hello"))

    assert lab.run(stream).lines[-3:] == [
        "message_end assistant error",
        "turn_end 1 0 results",
        "agent_end 2 messages",
    ]


def test_a_provider_that_raises_is_a_bug_and_is_not_hidden(lab: "Lab") -> None:
    def stream(_m: Model, _c: Context, _o: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        yield StreamStart()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lab.run(stream)


def test_a_provider_that_lets_cancellation_pass_ends_the_run_as_aborted(lab: "Lab") -> None:
    def stream(_m: Model, _c: Context, _o: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        yield StreamStart()
        raise Cancelled("SIGTERM")

    def no_stream(_m: Model, _c: Context, _o: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        raise Cancelled("SIGTERM")

    aborted = ["message_end assistant aborted", "turn_end 1 0 results", "agent_end 2 messages"]
    assert [lab.run(provider).lines[-3:] for provider in (stream, no_stream)] == [aborted, aborted]


# Exceptions that end a run


def test_an_exception_in_emit_ends_the_run_wherever_it_comes_and_nothing_is_emitted_after_it(lab: "Lab") -> None:
    turns = [lab.say(lab.call("read"), lab.call("missing"), lab.call("read")), lab.say("done")]
    total = len(lab.run(turns, [lab.tool("read")]).events)

    def emitted_until_refused(at: int) -> int:
        emitted: list[AgentEvent] = []

        def refuse(event: AgentEvent) -> None:
            emitted.append(event)
            if len(emitted) == at:
                raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            lab.run(turns, [lab.tool("read")], observe=refuse)
        return len(emitted)

    places = list(range(1, total + 1))
    assert [emitted_until_refused(at) for at in places] == places


def test_a_stream_is_closed_when_an_exception_cuts_it_short(lab: "Lab") -> None:
    closed: list[bool] = []

    def stream(_m: Model, _c: Context, _o: StreamOptions, _cancel: CancelToken, /) -> Iterator[StreamEvent]:
        try:
            yield ContentStart("text", 0)
            yield StreamDone(lab.say())
        finally:
            closed.append(True)

    def refuse(event: AgentEvent) -> None:
        if isinstance(event, MessageUpdate):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full") as held:  # its traceback keeps the stream alive
        lab.run(stream, observe=refuse)
    assert (closed, held.type) == ([True], OSError)


@pytest.mark.parametrize(
    "name", ["transform_context", "should_stop_after_turn", "get_steering_messages", "get_follow_up_messages"]
)
@pytest.mark.parametrize("exception", [LookupError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_a_hook_that_is_not_about_a_call_ends_the_run(
    lab: "Lab", name: str, exception: type[BaseException]
) -> None:
    events: list[AgentEvent] = []

    def fail(_argument: object) -> list[UserMessage]:
        raise exception

    with pytest.raises(exception):
        lab.run([lab.say("hello")], hooks=Hooks(**{name: fail}), observe=events.append)  # type: ignore[arg-type]  # never returns
    assert not any(isinstance(event, AgentEnd) for event in events)


# Cost


def test_messages_are_handed_on_as_they_are_and_never_copied(lab: "Lab") -> None:
    calls = [lab.say(lab.call("read", str(number))) for number in range(200)]
    ran = lab.run([*calls, lab.say("done")], [lab.tool("read")])
    ended = [event.message for event in ran.events if isinstance(event, MessageEnd)]
    assert len(ran.messages) == 402
    assert all(mine is theirs for mine, theirs in zip(ran.requests[-1].messages, ran.messages[:-1], strict=True))
    assert all(mine is theirs for mine, theirs in zip(ended, ran.messages, strict=True))
