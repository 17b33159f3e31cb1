"""What the kernel is asked for by number: prctl(2), and descriptors of processes."""

import ctypes
import os
import signal
import sys
from contextlib import suppress

# linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def become_subreaper() -> bool:
    """From now on orphans below this process become its children; False where the kernel cannot (macOS)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_inspection() -> None:
    """Until the next exec no process of the same user may look into this one, or steer it."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """From now on no program that is started gains any: `sudo` and its like do not work."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def come_first() -> None:
    """Run before all processes of ordinary priority, where that is permitted (to root); children do not inherit it.

    A thousand processes that are busy leave one of a thousand parts to whoever has to end them.
    """
    with suppress(AttributeError, OSError):  # not Linux, or not permitted
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def open_pidfd(pid: int) -> int | None:
    """A descriptor that can be read when the process has ended; None where there is no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, before 5.3, or it is gone
        return None


def continue_if_stopped(pidfd: int) -> bool:
    """Let a process go on that a signal or a tracer has stopped; whether one had. Linux."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", "rb") as file:
            pid = next(int(line.split()[1]) for line in file if line.startswith(b"Pid:"))
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        if state not in (b"T", b"t"):
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
    except (OSError, StopIteration, ValueError, IndexError):  # it has ended
        return False
    return True


def let_go_on(pidfd: int) -> None:
    """Undo whatever has stopped a process, or is about to: a stop takes effect some time after it was sent. Linux."""
    with suppress(AttributeError, OSError):  # no such thing, or it has ended
        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
