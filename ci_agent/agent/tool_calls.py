"""One batch of tool calls: schedule, prepare, execute, finalise. Gets calls, returns results, touches nothing else."""

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, assert_never

from ci_agent.agent.config import LoopConfig
from ci_agent.agent.prepare import ImmediateToolCallOutcome, PreparedToolCall, prepare_tool_call
from ci_agent.agent.results import (
    copy_content,
    copy_json,
    copy_result,
    create_cancelled_tool_result,
    create_error_tool_result,
    create_failed_tool_result,
)
from ci_agent.agent.workers import run_on_threads
from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.events import (
    Emit,
    MessageEnd,
    MessageStart,
    ToolExecutionDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from ci_agent.hooks import (
    AfterToolCall,
    Decision,
    ExecutedToolCall,
    ProposedToolCall,
    ResultOverride,
    ToolCallOutcome,
)
from ci_agent.messages import ToolCall, ToolResultMessage
from ci_agent.tool import OnUpdate, ToolResult


@dataclass(frozen=True, slots=True)
class ToolCallBatch:
    """The calls of one assistant message, in its order."""

    turn: int
    calls: tuple[ToolCall, ...]
    offered: Collection[str]
    """Names of the tools that the model was offered."""


@dataclass(frozen=True, slots=True)
class ExecutedToolCallBatch:
    messages: tuple[ToolResultMessage, ...]
    """One for each call, in the order of the calls."""
    terminate: bool
    """Every result of the batch says that the run may stop. False for a batch without calls."""


class IndexedCall(NamedTuple):
    """What names a call in an event: ids may be empty or repeat."""

    turn: int
    position: int
    tool_call: ToolCall


def execute_tool_calls(
    batch: ToolCallBatch, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> ExecutedToolCallBatch:
    """Give every call exactly one result, whatever happens to it.

    Parallel, unless the run is sequential or a tool that is named is. Events come in this thread. What leaves by an
    exception (from `emit`, or a tool's SystemExit) cancels the tools that run.
    """
    if _runs_in_order(batch, config):
        return execute_tool_calls_sequential(batch, config, emit, cancel)
    return execute_tool_calls_parallel(batch, config, emit, cancel)


def execute_tool_calls_sequential(
    batch: ToolCallBatch, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> ExecutedToolCallBatch:
    """Each call is prepared, executed and finalised before the next is looked at."""
    outcomes: list[ToolCallOutcome] = []
    messages: list[ToolResultMessage] = []
    for call in _indexed(batch):
        preparation = _begin(call, batch.offered, config, emit, cancel)
        if isinstance(preparation, PreparedToolCall):
            outcome = _execute_together([(call, preparation)], config, emit, cancel)[call.position]
        else:
            outcome = preparation
        outcomes.append(outcome)
        messages.append(_emit_result(call, outcome, config, emit))
    return _executed(outcomes, messages)


def execute_tool_calls_parallel(
    batch: ToolCallBatch, config: LoopConfig, emit: Emit, cancel: CancelToken
) -> ExecutedToolCallBatch:
    """The calls are prepared one after another, then the allowed ones execute at the same time. They end in the order
    in which they finish; their result messages come in the order of the calls."""
    calls = _indexed(batch)
    outcomes: dict[int, ToolCallOutcome] = {}
    prepared: list[tuple[IndexedCall, PreparedToolCall]] = []
    for call in calls:
        preparation = _begin(call, batch.offered, config, emit, cancel)
        if isinstance(preparation, PreparedToolCall):
            prepared.append((call, preparation))
        else:
            outcomes[call.position] = preparation
    outcomes |= _execute_together(prepared, config, emit, cancel)
    messages = [_emit_result(call, outcomes[call.position], config, emit) for call in calls]
    return _executed(list(outcomes.values()), messages)


def refuse_tool_calls(batch: ToolCallBatch, why: str, config: LoopConfig, emit: Emit) -> ExecutedToolCallBatch:
    """Execute none of the calls of a message that was cut off: their arguments may be half of what was meant."""
    outcome = create_error_tool_result(why, "truncated_turn")
    messages = []
    for call in _indexed(batch):
        emit(ToolExecutionStart(*call))
        emit(ToolExecutionEnd(*call, outcome))
        messages.append(_emit_result(call, outcome, config, emit))
    return ExecutedToolCallBatch(tuple(messages), terminate=False)


def execute_prepared_tool_call(prepared: PreparedToolCall, cancel: CancelToken, on_update: OnUpdate) -> ToolCallOutcome:
    """Run the tool. Every Exception of it becomes an error result; Cancelled passes."""
    call = prepared.proposed
    try:
        returned = call.tool.execute(
            call.tool_call.id, call.arguments, cancel, lambda update: on_update(copy_result(update))
        )
        result = copy_result(returned)
    except Exception as error:  # noqa: BLE001  whatever a tool raises is for the model, which can try something else
        return create_failed_tool_result(error)
    return ToolCallOutcome("ok", None, result.content, result.details, terminate=result.terminate)


def finalize_executed_tool_call(
    prepared: PreparedToolCall, executed: ToolCallOutcome, after_tool_call: AfterToolCall | None
) -> ToolCallOutcome:
    """Let `after_tool_call` replace what it wants to, field by field. A call that was cancelled stays cancelled."""
    outcome = replace(executed, decision=prepared.decision)
    if after_tool_call is None or executed.status == "cancelled":
        return outcome
    seen = ExecutedToolCall(
        prepared.proposed, outcome.content, copy_json(outcome.details), outcome.is_error, outcome.terminate
    )
    try:
        override = after_tool_call(seen)
        return outcome if override is None else _overridden(outcome, override)
    except (Exception, Cancelled) as error:  # noqa: BLE001  the call ran, and must have its one result
        message = f"The tool ran, but after_tool_call failed with {type(error).__name__}; its result is withheld."
        return replace(create_error_tool_result(message, "after_tool_call"), decision=prepared.decision)


def _runs_in_order(batch: ToolCallBatch, config: LoopConfig) -> bool:
    tools = (config.tools.get(call.name) for call in batch.calls)
    return config.execution_mode == "sequential" or any(tool and tool.execution_mode == "sequential" for tool in tools)


def _indexed(batch: ToolCallBatch) -> list[IndexedCall]:
    return [IndexedCall(batch.turn, index, call) for index, call in enumerate(batch.calls)]


def _begin(
    call: IndexedCall, offered: Collection[str], config: LoopConfig, emit: Emit, cancel: CancelToken
) -> PreparedToolCall | ToolCallOutcome:
    """Take the call up and prepare it; when it has ended with that, say so."""
    emit(ToolExecutionStart(*call))
    if cancel.is_cancelled:
        return _end(call, create_cancelled_tool_result("Not executed.", cancel.reason), emit)
    preparation = prepare_tool_call(call.tool_call, offered, config)
    match preparation:
        case PreparedToolCall(proposed, decision):
            _emit_decision(call, decision, proposed, emit)
            return preparation
        case ImmediateToolCallOutcome(outcome, denied):
            if denied is not None:
                _emit_decision(call, outcome.decision, denied, emit)
            return _end(call, outcome, emit)
        case _:
            assert_never(preparation)


def _emit_decision(call: IndexedCall, decision: Decision | None, proposed: ProposedToolCall, emit: Emit) -> None:
    # A copy: the arguments themselves are the tool's, and whoever keeps the event would see it change them.
    emit(ToolExecutionDecision(*call, decision, copy.deepcopy(proposed.arguments)))


def _end(call: IndexedCall, outcome: ToolCallOutcome, emit: Emit) -> ToolCallOutcome:
    emit(ToolExecutionEnd(*call, outcome))
    return outcome


def _execute_together(
    prepared: Sequence[tuple[IndexedCall, PreparedToolCall]], config: LoopConfig, emit: Emit, cancel: CancelToken
) -> dict[int, ToolCallOutcome]:
    """The outcomes by the position of their call, in the order in which they finished."""
    outcomes: dict[int, ToolCallOutcome] = {}
    work = [partial(execute_prepared_tool_call, preparation) for _, preparation in prepared]
    with run_on_threads(work, cancel, config.max_parallel, config.abandon_after_s) as reports:
        for number, report in reports:
            call, preparation = prepared[number]
            if isinstance(report, ToolResult):
                emit(ToolExecutionUpdate(*call, report))
            else:
                outcome = finalize_executed_tool_call(preparation, report, config.hooks.after_tool_call)
                outcomes[call.position] = _end(call, outcome, emit)
    return outcomes


def _emit_result(call: IndexedCall, outcome: ToolCallOutcome, config: LoopConfig, emit: Emit) -> ToolResultMessage:
    message = ToolResultMessage(
        tool_call_id=call.tool_call.id,
        tool_name=call.tool_call.name,
        content=outcome.content,
        is_error=outcome.is_error,
        timestamp=config.now(),
        details=outcome.details,
    )
    emit(MessageStart(message))
    emit(MessageEnd(message))
    return message


def _executed(outcomes: Sequence[ToolCallOutcome], messages: Sequence[ToolResultMessage]) -> ExecutedToolCallBatch:
    terminate = bool(outcomes) and all(outcome.terminate for outcome in outcomes)
    return ExecutedToolCallBatch(tuple(messages), terminate)


def _overridden(outcome: ToolCallOutcome, override: ResultOverride) -> ToolCallOutcome:
    is_error = outcome.is_error if override.is_error is None else override.is_error
    return replace(
        outcome,
        status="error" if is_error else "ok",
        stage=(outcome.stage or "after_tool_call") if is_error else None,
        content=outcome.content if override.content is None else copy_content(override.content),
        details=outcome.details if override.details is None else copy_json(override.details),
        terminate=outcome.terminate if override.terminate is None else override.terminate,
    )
