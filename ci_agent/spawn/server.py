"""The spawn server: forks a supervisor for each command, and ends what one leaves that did not end well.

A program of its own because ci-agent has threads, keys and much memory, none of which a fork should copy, and because
somebody has to be left when ci-agent is killed.
"""

import gc
import os
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from ci_agent.spawn.child_signal import clear_wake_ups, open_wake_ups
from ci_agent.spawn.kernel import become_subreaper, open_pidfd, set_dumpable
from ci_agent.spawn.leader import IGNORED_SIGNALS
from ci_agent.spawn.process_tree import END_WITHIN_S, end_below, reap_children
from ci_agent.spawn.protocol import Failed, encode_report, take_over
from ci_agent.spawn.supervisor import supervise


@dataclass(frozen=True, slots=True)
class _Server:
    channel: socket.socket
    owner: int | None
    """A descriptor of ci-agent's process."""
    wake_ups: int
    calls: dict[int, socket.socket] = field(default_factory=dict)
    """Supervisors by process id, each with our copy of its control socket: while one is open, ci-agent waits."""


def main(channel: int, owner: int) -> None:
    """Serve the process `owner` over this descriptor until one of them is gone."""
    _settle()
    watch = open_pidfd(owner)
    if os.getppid() != owner:
        return
    server = _Server(socket.socket(fileno=channel), watch, open_wake_ups())
    _serve(server)
    _end(server)


def _settle() -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # those of the C library
            signal.signal(number, signal.SIG_IGN if number in IGNORED_SIGNALS else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    become_subreaper()
    set_dumpable(False)
    gc.disable()
    gc.freeze()


def _serve(server: _Server) -> None:
    waiting = select.poll()
    for descriptor in (server.channel.fileno(), server.wake_ups, server.owner):
        if descriptor is not None:
            waiting.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        clear_wake_ups(server.wake_ups)
        _bury(server)
        if server.owner in ready:
            return
        if server.channel.fileno() in ready and not _take_call(server):
            return


def _take_call(server: _Server) -> bool:
    """Start one more supervisor; False when no more are asked for."""
    try:
        control = take_over(server.channel)
    except BlockingIOError:
        return True
    if control is None:
        return False
    try:
        pid = os.fork()
    except OSError as error:
        with control, suppress(OSError):
            control.sendall(encode_report(Failed(error.errno or 0, None)))
        return True
    if pid == 0:
        _become_supervisor(server, control)
    server.calls[pid] = control
    return True


def _become_supervisor(server: _Server, control: socket.socket) -> NoReturn:
    status = 1
    try:
        for other in (server.channel, *server.calls.values()):
            other.close()
        os.close(server.wake_ups)
        status = 0 if supervise(control, server.owner) else 1
    finally:
        os._exit(status)


def _bury(server: _Server) -> None:
    """Close the call of each supervisor that has ended, after ending what it left."""
    for pid, status in reap_children():
        control = server.calls.pop(pid, None)
        if control is None:  # an orphan
            continue
        if status != 0:
            end_below(os.getpid(), spare=server.calls)
        control.close()


def _end(server: _Server) -> None:
    """The supervisors have noticed for themselves; what has not ended soon is ended here."""
    deadline = time.monotonic() + END_WITHIN_S
    while server.calls and time.monotonic() < deadline:
        select.select([server.wake_ups], [], [], max(deadline - time.monotonic(), 0))
        clear_wake_ups(server.wake_ups)
        _bury(server)
    end_below(os.getpid())
