"""Whose the processes below this one are, and how they are ended, `setsid` and double forks included.

The kernel's process tree is one for the whole program, and so is the table of calls in here.
"""

import ctypes
import os
import secrets
import select
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

CALL_VARIABLE = "CI_AGENT_CALL"
"""Environment variable that says which call a process belongs to, also when its parents are gone."""

END_WITHIN_S = 5.0
"""A bomb that forks faster than it can be killed is given up after this long; a later sweep tries again."""

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(eq=False, slots=True)
class Call:
    """One program that was asked for, with whatever it starts."""

    marker: str = field(default_factory=lambda: secrets.token_hex(8))
    leader: int | None = None
    """Process id of the program, which leads a session and a group of its own; None before it has been started."""
    has_ended: bool = False
    """The program has; what it left is being looked for."""
    left_running: bool = False
    """Something of it was still running when the program had ended; known after `end_call`."""


@dataclass(frozen=True, slots=True)
class Descendant:
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


@dataclass(slots=True)
class _Calls:
    lock: threading.Lock = field(default_factory=threading.Lock)
    running: list[Call] = field(default_factory=list)
    """Until what they had left is gone, too."""
    strangers: frozenset[tuple[int, int]] = frozenset()
    """Children that were there before the first of the calls that overlap until now, such as servers of tools."""
    adopts_orphans: bool = False


_calls = _Calls()


def become_subreaper() -> bool:
    """From now on orphans below this process become its children; False where the kernel cannot (macOS,
    Linux before 5.3).

    For a program that is an agent and nothing else: whatever appears below it later counts as a tool's and is
    ended when no call is left that it could belong to. Without it a call ends its process group and no more.
    """
    if _has_pidfd():
        _calls.adopts_orphans = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    return _calls.adopts_orphans


def begin_call() -> Call:
    """Announce a program before it is started, so that a sweep does not take it for an orphan."""
    call = Call()
    with _calls.lock:
        if _calls.adopts_orphans and not _calls.running:
            _calls.strangers = _present_children()
        _calls.running.append(call)
    return call


def _present_children() -> frozenset[tuple[int, int]]:
    children = _processes_by_parent()[os.getpid()] if _has_children() else []
    return frozenset(child.identity for child in children)


def end_call(call: Call) -> None:
    """Kill and reap all that the call has left, when its leader has been reaped, or was never started."""
    with _calls.lock:
        call.has_ended = True
    try:
        if _calls.adopts_orphans:
            _end_members(call)
        elif call.leader:
            call.left_running = signal_group(call.leader, signal.SIGKILL)
    finally:
        with _calls.lock:
            _calls.running.remove(call)


def _end_members(call: Call) -> None:
    deadline = time.monotonic() + END_WITHIN_S
    while (members := _members_of(call)) and time.monotonic() < deadline:
        living = [member for member in members if not member.is_zombie]
        call.left_running |= living != []
        if call.leader and any(member.group == call.leader for member in living):
            signal_group(call.leader, signal.SIGKILL)
        if living and not _kill(living, deadline):
            return
        _reap(members)


def kill_all_descendants() -> None:
    """Kill whatever lives below this process, whoever started it. Leaves the reaping to those who wait for it."""
    with _calls.lock:
        leaders = [call.leader for call in _calls.running if call.leader]
    for leader in leaders:
        signal_group(leader, signal.SIGKILL)
    deadline = time.monotonic() + END_WITHIN_S
    while _calls.adopts_orphans and (living := _living_descendants()) and time.monotonic() < deadline:
        if not _kill(living, deadline):
            return


def signal_group(leader: int, number: signal.Signals) -> bool:
    """Signal a process group at once, before any of it can fork; False if nobody is in it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
        return False
    return True


def _members_of(call: Call) -> list[Descendant]:
    """What belongs to the call, and what belongs to nobody if no other call could claim it."""
    if not _has_children():
        return []
    processes = _processes_by_parent()
    with _calls.lock:
        calls = list(_calls.running)
        strangers = _calls.strangers
    # Asked after looking: a call that began meanwhile, and whose program would pass for an orphan, is seen here.
    alone = all(other is call or other.has_ended for other in calls)
    tops = [child for child in processes[os.getpid()] if child.identity not in strangers]
    mine = [top for top in tops if (owner := _owner(top, calls)) is call or (alone and owner is None)]
    return [member for top in mine for member in _with_descendants(top, processes)]


def _owner(child: Descendant, calls: Collection[Call]) -> Call | None:
    """Whose a child of this process is. One that has shed session and variable is nobody's."""
    for call in calls:
        if call.leader in (child.pid, child.session):
            return call
    marker = _marker(child.pid)
    return next((call for call in calls if call.marker == marker), None)


def _marker(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", encoding="ascii", errors="replace") as file:
            variables = file.read().split("\0")
    except OSError:
        return None
    prefix = f"{CALL_VARIABLE}="
    return next((variable.removeprefix(prefix) for variable in variables if variable.startswith(prefix)), None)


def _living_descendants() -> list[Descendant]:
    processes = _processes_by_parent()
    below = (member for child in processes[os.getpid()] for member in _with_descendants(child, processes))
    return [member for member in below if not member.is_zombie]


def _with_descendants(top: Descendant, processes: Mapping[int, list[Descendant]]) -> Iterator[Descendant]:
    waiting = [top]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += processes.get(process.pid, [])


def _processes_by_parent() -> Mapping[int, list[Descendant]]:
    """Every process that there is, under the id of its parent; an id without children has an empty list."""
    processes: defaultdict[int, list[Descendant]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read_process(int(name))):
            processes[process.parent].append(process)
    return processes


def _read_process(pid: int) -> Descendant | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc_pid_stat(5): the second field is a name in parentheses and may itself hold spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return Descendant(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        # With more than one thread only the first has ended, and the process goes on without it.
        is_zombie=fields[0] in (b"Z", b"X") and int(fields[17]) <= 1,
    )


def _kill(processes: Collection[Descendant], deadline: float) -> bool:
    """Kill them all, then wait for each to be dead; False if none of them may be killed (a `sudo`, for example)."""
    killed = [process for process in processes if _send_kill(process)]
    for process in killed:
        _await_death(process, deadline)
    return killed != []


def _send_kill(process: Descendant) -> bool:
    try:
        with _open_pidfd(process) as pidfd:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _await_death(process: Descendant, deadline: float) -> None:
    with suppress(ProcessLookupError), _open_pidfd(process) as pidfd:
        waiting = select.poll()
        waiting.register(pidfd, select.POLLIN)
        waiting.poll(max(deadline - time.monotonic(), 0) * 1000)


@contextmanager
def _open_pidfd(process: Descendant) -> Iterator[int]:
    """A descriptor of this very process; ProcessLookupError when it is gone, even if its id is in use again."""
    pidfd = os.pidfd_open(process.pid)
    try:
        now = _read_process(process.pid)
        if now is None or now.start_ticks != process.start_ticks:
            raise ProcessLookupError
        yield pidfd
    finally:
        os.close(pidfd)


def _reap(processes: Collection[Descendant]) -> None:
    for process in processes:
        with suppress(ChildProcessError):  # not ours yet: its own parent has still to go
            os.waitpid(process.pid, os.WNOHANG)


def _has_children() -> bool:
    """Cheap, and mostly the end of the story: a command that leaves nothing behind costs one system call more."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # not Linux, or before 5.3
        return False
    return True
