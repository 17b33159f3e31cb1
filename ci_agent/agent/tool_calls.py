"""One batch of tool calls: schedule, prepare (four gates), execute, finalise. Touches no state of the loop."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ci_agent.agent.arguments import InvalidArgumentsError, read_arguments
from ci_agent.agent.config import LoopConfig
from ci_agent.agent.results import (
    copy_content,
    copy_json,
    copy_result,
    create_cancelled_tool_result,
    create_error_tool_result,
)
from ci_agent.agent.wording import nearest_name, show_exception, show_name, show_names
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
    BeforeToolCall,
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


@dataclass(frozen=True, slots=True)
class PreparedToolCall:
    """A call that passed all four gates."""

    proposed: ProposedToolCall
    decision: Decision | None


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


def prepare_tool_call(
    tool_call: ToolCall, offered: Collection[str], config: LoopConfig
) -> PreparedToolCall | ToolCallOutcome:
    """Four gates: lookup, repair, validation, `before_tool_call`. Returns how the call ended, or that it may run.

    Raises nothing that an application should handle: only KeyboardInterrupt and SystemExit pass.
    """
    tool = config.tools.get(tool_call.name)
    if tool is None:
        return create_error_tool_result(_not_found(tool_call.name, offered), "lookup")
    try:
        proposed = ProposedToolCall(tool_call, tool, read_arguments(tool, tool_call.arguments_json))
        decision = _decide(proposed, offered, config.hooks.before_tool_call)
    except InvalidArgumentsError as error:
        return create_error_tool_result(str(error), "arguments")
    except Cancelled as cancelled:
        return create_cancelled_tool_result("Not executed.", cancelled.reason)
    if decision is not None and decision.effect != "allow":
        return create_error_tool_result(decision.reason, "before_tool_call", decision=decision)
    return PreparedToolCall(proposed, decision)


def execute_prepared_tool_call(prepared: PreparedToolCall, cancel: CancelToken, on_update: OnUpdate) -> ToolCallOutcome:
    """Run the tool. Every Exception of it becomes an error result; Cancelled passes."""
    call = prepared.proposed
    try:
        returned = call.tool.execute(
            call.tool_call.id, call.arguments, cancel, lambda update: on_update(copy_result(update))
        )
        result = copy_result(returned)
    except Exception as error:  # noqa: BLE001  whatever a tool raises is for the model, which can try something else
        return create_error_tool_result(show_exception(error), "execute")
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
        preparation: PreparedToolCall | ToolCallOutcome = create_cancelled_tool_result("Not executed.", cancel.reason)
    else:
        preparation = prepare_tool_call(call.tool_call, offered, config)
    if isinstance(preparation, PreparedToolCall) or preparation.decision is not None:
        emit(ToolExecutionDecision(*call, preparation.decision))
    if isinstance(preparation, ToolCallOutcome):
        emit(ToolExecutionEnd(*call, preparation))
    return preparation


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
                outcomes[call.position] = outcome
                emit(ToolExecutionEnd(*call, outcome))
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


def _not_found(name: str, offered: Collection[str]) -> str:
    nearest = nearest_name(name, offered)
    hint = f" Did you mean {show_name(nearest)}?" if nearest is not None else ""
    available = f"Available tools: {show_names(offered)}." if offered else "There are no tools."
    return f"Tool {show_name(name)} not found.{hint} {available}"


def _decide(proposed: ProposedToolCall, offered: Collection[str], hook: BeforeToolCall | None) -> Decision | None:
    """The fourth gate. The hook is asked even about a tool that was not offered: its no may weigh more than ours."""
    decision = _ask(hook, proposed) if hook is not None else None
    allowed = decision is None or decision.effect == "allow"
    if allowed and proposed.tool_call.name not in offered:
        reason = f"Tool {show_name(proposed.tool_call.name)} is not offered in this run; it was not executed."
        return Decision(effect="deny", code="not_offered", reason=reason)
    return decision


def _ask(hook: BeforeToolCall, proposed: ProposedToolCall) -> Decision | None:
    try:
        answer: object = hook(proposed)
    except Exception as error:  # noqa: BLE001  an exception in the gate is a denial
        return _engine_error(f"it failed with {type(error).__name__}")
    if answer is None or isinstance(answer, Decision):
        return answer
    return _engine_error(f"it answered {type(answer).__name__} instead of a Decision")


def _engine_error(problem: str) -> Decision:
    reason = f"Not executed: before_tool_call could not decide, {problem}."
    return Decision(effect="deny", code="engine_error", reason=reason)


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
