"""Whether a request is tried again, and when."""

from collections.abc import Callable
from dataclasses import dataclass

from ci_agent.providers.wire.failures import ApiError
from ci_agent.spelling import counted

_FIRST_WAIT_S = 0.5
_LONGEST_OWN_WAIT_S = 8.0
_JITTER = 0.25
_EMPTY_ANSWERS = 2
"""A model that says nothing twice will say nothing a third time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    attempts: int = 5
    """For one message, the first included."""
    longest_wait_s: float = 60.0
    """A server that asks for more is not waited for."""
    total_wait_s: float = 300.0
    """Of all waits for one message."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: str
    """What to say besides the failure itself; empty: that says it all."""


def next_wait_s(
    policy: RetryPolicy, failure: ApiError, attempt: int, waited_s: float, random: Callable[[], float]
) -> float | GiveUp:
    """Seconds until the next attempt after the `attempt`th has failed. `random` gives numbers from 0 to 1."""
    if not failure.retryable:
        return GiveUp("")
    is_last = attempt >= policy.attempts and (policy.attempts == 1 or waited_s >= failure.may_be_starting_s)
    if is_last or (failure.kind == "empty" and attempt >= _EMPTY_ANSWERS):
        return GiveUp(f"gave up after {attempt} attempts" if attempt > 1 else "")
    asked = failure.retry_after_s
    if asked is not None and asked > policy.longest_wait_s:
        return GiveUp(f"the server asks to wait {asked:g} s, and the longest wait is {policy.longest_wait_s:g} s")
    wait_s = asked or _own_wait_s(attempt, random)
    if waited_s + wait_s > policy.total_wait_s:
        return GiveUp(f"gave up after {counted(attempt, 'attempt')} and {waited_s:.0f} s of waiting")
    return wait_s


def _own_wait_s(attempt: int, random: Callable[[], float]) -> float:
    """Twice as long each time, a little less by chance, so that many runs do not come back at once."""
    wait_s: float = min(_FIRST_WAIT_S * 2 ** min(attempt - 1, 30), _LONGEST_OWN_WAIT_S)
    return wait_s * (1 - _JITTER * random())
