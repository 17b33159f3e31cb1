"""Running programs so that nothing outlives a call, or the run: each under a supervisor of a spawn server."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process.call import Capture, run_call
from ci_agent.process.capture import HeadAndTail
from ci_agent.process.default_limits import default_limits
from ci_agent.process.listener import OnOutput
from ci_agent.process.result import ProcessResult
from ci_agent.process.spawn_client import SpawnServer, start_server
from ci_agent.process.supervised import Supervised, has_something
from ci_agent.sandbox.confinement import Confinement
from ci_agent.spawn.kernel import become_subreaper
from ci_agent.spawn.process_tree import HANGS_AFTER_S, end_below
from ci_agent.spawn.protocol import Request, hand_over, leave_folder, send_request
from ci_agent.spawn.tree_limits import TreeLimits

_REQUEST_WITHIN_S = 10.0
"""How long a supervisor may take to read what it shall start."""

_SILENT_AFTER_S = HANGS_AFTER_S + 1.0
"""A supervisor that has not reported the end after this long does not work, and is ended with its server."""


@contextmanager
def open_processes(*, limits: TreeLimits | None = None, adopt_orphans: bool = False) -> Iterator["Processes"]:
    """What runs programs; on leaving, none of them is left.

    `limits` None: those that fit the machine. `adopt_orphans` is for a program that is an agent and nothing else:
    should a command manage to kill the spawn server, what it leaves falls to this process, which ends all that is
    below it.
    """
    if adopt_orphans:
        become_subreaper()
    processes = Processes(limits, adopts_orphans=adopt_orphans)
    try:
        yield processes
    finally:
        processes.close()


@dataclass(frozen=True, slots=True)
class _Supervisor:
    control: socket.socket
    server: SpawnServer

    def is_alive(self) -> bool:
        """Asked while it has nothing to say."""
        return not (self.server.has_ended() or has_something(self.control, 0))

    def dismiss(self) -> None:
        with suppress(OSError):  # it has gone by itself
            self.control.shutdown(socket.SHUT_RDWR)  # where a close would leave it to a fork of this process
        self.control.close()


class Processes:
    """Starts nothing until it is asked to. For any number of threads."""

    def __init__(self, limits: TreeLimits | None = None, *, adopts_orphans: bool = False) -> None:
        self._given_limits = limits
        self._adopts_orphans = adopts_orphans
        self._lock = threading.Lock()
        self._server: SpawnServer | None = None
        self._running: set[Supervised] = set()
        self._idle: list[_Supervisor] = []
        self._folders: list[int] = []
        """Copies of the descriptors of `leave_folder`, for a server that takes the place of one that was killed."""
        self._is_used = False
        self._is_closed = False

    @cached_property
    def _limits(self) -> TreeLimits:
        return self._given_limits or default_limits()

    def prepare(self) -> None:
        """Start what starts programs, so that the first need not wait for it."""
        with suppress(OSError), self._lock:  # the first program will say it
            self._living_server()

    def leave_folder(self, descriptor: int) -> None:
        """Have a folder removed when everything has ended, should this process be killed before it has done so.
        The descriptor may be closed afterwards."""
        with self._lock, suppress(OSError):  # then the folder stays
            self._forget_folders(lambda folder: os.fstat(folder).st_nlink == 0)
            self._folders.append(os.dup(descriptor))
            if self._server:
                leave_folder(self._server.channel, descriptor)

    def run(  # noqa: PLR0913 - each is a fact of the call, and all but the first go by name
        self,
        argv: Sequence[str | bytes],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float | None,
        cancel: CancelToken,
        head_bytes: int = 25_000,
        tail_bytes: int = 25_000,
        separate_stderr: bool = False,
        on_output: OnOutput | None = None,
        confinement: Confinement | None = None,
    ) -> ProcessResult:
        """Run a program and wait for it, its output and its time-out; then kill whatever it has started and left.

        It gets a session and a process group of its own, /dev/null as stdin, one pipe for stdout and stderr, and no
        other descriptor. Of each stream the first `head_bytes` and the last `tail_bytes` are kept (for a whole answer
        or its beginning: a large head and no tail). `on_output` gets every chunk, of stdout alone when stderr is
        separate; what it raises ends the program and is passed on. `confinement` None: no sandbox keeps it in.

        A time-out sends SIGTERM to the group, and SIGKILL to everything GRACE_S later; the output so far is in the
        result. Cancellation does the same and raises ProcessCancelled. A program that cannot be started raises
        ToolError.
        """
        cancel.raise_if_cancelled()
        request = self._request(argv, cwd, env, confinement)
        stderr = HeadAndTail(head_bytes, tail_bytes) if separate_stderr else None
        capture = Capture(HeadAndTail(head_bytes, tail_bytes), stderr, on_output)
        return run_call(partial(self._supervised, request), request.argv[0], capture, timeout_s, cancel)

    def kill_all(self) -> None:
        """Kill every program that is running, with all that it has started; those who wait for them are told."""
        for command in list(self._running):
            command.abandon()
        server = self._server
        if server and self._running:  # for supervisors that cannot hear it
            end_below(server.pid)

    def close(self) -> None:
        """End everything; whoever asks for a program later gets a ToolError."""
        self._is_closed = True
        self.kill_all()
        with self._lock:
            while self._idle:
                self._idle.pop().dismiss()
            if self._server:
                self._dismiss(self._server)
            self._server = None
            self._forget_folders(lambda _: True)
            self._sweep()

    def _forget_folders(self, is_gone: Callable[[int], bool]) -> None:
        for folder in [folder for folder in self._folders if is_gone(folder)]:
            self._folders.remove(folder)
            os.close(folder)

    def _request(
        self, argv: Sequence[str | bytes], cwd: Path, env: Mapping[str, str], confinement: Confinement | None
    ) -> Request:
        try:
            texts = [_text(part) for part in argv]
            environment = {_text(name): _text(value) for name, value in env.items()}
            return Request(texts, _text(str(cwd.absolute())), environment, self._limits, confinement)
        except ValueError as error:
            raise ToolError(
                f"{os.fsdecode(argv[0])} cannot be started: an argument or its environment holds a NUL character or "
                "a lone surrogate"
            ) from error

    @contextmanager
    def _supervised(self, request: Request, streams: Sequence[int]) -> Iterator[Supervised]:
        supervisor = self._take_supervisor()
        command = Supervised(supervisor.control)
        self._running.add(command)
        with ExitStack() as afterwards:
            afterwards.callback(self._put_back, command, supervisor)
            afterwards.callback(self._running.discard, command)
            afterwards.callback(self._finish, command, supervisor.server)
            _request(command, request, streams)
            yield command

    def _take_supervisor(self) -> _Supervisor:
        """One that has nothing to do, or a new one."""
        with self._lock:
            while self._idle:
                supervisor = self._idle.pop()
                if supervisor.is_alive():
                    return supervisor
                supervisor.dismiss()
            server = self._living_server()
            self._is_used = True
            ours, theirs = socket.socketpair()
            with ExitStack() as stack, theirs:
                stack.enter_context(ours)
                hand_over(server.channel, theirs)
                stack.pop_all()
            return _Supervisor(ours, server)

    def _put_back(self, command: Supervised, supervisor: _Supervisor) -> None:
        with self._lock:
            if command.leaves_supervisor and not self._is_closed:
                self._idle.append(supervisor)
                return
        supervisor.dismiss()

    def _living_server(self) -> SpawnServer:
        if self._is_closed:
            raise ToolError("the run is over; nothing more is started")
        if self._server and self._server.has_ended():
            self._forget(self._server)
        if self._server is None:
            self._server = start_server()
            for folder in self._folders:
                leave_folder(self._server.channel, folder)
        return self._server

    def _dismiss(self, server: SpawnServer) -> None:
        """One that was never asked for anything may not even have read yet that it shall go."""
        if not self._is_used:
            server.discard()
        elif not server.has_left():
            server.kill()

    def _finish(self, command: Supervised, server: SpawnServer) -> None:
        if not command.finish(_SILENT_AFTER_S):
            command.is_lost = True
            server.kill()
        if command.is_lost:
            self._look_after(server)

    def _look_after(self, server: SpawnServer) -> None:
        """One of its supervisors is lost, and maybe the server, too."""
        with self._lock:
            if server.ends_at_once() and server is self._server:
                self._forget(server)
        if server.failed():
            raise ToolError("no command can be started: the process that starts them does not work here")

    def _forget(self, server: SpawnServer) -> None:
        """One that somebody has killed, and whose supervisors are now ours or nobody's."""
        server.channel.close()
        self._server = None
        self._sweep()

    def _sweep(self) -> None:
        if self._adopts_orphans:
            end_below(os.getpid())


def _request(command: Supervised, request: Request, streams: Sequence[int]) -> None:
    command.control.settimeout(_REQUEST_WITHIN_S)
    with suppress(ConnectionError):  # it has ended, which its reports say
        send_request(command.control, request, streams)


def _text(part: str | bytes) -> str:
    """As the spawn server writes it, which takes the system's texts for UTF-8; ValueError for what no system takes."""
    data = os.fsencode(part)
    if b"\0" in data:
        raise ValueError
    return data.decode("utf-8", "surrogateescape")
