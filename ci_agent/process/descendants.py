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
from collections.abc import Collection, Iterator
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
    left_running: bool = False
    """Whether something of it was still running when the program had ended; known after `end_call`."""


@dataclass(frozen=True, slots=True)
class Descendant:
    pid: int
    parent: int
    group: int
    session: int
    start_ticks: int
    """Since boot; together with the id it names one process, however often ids are used again."""
    is_zombie: bool


@dataclass(slots=True)
class _Calls:
    lock: threading.Lock = field(default_factory=threading.Lock)
    running: list[Call] = field(default_factory=list)
    begun: int = 0
    busy_since_ticks: int = 0
    """When the first of the calls that overlap until now began."""
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
        if not _calls.running:
            _calls.busy_since_ticks = _ticks_now()
        _calls.running.append(call)
        _calls.begun += 1
    return call


def end_call(call: Call) -> None:
    """Kill and reap all that the call has left, when its leader has been reaped, or was never started."""
    with _calls.lock:
        _calls.running.remove(call)
    if _calls.adopts_orphans:
        _end_members(call)
    elif call.leader:
        call.left_running = signal_group(call.leader, signal.SIGKILL)


def _end_members(call: Call) -> None:
    deadline = time.monotonic() + END_WITHIN_S
    while _has_children() and (members := _members_of(call)) and time.monotonic() < deadline:
        living = [member for member in members if not member.is_zombie]
        call.left_running |= living != []
        if call.leader and any(member.group == call.leader for member in living):
            signal_group(call.leader, signal.SIGKILL)
        if living and not _kill(living, deadline):
            break
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
    with _calls.lock:
        others = list(_calls.running)
        begun = _calls.begun
    children = _children_by_parent()
    owners = [(child, _owner(child, [call, *others])) for child in children[os.getpid()]]
    mine = [child for child, owner in owners if owner is call]
    orphans = [child for child, owner in owners if owner is None and child.start_ticks >= _calls.busy_since_ticks]
    with _calls.lock:
        # A call that began while we looked may have started its program: then it looked like an orphan.
        alone = not _calls.running and _calls.begun == begun
    return [member for top in (mine + orphans if alone else mine) for member in _with_descendants(top, children)]


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
    children = _children_by_parent()
    below = (member for child in children[os.getpid()] for member in _with_descendants(child, children))
    return [member for member in below if not member.is_zombie]


def _with_descendants(top: Descendant, children: dict[int, list[Descendant]]) -> Iterator[Descendant]:
    waiting = [top]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process.pid, [])


def _children_by_parent() -> dict[int, list[Descendant]]:
    """Every process there is, by the id of its parent; empty where there is no /proc."""
    children: dict[int, list[Descendant]] = defaultdict(list)
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (process := _read_process(int(name))):
                children[process.parent].append(process)
    return children


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
        is_zombie=fields[0] in (b"Z", b"X"),
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


def _ticks_now() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
