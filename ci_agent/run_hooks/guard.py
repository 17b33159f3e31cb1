"""What stands before each call of a run: limits and policy; and what a denial does to the run."""

from collections.abc import Callable, Collection

from ci_agent.hooks import BeforeToolCall, Decision, ProposedToolCall


class Guard:
    """The run's `before_tool_call`: asks each hook in turn, and the first denial counts.

    A denial with `on_denied` `stop` ends the run through `stop`, which gets the reason; calls after it are not
    decided any more.
    """

    def __init__(self, hooks: Collection[BeforeToolCall], stop: Callable[[str], None]) -> None:
        self._hooks = hooks
        self._stop = stop
        self.failed_by: Decision | None = None
        """The first denial that asked for a failing exit code: its `on_denied` is `fail` or `stop`."""
        self.stopped_by: str | None = None
        """Why the run was ended by a denial; None: it was not."""

    def __call__(self, call: ProposedToolCall, /) -> Decision | None:
        decision = self._decide(call)
        if decision is not None and decision.effect == "deny" and decision.on_denied != "record":
            self._trip(decision)
        return decision

    def _decide(self, call: ProposedToolCall) -> Decision | None:
        decision: Decision | None = None
        for hook in self._hooks:
            decision = hook(call)
            if decision is not None and decision.effect == "deny":
                break
        return decision

    def _trip(self, decision: Decision) -> None:
        self.failed_by = self.failed_by or decision
        if decision.on_denied == "stop" and self.stopped_by is None:
            self.stopped_by = f"the run was stopped: {decision.reason}"
            self._stop(self.stopped_by)
