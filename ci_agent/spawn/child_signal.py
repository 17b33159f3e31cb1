"""The end of a child as something that can be waited for beside other things."""

import os
import signal
from contextlib import suppress


def open_wake_ups() -> int:
    """A descriptor that can be read when a child of this process has ended; a second call replaces the first."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore)
    return read_end


def clear_wake_ups(descriptor: int) -> None:
    with suppress(BlockingIOError):
        while os.read(descriptor, 4096):
            pass


def _ignore(_number: int, _frame: object) -> None:
    """The byte is in the pipe already."""
