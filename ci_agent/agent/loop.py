"""The loop: ask the model, recognise its calls, execute them, put the results back, repeat.

Only this module appends to the conversation. It knows no policy, no tool and no provider: it has hooks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, assert_never

from ci_agent.agent.config import LoopConfig
from ci_agent.agent.tool_calls import ExecutedToolCallBatch, ToolCallBatch, execute_tool_calls, refuse_tool_calls
from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.events import AgentEnd, AgentStart, Emit, MessageEnd, MessageStart, MessageUpdate, TurnEnd, TurnStart
from ci_agent.hooks import FinishedTurn, GetMessages, Hooks
from ci_agent.messages import AssistantMessage, Message, StopReason, UserMessage
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
    Context,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamNotice,
    StreamStart,
)

__all__ = ["LoopConfig", "run_agent_continue", "run_loop", "stream_assistant_response"]

_FAILED: frozenset[StopReason] = frozenset({"error", "aborted"})


def run_loop(
    prompts: Sequence[UserMessage], context: Context, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> tuple[Message, ...]:
    """Put the prompts to the model and go on until it has answered; returns all new messages, the prompts included.

    `context.messages` is what was said before, and is left alone. What ends a run early (a provider's failure,
    cancellation) is an assistant message or a result among the new messages. Exceptions pass from `emit`, from hooks
    other than the two around a tool call, and from a provider that raises; then no `AgentEnd` is emitted.
    """
    return _run(prompts, context, config, emit, cancel)


def run_agent_continue(context: Context, config: LoopConfig, emit: Emit, cancel: CancelToken) -> tuple[Message, ...]:
    """As `run_loop`, from a conversation whose last message waits for an answer; ValueError when it does not."""
    if not context.messages or isinstance(context.messages[-1], AssistantMessage):
        raise ValueError("nothing to continue: the last message must be a user's or a tool result")
    return _run((), context, config, emit, cancel)


def _run(
    prompts: Sequence[UserMessage], context: Context, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> tuple[Message, ...]:
    conversation: list[Message] = list(context.messages)
    offered = frozenset(tool.name for tool in context.tools)
    pending: Sequence[UserMessage] | None = prompts
    turn = 0
    emit(AgentStart())
    while pending is not None:
        turn += 1
        emit(TurnStart(turn))
        for prompt in pending:
            emit(MessageStart(prompt))
            emit(MessageEnd(prompt))
            conversation.append(prompt)
        message = stream_assistant_response(replace(context, messages=tuple(conversation)), config, emit, cancel)
        conversation.append(message)
        calls = ToolCallBatch(turn, message.tool_calls, offered)
        batch = _answer_tool_calls(calls, message.stop_reason, config, emit, cancel)
        conversation.extend(batch.messages)
        emit(TurnEnd(turn, message, batch.messages))
        if message.stop_reason in _FAILED or cancel.is_cancelled:
            break
        finished = FinishedTurn(turn, message, batch.messages, tuple(conversation))
        pending = _messages_for_next_turn(finished, batch.terminate, config.hooks)
    new_messages = tuple(conversation[len(context.messages) :])
    emit(AgentEnd(new_messages))
    return new_messages


def stream_assistant_response(
    context: Context, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> AssistantMessage:
    """Ask the model for one message. It only generates: nothing that the message asks for has been done.

    No request is made once cancelled. The provider's failure, its breaking of the stream protocol and cancellation
    are messages with stop reason `error` or `aborted`.
    """
    emit(MessageStart(None))
    try:
        cancel.raise_if_cancelled()
        request = _transformed(context, config.hooks)
        cancel.raise_if_cancelled()
        message = _forward(config.stream_fn(config.model, request, config.options, cancel), emit)
    except Cancelled as cancelled:
        message = _no_message(config, "aborted", f"Cancelled: {cancelled.reason}.")
    if message is None:
        message = _no_message(config, "error", _protocol_error("its stream ended without a final message"))
    emit(MessageEnd(message))
    return message


def _transformed(context: Context, hooks: Hooks) -> Context:
    if hooks.transform_context is None:
        return context
    return replace(context, messages=tuple(hooks.transform_context(context.messages)))


def _forward(stream: Iterator[StreamEvent], emit: Emit) -> AssistantMessage | None:
    """The message of the stream; None when it ended without one."""
    message: AssistantMessage | None = None
    try:
        for event in stream:
            if message is not None:
                return _broken(message, "its stream went on after the final message")
            match event:
                case StreamStart():
                    pass
                case ContentStart() | ContentDelta() | ContentEnd() | StreamNotice():
                    emit(MessageUpdate(event))
                case StreamDone() | StreamFailed():
                    message = _final_message(event)
                case _:
                    assert_never(event)
    finally:
        _close(stream)
    return message


def _final_message(event: StreamDone | StreamFailed) -> AssistantMessage:
    failed = event.message.stop_reason in _FAILED
    if failed == isinstance(event, StreamFailed):
        return event.message
    return _broken(event.message, f"it sent {type(event).__name__} with stop reason {event.message.stop_reason}")


def _broken(message: AssistantMessage, problem: str) -> AssistantMessage:
    return replace(message, stop_reason="error", error_message=_protocol_error(problem))


def _protocol_error(problem: str) -> str:
    return f"The provider broke the stream protocol: {problem}."


def _no_message(config: LoopConfig, stop_reason: Literal["error", "aborted"], error_message: str) -> AssistantMessage:
    return AssistantMessage(
        content=(),
        stop_reason=stop_reason,
        provider=config.model.provider,
        model=config.model.id,
        api="none",
        timestamp=config.now(),
        error_message=error_message,
    )


def _close(stream: Iterator[StreamEvent]) -> None:
    """Let a generator release its connection now; when it is left early, nothing else says when."""
    close = getattr(stream, "close", None)
    if close is not None:
        close()


def _answer_tool_calls(
    batch: ToolCallBatch, stop_reason: StopReason, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> ExecutedToolCallBatch:
    match stop_reason:
        case "stop" | "tool_use":
            return execute_tool_calls(batch, config, emit, cancel)
        case "length":
            why = "the message was cut off at its maximum length. Send the call again, in smaller parts if it is long"
        case "error" | "aborted":
            why = "the message ended early, with an error"
        case _:
            assert_never(stop_reason)
    return refuse_tool_calls(batch, f"Not executed: {why}.", config, emit)


def _messages_for_next_turn(turn: FinishedTurn, terminate: bool, hooks: Hooks) -> Sequence[UserMessage] | None:
    """What is to be said before the next request, maybe nothing; None when the run is over."""
    if hooks.should_stop_after_turn is not None and hooks.should_stop_after_turn(turn):
        return None
    steering = _ask(hooks.get_steering_messages, turn)
    would_stop = terminate or not turn.tool_results
    if steering or not would_stop:
        return steering
    return _ask(hooks.get_follow_up_messages, turn) or None


def _ask(hook: GetMessages | None, turn: FinishedTurn) -> Sequence[UserMessage]:
    return hook(turn) if hook is not None else ()
