"""Starts a command, watches the tree below it, kills what is left, says how it ended; then the next, if any.

The tree is what the supervisor has for descendants: as a subreaper it is the one to whom orphans fall, whatever
session they have made for themselves.
"""

import errno
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from ci_agent.spawn.child_signal import clear_wake_ups, open_wake_ups
from ci_agent.spawn.kernel import become_subreaper, come_first, continue_if_stopped, let_go_on, open_pidfd
from ci_agent.spawn.leader import start_leader
from ci_agent.spawn.patience import patiently
from ci_agent.spawn.process_tree import (
    HANGS_AFTER_S,
    end_below,
    processes_below,
    reap_children,
    sees_trees,
    signal_group,
)
from ci_agent.spawn.protocol import (
    FINISH,
    TERMINATE,
    Broken,
    Exited,
    Failed,
    Finished,
    Report,
    Request,
    encode_report,
    receive_request,
)
from ci_agent.spawn.tree_limits import TreeLimits, exceeded

SERVER_GONE = "the process that starts commands was killed, by the command or from outside"

STOPS_OWNER = "it kept ci-agent stopped, or something else did"

STOPPED_LOOKS = 10
"""So often in a row may ci-agent be found stopped, although it is continued each time."""

_PAUSE_S = 0.001

LOOK_EVERY_S = 0.1
_LOOKING_SHARE = 0.05
"""Of its time that a supervisor looks at the tree at most, however long a look takes."""


@dataclass(slots=True)
class _Command:
    leader: int
    control: socket.socket
    status: int | None = None
    """None: its leader has not ended."""
    is_told: bool = False
    """That its leader has ended."""
    killed_because: str | None = None


def supervise(control: socket.socket, owner: int | None) -> bool:
    """Run the commands that the socket asks for, one at a time, to their ends; True if nothing is left of them.

    `owner` is a descriptor of ci-agent's process, whose end, like that of the server, is the end of the command.
    """
    command = None
    try:
        become_subreaper()
        come_first()
        wake_ups = open_wake_ups()
        lives = [descriptor for descriptor in (owner, open_pidfd(os.getppid())) if descriptor is not None]
        while _next_comes(control, lives) and _nothing_is_left():
            command = None
            request, streams = receive_request(control)
            command = _start(request, streams, control)
            if command is not None:
                _watch(command, request.limits, wake_ups, lives, owner)
                _end(command)
                if owner is not None:
                    let_go_on(owner)
    except (EOFError, ConnectionError):  # nobody wants any more
        pass
    except Exception as error:  # noqa: BLE001 - nobody reads the standard error of this process
        _report(control, _failure(error, command))
    return _nothing_is_left()


def _failure(error: Exception, command: _Command | None) -> Report:
    """What the system refuses before a command was started is no bug."""
    if command is None and isinstance(error, OSError):
        return Failed(error.errno or 0, error.filename)
    return Broken(traceback.format_exc())


def _nothing_is_left() -> bool:
    return not reap_children()[1]


def _next_comes(control: socket.socket, lives: Collection[int]) -> bool:
    ready, _, _ = patiently(lambda: select.select([control.fileno(), *lives], [], []))
    return not set(ready) & set(lives)


def _start(request: Request, streams: Collection[int], control: socket.socket) -> _Command | None:
    try:
        if len(streams) == 2:
            return _Command(start_leader(request, *streams), control)
        _report(control, Failed(errno.EMFILE, None))  # they were lost on the way
    except OSError as error:
        _report(control, Failed(error.errno or 0, error.filename))
    finally:
        for stream in streams:
            os.close(stream)
    return None


def _watch(command: _Command, limits: TreeLimits, wake_ups: int, lives: Collection[int], owner: int | None) -> None:
    """Return when nothing of the command is left, or when that shall be so."""
    try:
        _look_on(command, limits, wake_ups, lives, owner)
    except OSError as error:  # whoever uses up the descriptors of a machine shall not escape its limits by that
        command.killed_because = f"it could not be watched: {os.strerror(error.errno or 0)}"


def _look_on(command: _Command, limits: TreeLimits, wake_ups: int, lives: Collection[int], owner: int | None) -> None:
    stopped_looks = 0
    waiting = select.poll()
    for descriptor in (command.control.fileno(), wake_ups, *lives):
        waiting.register(descriptor, select.POLLIN)
    next_look = time.monotonic() + LOOK_EVERY_S
    while _has_members(command):
        ready = _ready(waiting, next_look)
        clear_wake_ups(wake_ups)
        if ready & set(lives):
            command.killed_because = SERVER_GONE
            return
        if command.control.fileno() in ready and _shall_finish(command):
            return
        if time.monotonic() >= next_look:
            started = time.monotonic()
            stopped_looks = stopped_looks + 1 if _was_stopped(owner) else 0
            too_large = exceeded(processes_below(os.getpid()), limits)
            command.killed_because = STOPS_OWNER if stopped_looks == STOPPED_LOOKS else too_large
            if command.killed_because:
                return
            next_look = time.monotonic() + max(LOOK_EVERY_S, (time.monotonic() - started) / _LOOKING_SHARE)


def _ready(waiting: select.poll, until: float) -> set[int]:
    """The descriptors that can be read; at the latest when it is so late."""
    found = patiently(lambda: waiting.poll(max(until - time.monotonic(), 0) * 1000))
    return {descriptor for descriptor, _ in found}


def _was_stopped(owner: int | None) -> bool:
    """Whether ci-agent, which keeps the command's time, had been stopped; it goes on."""
    return owner is not None and continue_if_stopped(owner)


def _has_members(command: _Command) -> bool:
    """Bury the dead; tell at once that the leader has ended if others have not."""
    if not _reap(command) and (sees_trees() or not signal_group(command.leader, 0)):
        return False
    if command.status is not None and not command.is_told:
        command.is_told = True
        _report(command.control, Exited(command.status, has_left=True, killed_because=None))
    return True


def _reap(command: _Command) -> bool:
    """Bury the dead; whether there are others."""
    ended, are_others = reap_children()
    command.status = ended.get(command.leader, command.status)
    return are_others


def _shall_finish(command: _Command) -> bool:
    """Follow the orders that have come; True for the last of them, and when nobody is left to give any."""
    orders = _receive(command.control)
    if TERMINATE in orders and command.status is None:
        signal_group(command.leader, signal.SIGTERM)
    return not orders or FINISH in orders


def _receive(control: socket.socket) -> bytes:
    try:
        return control.recv(64)
    except ConnectionError:
        return b""


def _end(command: _Command) -> None:
    was_running = _has_members(command) and _kill_all(command)
    if command.is_told:
        _report(command.control, Finished(was_running, command.killed_because))
    else:
        # A leader that hangs in the kernel after SIGKILL counts as ended by it.
        status = -signal.SIGKILL if command.status is None else command.status
        _report(command.control, Exited(status, has_left=False, killed_because=command.killed_because))


def _kill_all(command: _Command) -> bool:
    """Kill and bury all that is left of it; True if any was running."""
    was_running = False
    if command.status is None or not sees_trees():
        was_running = signal_group(command.leader, signal.SIGKILL)
    was_running |= end_below(os.getpid())
    given_up_at = time.monotonic() + HANGS_AFTER_S
    while _reap(command) and command.status is None and time.monotonic() < given_up_at:
        time.sleep(_PAUSE_S)
    return was_running


def _report(control: socket.socket, report: Report) -> None:
    try:
        control.sendall(encode_report(report))
    except OSError:  # whoever asked is gone, or the system refused it: nobody shall wait for what will not come
        with suppress(OSError):
            control.shutdown(socket.SHUT_RDWR)
