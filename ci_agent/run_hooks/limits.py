"""What ends a run that does not end by itself: turns, calls, tokens, cost, time, the room for its record."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

from ci_agent.events import AgentEvent, MessageEnd, ToolExecutionStart
from ci_agent.hooks import Decision, FinishedTurn, ProposedToolCall
from ci_agent.messages import AssistantMessage, Usage, add_usage
from ci_agent.policy.rules import Limits, tightest_limits
from ci_agent.spelling import counted

OUT_OF_CALLS = "Not executed: the run's limit of"
OUT_OF_ROOM = "the disk that holds the run's record is full"
POLICY_NOT_ASKED = (OUT_OF_CALLS, f"Not executed: {OUT_OF_ROOM}")
"""What the reason of a denial begins with that the policy was not asked about."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    max_turns: int = 100
    max_tool_calls: int = 1_000
    max_tokens: int | None = None
    """Input and output of the whole run; None: no limit."""
    max_cost_usd: float | None = None
    timeout_s: float = 3_600.0


def tightest(policy: Limits, asked: Limits) -> RunLimits:
    """What the policy and the command line allow together: the smaller where both speak, the default where neither
    does. So a flag can tighten the policy's limits and never loosen them."""
    said = asdict(tightest_limits([policy, asked]))
    return RunLimits(**{name: limit for name, limit in said.items() if limit is not None})


def loosened(policy: Limits, asked: Limits) -> list[str]:
    """Names of the limits for which the command line asked for more than the policy allows."""
    return [
        limit.name
        for limit in fields(Limits)
        if (ceiling := getattr(policy, limit.name)) is not None
        and (wish := getattr(asked, limit.name)) is not None
        and wish > ceiling
    ]


class LimitWatch:
    """Counts what the run uses up. `exceeded` says which limit was reached, once the run could not go on."""

    def __init__(self, limits: RunLimits, is_short_of_room: Callable[[], bool] = lambda: False) -> None:
        """`is_short_of_room` says whether the record could not go on for long."""
        self.limits = limits
        self._is_short_of_room = is_short_of_room
        self.exceeded: str | None = None
        self._calls = 0
        self._usages: list[Usage] = []

    @property
    def usage(self) -> Usage:
        return add_usage(self._usages)

    def observe(self, event: AgentEvent) -> None:
        """Take in an event of the loop; every call counts, also one that no tool answers."""
        if isinstance(event, ToolExecutionStart):
            self._calls += 1
        elif isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self._usages.append(event.message.usage)

    def before_tool_call(self, _call: ProposedToolCall, /) -> Decision | None:
        """Deny the calls of a batch that are beyond the limit; the turn after which the run ends is still whole."""
        if self._is_short_of_room():
            return Decision(effect="deny", code="limit", reason=f"Not executed: {OUT_OF_ROOM}.")
        if self._calls <= self.limits.max_tool_calls:
            return None
        reason = f"{OUT_OF_CALLS} {counted(self.limits.max_tool_calls, 'tool call')} is used up."
        return Decision(effect="deny", code="limit", reason=reason)

    def should_stop_after_turn(self, turn: FinishedTurn, /) -> bool:
        """True when the run would go on and must not. A turn that answers is an end, not an excess."""
        if turn.tool_results:
            self.exceeded = self._used_up(turn)
        return self.exceeded is not None

    def may_follow_up(self, turn: FinishedTurn) -> bool:
        """Whether one more request is within the limits, after an answer that is not good enough."""
        self.exceeded = self._used_up(turn)
        return self.exceeded is None

    def _used_up(self, turn: FinishedTurn) -> str | None:
        if self._is_short_of_room():
            return OUT_OF_ROOM
        checks: tuple[tuple[bool, str], ...] = (
            (self._calls > self.limits.max_tool_calls, counted(self.limits.max_tool_calls, "tool call")),
            (turn.turn >= self.limits.max_turns, counted(self.limits.max_turns, "turn")),
            (_reached(self.usage.total_tokens, self.limits.max_tokens), counted(self.limits.max_tokens or 0, "token")),
            (_reached(self.usage.cost_usd, self.limits.max_cost_usd), f"{self.limits.max_cost_usd} USD"),
        )
        return next((f"the limit of {what} is used up" for reached, what in checks if reached), None)


def _reached(used: float | None, limit: float | None) -> bool:
    return limit is not None and used is not None and used >= limit
