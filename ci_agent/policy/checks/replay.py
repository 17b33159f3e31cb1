"""Recorded calls decided under another policy: what would change."""

from dataclasses import dataclass

from ci_agent.hooks import Decision
from ci_agent.policy.checks.recorded import RecordedCall, RecordedRun
from ci_agent.policy.counting import CallCounter
from ci_agent.policy.decide import Policy


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    call: RecordedCall
    decision: Decision
    """What the other policy says."""

    @property
    def flips(self) -> bool:
        """Allowed where it was denied, or denied where it was allowed. Another reason for the same is no flip."""
        return self.decision.effect != self.call.answer.effect


def replay_run(run: RecordedRun, policy: Policy) -> list[ReplayedCall]:
    """Decide the calls of one run in their order; rules with `max_calls` count from zero, as at the run's start.

    A model that had got other answers would have gone on differently: this says what each answer would have been,
    not how the run would have ended. Paths lead where they lead on the disk as it is now.
    """
    counter = CallCounter(policy)
    return [ReplayedCall(call, counter.decide(call.tool, call.arguments)) for call in run.calls]
