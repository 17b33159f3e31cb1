"""Whether a failed request is tried again, and after how long."""

import pytest

from ci_agent.providers.retry import GiveUp, RetryPolicy, next_wait_s
from ci_agent.providers.wire.failures import ApiError

POLICY = RetryPolicy()


def wait(attempt: int = 1, *, asked: float | None = None, waited: float = 0.0, random: float = 0.0) -> float | GiveUp:
    failure = ApiError("server", "x", retryable=True, retry_after_s=asked)
    return next_wait_s(POLICY, failure, attempt, waited, lambda: random)


def test_own_waits_double_up_to_a_limit_and_vary_by_chance() -> None:
    assert [wait(attempt) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert wait(1, random=1.0) == 0.375
    many = RetryPolicy(attempts=10_000, total_wait_s=1e9)
    failure = ApiError("server", "x", retryable=True)
    assert next_wait_s(many, failure, 9_999, 0.0, lambda: 0.0) == 8.0


def test_what_the_server_asks_for_is_waited_up_to_a_limit() -> None:
    assert wait(asked=60.0) == 60.0
    assert wait(asked=0.0) == 0.5
    assert wait(asked=61.0) == GiveUp("the server asks to wait 61 s, and the longest wait is 60 s")


def test_attempts_and_the_sum_of_waits_come_to_an_end() -> None:
    assert wait(5) == GiveUp("gave up after 5 attempts")
    assert wait(4, waited=299.0) == GiveUp("gave up after 4 attempts and 299 s of waiting")
    failure = ApiError("server", "x", retryable=True)
    assert next_wait_s(RetryPolicy(attempts=1), failure, 1, 0.0, lambda: 0.0) == GiveUp("")


def test_an_empty_answer_is_asked_for_once_more() -> None:
    empty = ApiError("empty", "x", retryable=True)
    assert next_wait_s(POLICY, empty, 1, 0.0, lambda: 0.0) == 0.5
    assert next_wait_s(POLICY, empty, 2, 0.0, lambda: 0.0) == GiveUp("gave up after 2 attempts")


@pytest.mark.parametrize("asked", [None, 1.0])
def test_what_waiting_cannot_help_is_not_tried_again(asked: float | None) -> None:
    final = ApiError("quota", "x", retryable=False, retry_after_s=asked)
    assert next_wait_s(POLICY, final, 1, 0.0, lambda: 0.0) == GiveUp("")


def test_a_server_that_may_be_starting_is_waited_for_beyond_the_attempts() -> None:
    starting = ApiError("connection", "x", retryable=True, may_be_starting_s=30.0)
    assert next_wait_s(POLICY, starting, 5, 7.5, lambda: 0.0) == 8.0
    assert next_wait_s(POLICY, starting, 8, 31.5, lambda: 0.0) == GiveUp("gave up after 8 attempts")
    assert next_wait_s(RetryPolicy(attempts=1), starting, 1, 0.0, lambda: 0.0) == GiveUp("")
