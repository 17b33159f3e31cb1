"""Calls that fail for want of the kernel's memory, which is often back a moment later."""

import errno
import time
from collections.abc import Callable
from typing import TypeVar

TRIES = 20
PAUSE_S = 0.05
"""A second in all: the supervisors of a machine that has no memory for longer than that give up, and their commands
with them."""

_SHORT_OF_MEMORY = frozenset({errno.ENOMEM, errno.ENOBUFS})

T = TypeVar("T")


def patiently(call: Callable[[], T], pause: Callable[[float], object] = time.sleep) -> T:
    """What the call returns, or raises for the last time. It must have done nothing when it fails."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except OSError as error:
            if error.errno not in _SHORT_OF_MEMORY:
                raise
            pause(PAUSE_S)
    return call()
