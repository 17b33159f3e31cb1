"""A call that the kernel has no memory for is tried again, so often and no oftener."""

import errno
import os

import pytest

from ci_agent.spawn.patience import PAUSE_S, TRIES, patiently


class Failing:
    """Fails so many times with this error, then returns 42."""

    def __init__(self, times: int, code: int) -> None:
        self.left, self.code, self.calls = times, code, 0
        self.pauses: list[float] = []

    def __call__(self) -> int:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise OSError(self.code, os.strerror(self.code))
        return 42


@pytest.mark.parametrize("code", [errno.ENOMEM, errno.ENOBUFS])
@pytest.mark.parametrize("times", [0, 1, TRIES - 1])
def test_memory_that_comes_back_is_waited_for(code: int, times: int) -> None:
    call = Failing(times, code)
    assert patiently(call, call.pauses.append) == 42
    assert (call.calls, call.pauses) == (times + 1, [PAUSE_S] * times)


def test_memory_that_does_not_come_back_is_given_up() -> None:
    call = Failing(TRIES + 10, errno.ENOMEM)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        patiently(call, call.pauses.append)
    assert (call.calls, sum(call.pauses) <= 1) == (TRIES, True)


def test_any_other_error_is_raised_at_once() -> None:
    call = Failing(1, errno.ECONNRESET)
    with pytest.raises(ConnectionResetError):
        patiently(call, call.pauses.append)
    assert (call.calls, call.pauses) == (1, [])
