"""The kernel's process tree below a process: looking at it, and killing in it without hitting the wrong process."""

import os
import signal
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ci_agent.spawn.kernel import open_pidfd

END_WITHIN_S = 30.0
"""As long as it takes a process without priority to kill a thousand that are busy."""

HANGS_AFTER_S = 5.0
"""Without another death."""

_PAUSE_S = 0.001

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    start_ticks: int
    """With the id it names one process, however often its id is used again."""
    is_zombie: bool
    threads: int
    resident_bytes: int
    """Memory shared with others counts in full."""


def sees_trees() -> bool:
    """Whether there is a /proc.

    Where there is none, as on macOS, no orphan can be found: `processes_below` is empty, and a command ends with its
    process group.
    """
    return os.path.exists("/proc/self/stat")


def processes_below(top: int, spare: Collection[int] = ()) -> list[Process]:
    """Every descendant, zombies included, but the `spare` ones with all below them."""
    by_parent: dict[int, list[Process]] = {}
    for process in _all_processes():
        by_parent.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [top]
    while waiting:
        children = [child for child in by_parent.pop(waiting.pop(), ()) if child.pid not in spare]
        found += children
        waiting += [child.pid for child in children]
    return found


def _all_processes() -> Iterator[Process]:
    for name in os.listdir("/proc") if sees_trees() else ():
        if name.isdigit() and (process := _read_process(int(name))):
            yield process


def _read_process(pid: int) -> Process | None:
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        text = os.read(file, 4096)
    except ProcessLookupError:
        return None
    finally:
        os.close(file)
    # proc_pid_stat(5): the second field is a name in parentheses and may itself hold spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    threads = int(fields[17])
    return Process(
        pid=pid,
        parent=int(fields[1]),
        start_ticks=int(fields[19]),
        # With more than one thread only the first has ended, and the process goes on without it.
        is_zombie=fields[0] in (b"Z", b"X") and threads <= 1,
        threads=threads,
        resident_bytes=int(fields[21]) * _PAGE_BYTES,
    )


def end_below(top: int, spare: Collection[int] = ()) -> bool:
    """Kill every descendant but the spare ones, and wait until they are dead; True if any was running.

    Given up are those that hang in the kernel (a dead network file system), and a bomb that outruns this process.
    """
    started = last_death = time.monotonic()
    before: set[tuple[int, int]] = set()
    was_running = False
    empty_looks = 0
    # One look may miss the child of a parent that ended meanwhile: the list of processes is not read at one moment.
    while empty_looks < 2 and time.monotonic() < min(last_death + HANGS_AFTER_S, started + END_WITHIN_S):
        try:
            living = [process for process in processes_below(top, spare) if not process.is_zombie]
            for process in living:
                _kill(process)
        except OSError:  # out of descriptors, most likely: what was not seen is looked for again
            time.sleep(_PAUSE_S)
            continue
        identities = {(process.pid, process.start_ticks) for process in living}
        if before - identities:
            last_death = time.monotonic()
        was_running |= living != []
        before = identities
        empty_looks = 0 if living else empty_looks + 1
        if living:
            time.sleep(_PAUSE_S)
    return was_running


def _kill(process: Process) -> None:
    """Kill this very process, not another to which its id has been given meanwhile."""
    pidfd = open_pidfd(process.pid)
    if pidfd is None:
        return
    try:
        now = _read_process(process.pid)
        if now and now.start_ticks == process.start_ticks:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(pidfd)


def signal_group(leader: int, number: int) -> bool:
    """Signal a process group at once, before any of it can fork (with 0 only ask for it); False if nobody is in it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
        return False
    return True


def reap_children() -> tuple[dict[int, int], bool]:
    """Bury the children that have ended: exit status or negative signal by id, and whether there are others."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = os.waitstatus_to_exitcode(status)
