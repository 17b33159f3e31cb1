"""Which processes belong to which call, and how a call is ended, `setsid` and double forks included.

The process tree is one for the whole program, and so is the table of calls.
"""

import ctypes
import os
import secrets
import signal
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from ci_agent.process.process_tree import (
    Process,
    environment_variable,
    has_children,
    has_pidfd,
    kill,
    processes_by_parent,
    reap,
    signal_group,
    with_descendants,
)

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
    if has_pidfd():
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
    children = processes_by_parent()[os.getpid()] if has_children() else []
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
        if living and not kill(living, deadline):
            return
        reap(members)


def kill_all_descendants() -> None:
    """Kill whatever lives below this process, whoever started it. Leaves the reaping to those who wait for it."""
    with _calls.lock:
        leaders = [call.leader for call in _calls.running if call.leader and not call.has_ended]
    for leader in leaders:
        signal_group(leader, signal.SIGKILL)
    deadline = time.monotonic() + END_WITHIN_S
    while _calls.adopts_orphans and (living := _living_descendants()) and time.monotonic() < deadline:
        if not kill(living, deadline):
            return


def _members_of(call: Call) -> list[Process]:
    """What belongs to the call, and what belongs to nobody if no other call could claim it."""
    if not has_children():
        return []
    processes = processes_by_parent()
    with _calls.lock:
        # Asked after looking: a call that began meanwhile, and whose program would pass for an orphan, is seen here.
        calls = list(_calls.running)
        strangers = _calls.strangers
    tops = [child for child in processes[os.getpid()] if child.identity not in strangers]
    mine = tops if calls == [call] else _tops_of(call, tops, calls)
    return [member for top in mine for member in with_descendants(top, processes)]


def _tops_of(call: Call, tops: Collection[Process], calls: Collection[Call]) -> list[Process]:
    alone = all(other is call or other.has_ended for other in calls)
    owners = [(top, _owner(top, calls)) for top in tops]
    return [top for top, owner in owners if owner is call or (alone and owner is None)]


def _owner(child: Process, calls: Collection[Call]) -> Call | None:
    """Whose a child of this process is. One that has shed session and variable is nobody's."""
    for call in calls:
        if call.leader in (child.pid, child.session):
            return call
    marker = environment_variable(child.pid, CALL_VARIABLE)
    return next((call for call in calls if call.marker == marker), None)


def _living_descendants() -> list[Process]:
    processes = processes_by_parent()
    below = (member for child in processes[os.getpid()] for member in with_descendants(child, processes))
    return [member for member in below if not member.is_zombie]
