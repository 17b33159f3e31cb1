"""The four gates that a tool call passes before it runs: lookup, repair, validation, `before_tool_call`."""

from collections.abc import Collection
from dataclasses import dataclass

from ci_agent.agent.arguments import InvalidArgumentsError, read_arguments
from ci_agent.agent.config import LoopConfig
from ci_agent.agent.results import create_cancelled_tool_result, create_denied_tool_result, create_error_tool_result
from ci_agent.agent.wording import show_name, show_names
from ci_agent.cancellation import Cancelled
from ci_agent.hooks import BeforeToolCall, Decision, ProposedToolCall, ToolCallOutcome
from ci_agent.messages import ToolCall
from ci_agent.spelling import nearest


@dataclass(frozen=True, slots=True)
class PreparedToolCall:
    """A call that passed all four gates."""

    proposed: ProposedToolCall
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class ImmediateToolCallOutcome:
    """How a call ended that one of the gates stopped."""

    outcome: ToolCallOutcome
    denied: ProposedToolCall | None = None
    """What the fourth gate denied; None when the call did not come that far."""


def prepare_tool_call(
    tool_call: ToolCall, offered: Collection[str], config: LoopConfig
) -> PreparedToolCall | ImmediateToolCallOutcome:
    """Four gates: lookup, repair, validation, `before_tool_call`. Raises nothing but what ends the process."""
    tool = config.tools.get(tool_call.name)
    if tool is None:
        return ImmediateToolCallOutcome(create_error_tool_result(_not_found(tool_call.name, offered), "lookup"))
    try:
        proposed = ProposedToolCall(tool_call, tool, read_arguments(tool, tool_call.arguments_json))
        decision = _decide(proposed, offered, config.hooks.before_tool_call)
    except InvalidArgumentsError as error:
        return ImmediateToolCallOutcome(create_error_tool_result(str(error), "arguments"))
    except Cancelled as cancelled:
        return ImmediateToolCallOutcome(create_cancelled_tool_result("Not executed.", cancelled.reason))
    if decision is not None and decision.effect != "allow":
        return ImmediateToolCallOutcome(create_denied_tool_result(decision), proposed)
    return PreparedToolCall(proposed, decision)


def _not_found(name: str, offered: Collection[str]) -> str:
    close = nearest(name, offered)
    hint = f" Did you mean {show_name(close)}?" if close is not None else ""
    return f"Tool {show_name(name)} not found.{hint} {_available(offered)}"


def _available(offered: Collection[str]) -> str:
    return f"Available tools: {show_names(offered)}." if offered else "There are no tools."


def _decide(proposed: ProposedToolCall, offered: Collection[str], hook: BeforeToolCall | None) -> Decision | None:
    """The fourth gate. The hook is asked even about a tool that was not offered: its no may weigh more than ours."""
    decision = _ask(hook, proposed) if hook is not None else None
    allowed = decision is None or decision.effect == "allow"
    if allowed and proposed.tool_call.name not in offered:
        return not_offered(proposed.tool_call.name, offered)
    return decision


def not_offered(name: str, offered: Collection[str]) -> Decision:
    """The denial of a call that the policy allows, of a tool that the model was not told of."""
    reason = f"Tool {show_name(name)} is not offered in this run. {_available(offered)}"
    return Decision(effect="deny", code="not_offered", reason=reason)


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
