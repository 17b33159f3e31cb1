"""The spawn server: forks supervisors for the commands, ends what one leaves that did not end well, and in the end
removes the temporary files of a run that was killed.

A program of its own because ci-agent has threads, keys and much memory, none of which a fork should copy, and because
somebody has to be left when ci-agent is killed.
"""

import gc
import os
import resource
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from ci_agent.sandbox.removal import remove_folder
from ci_agent.spawn.child_signal import clear_wake_ups, open_wake_ups
from ci_agent.spawn.kernel import become_subreaper, come_first, forbid_inspection, forbid_new_privileges, open_pidfd
from ci_agent.spawn.patience import patiently
from ci_agent.spawn.process_tree import HANGS_AFTER_S, end_below, reap_children
from ci_agent.spawn.protocol import Failed, LeftFolder, encode_report, take_errand
from ci_agent.spawn.supervisor import supervise

_IGNORED_SIGNALS = {
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),  # it ends when ci-agent does
    *(signal.SIGPIPE, signal.SIGXFSZ),  # as in any Python
}

_MAX_OPEN_FILES = 65_536
"""Some programs close, one by one, as many as they might have: hours, with the 2**30 of some containers."""

_FIRST_FOR_THE_KERNEL_TO_KILL = "1000"
"""oom_score_adj: when memory runs out, commands go before ci-agent, which has the record to close. Of several processes
with this score the kernel takes the largest, which is not one of ours."""


_REMOVED_WITHIN_S = 60.0
"""A folder of temporary files, when ci-agent was killed. Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class _Server:
    channel: socket.socket
    owner: int | None
    """A descriptor of ci-agent's process."""
    wake_ups: int
    calls: dict[int, socket.socket] = field(default_factory=dict)
    """Supervisors by process id, each with our copy of its control socket: while one is open, ci-agent waits."""
    folders: list[int] = field(default_factory=list)
    """Descriptors of folders that go when the run ends, if ci-agent does not come to it."""


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
    """What holds for this process, the supervisors and, but for the handlers, the commands."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # those of the C library
            signal.signal(number, _ignore if number in _IGNORED_SIGNALS else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_open_files()
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_FIRST_FOR_THE_KERNEL_TO_KILL)
    forbid_new_privileges()
    forbid_inspection()
    become_subreaper()
    come_first()
    gc.disable()
    gc.freeze()


def _limit_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft > _MAX_OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_MAX_OPEN_FILES, hard))


def _ignore(_number: int, _frame: object) -> None:
    """A handler and not SIG_IGN, which a command would inherit."""


def _serve(server: _Server) -> None:
    waiting = select.poll()
    for descriptor in (server.channel.fileno(), server.wake_ups, server.owner):
        if descriptor is not None:
            waiting.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in patiently(waiting.poll)}
        clear_wake_ups(server.wake_ups)
        _bury(server)
        if server.owner in ready:
            return
        if server.channel.fileno() in ready and not _take_errand(server):
            return


def _take_errand(server: _Server) -> bool:
    """False when there will be no more."""
    try:
        errand = take_errand(server.channel)
    except BlockingIOError:
        return True
    if isinstance(errand, LeftFolder):
        server.folders.append(errand.descriptor)
    elif errand is not None:
        _take_call(server, errand)
    return errand is not None


def _take_call(server: _Server, control: socket.socket) -> None:
    """Start one more supervisor."""
    try:
        pid = os.fork()
    except OSError as error:
        with control, suppress(OSError):
            control.sendall(encode_report(Failed(error.errno or 0, None)))
        return
    if pid == 0:
        _become_supervisor(server, control)
    server.calls[pid] = control


def _become_supervisor(server: _Server, control: socket.socket) -> NoReturn:
    status = 1
    try:
        for other in (server.channel, *server.calls.values()):
            other.close()
        for descriptor in (server.wake_ups, *server.folders):
            os.close(descriptor)
        status = 0 if supervise(control, server.owner) else 1
    finally:
        os._exit(status)


def _bury(server: _Server) -> None:
    """Close the call of each supervisor that has ended, after ending what it left."""
    for pid, status in reap_children()[0].items():
        control = server.calls.pop(pid, None)
        if control is None:  # an orphan
            continue
        if status != 0:
            end_below(os.getpid(), spare=server.calls)
        control.close()


def _end(server: _Server) -> None:
    """The supervisors have noticed for themselves; what has not ended soon is ended here."""
    deadline = time.monotonic() + HANGS_AFTER_S
    while server.calls and time.monotonic() < deadline:
        select.select([server.wake_ups], [], [], max(deadline - time.monotonic(), 0))
        clear_wake_ups(server.wake_ups)
        _bury(server)
    end_below(os.getpid())
    for folder in server.folders:
        remove_folder(folder, _REMOVED_WITHIN_S)
