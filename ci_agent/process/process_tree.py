"""The kernel's process tree below this one: looking at it, and killing in it without hitting the wrong process."""

import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    group: int
    session: int
    start_ticks: int
    is_zombie: bool

    @property
    def identity(self) -> tuple[int, int]:
        """Names one process, however often its id is used again."""
        return self.pid, self.start_ticks


def processes_by_parent() -> Mapping[int, list[Process]]:
    """Every process that there is, under the id of its parent; an id without children has an empty list."""
    processes: defaultdict[int, list[Process]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read_process(int(name))):
            processes[process.parent].append(process)
    return processes


def _read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc_pid_stat(5): the second field is a name in parentheses and may itself hold spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        # With more than one thread only the first has ended, and the process goes on without it.
        is_zombie=fields[0] in (b"Z", b"X") and int(fields[17]) <= 1,
    )


def with_descendants(top: Process, processes: Mapping[int, list[Process]]) -> Iterator[Process]:
    """The process, and whatever it and its children have started."""
    waiting = [top]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += processes.get(process.pid, [])


def environment_variable(pid: int, name: str) -> str | None:
    """What the process was started with; None without the variable, and when that cannot be known."""
    try:
        with open(f"/proc/{pid}/environ", encoding="ascii", errors="replace") as file:
            variables = file.read().split("\0")
    except OSError:
        return None
    return next((text.removeprefix(f"{name}=") for text in variables if text.startswith(f"{name}=")), None)


def signal_group(leader: int, number: signal.Signals) -> bool:
    """Signal a process group at once, before any of it can fork; False if nobody is in it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
        return False
    return True


def kill(processes: Collection[Process], deadline: float) -> bool:
    """Kill them all, then wait for each to be dead; False if none of them may be killed (a `sudo`, for example)."""
    killed = [process for process in processes if _kill_one(process)]
    for process in killed:
        _await_death(process, deadline)
    return killed != []


def _kill_one(process: Process) -> bool:
    try:
        with _open_pidfd(process) as pidfd:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _await_death(process: Process, deadline: float) -> None:
    with suppress(ProcessLookupError), _open_pidfd(process) as pidfd:
        waiting = select.poll()
        waiting.register(pidfd, select.POLLIN)
        waiting.poll(max(deadline - time.monotonic(), 0) * 1000)


@contextmanager
def _open_pidfd(process: Process) -> Iterator[int]:
    """A descriptor of this very process; ProcessLookupError when it is gone, even if its id is in use again."""
    pidfd = os.pidfd_open(process.pid)
    try:
        now = _read_process(process.pid)
        if now is None or now.start_ticks != process.start_ticks:
            raise ProcessLookupError
        yield pidfd
    finally:
        os.close(pidfd)


def reap(processes: Collection[Process]) -> None:
    """Bury the dead among them that are children of this process."""
    for process in processes:
        with suppress(ChildProcessError):  # not ours yet: its own parent has still to go
            os.waitpid(process.pid, os.WNOHANG)


def has_children() -> bool:
    """Cheap, and mostly the end of the story: a command that leaves nothing behind costs one system call more."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def has_pidfd() -> bool:
    """Whether a process can be held by a descriptor, without which killing in a tree may hit the wrong one."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # not Linux, or before 5.3
        return False
    return True
