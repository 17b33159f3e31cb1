"""The real command in a process of its own, forked from one that has imported all of ci-agent and done nothing else.

Imports are most of what a short call costs. What Python itself does when it starts (the variables it reads, what the
kernel shows of a process) is not repeated by a fork: tests about that start the command anew.
"""

import atexit
import ctypes
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol

MODULE = "ci_agent"
TIMEOUT_S = 110
THIRD_PARTY = ("httpx", "jsonschema", "pydantic", "re2")


class Run(Protocol):
    def __call__(
        self,
        args: Sequence[str | bytes],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` does it, with captured output; without `stdin` there is nothing to read."""
        ...


def run_anew(
    args: Sequence[str | bytes],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    timeout_s: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """A start of Python for this one call."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", MODULE, *args],
        cwd=cwd,
        env=env,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        check=False,
        timeout=timeout_s,
    )
    return _as_text(args, done.returncode, done.stdout, done.stderr)


class ForkedCommand:
    """Calls of `ci-agent`, each a fork of one process, which ends with this one.

    `preload`: a library for all of them, whose function `begin` is called again in each, once it has its environment.
    """

    def __init__(self, preload: Path | None = None) -> None:
        self._control, theirs = socket.socketpair()
        library = [str(preload)] if preload else []
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno()), *library],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | ({"LD_PRELOAD": str(preload)} if preload else {}),
            )

    def close(self) -> None:
        self._control.close()
        self._server.communicate()

    def run(
        self,
        args: Sequence[str | bytes],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
        executable: str = sys.executable,
    ) -> subprocess.CompletedProcess[str]:
        """`executable`: what the call takes for its interpreter, and so starts others with."""
        words = [os.fsdecode(arg) for arg in args]
        call = {"args": words, "cwd": str(cwd), "env": dict(env), "executable": executable}
        with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
            ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
            (their_in, our_in), (our_out, their_out), (our_err, their_err) = (_pipe(stack) for _ in range(3))
            streams = [their_in, their_out, their_err]
            socket.send_fds(self._control, [b"."], [theirs.fileno(), *(stream.fileno() for stream in streams)])
            theirs.close()
            for stream in streams:
                stream.close()
            ours.settimeout(timeout_s)
            ours.sendall(json.dumps(call).encode() + b"\n")
            pool.submit(_feed, our_in, stdin or b"")
            out, err = pool.submit(our_out.read), pool.submit(our_err.read)
            answers = stack.enter_context(ours.makefile())
            pid = int(answers.readline())
            try:
                status = int(answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(args, timeout_s) from None
            return _as_text(args, status, out.result(TIMEOUT_S), err.result(TIMEOUT_S))


def _as_text(
    args: Sequence[str | bytes], status: int, stdout: bytes, stderr: bytes
) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(args, status, stdout.decode(), stderr.decode())


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return stack.enter_context(open(reader, "rb")), stack.enter_context(open(writer, "wb"))


def _feed(stream: IO[bytes], data: bytes) -> None:
    try:
        with stream:
            stream.write(data)
    except BrokenPipeError:
        pass  # it has read enough


# In the other process


def finish_what_is_put_off() -> None:
    """What is built once in a process, when it is first asked for."""
    models = list(import_module("pydantic").BaseModel.__subclasses__())
    for model in models:
        models += model.__subclasses__()
        if model.__module__.startswith(MODULE):
            model.model_rebuild()
    for tool in import_module(f"{MODULE}.tools.table").tools_without_a_run().values():
        import_module(f"{MODULE}.agent.schema").validator_for(tool.parameters)


def serve(control: socket.socket) -> None:
    """Fork for each call; returns in the fork that is to be the command, with all of it in place."""
    waiting: set[int] = set()
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 4)
        if not descriptors:  # nobody is left to call
            for pid in waiting:
                os.waitpid(pid, 0)
            os._exit(0)
        if (child := os.fork()) == 0:
            control.close()
            return _become_command(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        waiting.add(child)
        waiting -= {pid for pid in waiting if os.waitpid(pid, os.WNOHANG)[0]}


def _become_command(connection: int, *streams: int) -> None:
    with socket.socket(fileno=connection) as caller:
        call = json.loads(caller.makefile().readline())
        if (command := os.fork()) != 0:
            caller.sendall(f"{command}\n".encode())
            _, status = os.waitpid(command, 0)
            caller.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    streams_at_start: list[Any] = [_standard_stream(number) for number in range(3)]
    sys.stdin, sys.stdout, sys.stderr = streams_at_start
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    sys.argv[1:] = call["args"]
    sys.executable = call["executable"]


def run_without_taking_down() -> None:
    """The command, and its end as Python makes it but for one thing: modules are not taken down, which would copy every
    page of the process that this one is a fork of."""
    try:
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    _wait_for_threads()
    atexit._run_exitfuncs()
    os._exit(code if _all_is_written() else 120)


def _wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _all_is_written() -> bool:
    """As Python flushes at its end, and what it says of a stdout that takes nothing."""
    written = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError) as error:
            written = False
            if stream is sys.stdout:
                with suppress(OSError):
                    os.write(2, f"Exception ignored in: {stream!r}\n{error!r}\n".encode())
    return written


def _standard_stream(number: int) -> IO[str]:
    """As Python makes it when it starts."""
    mode, buffering, errors = (("r", -1, "strict"), ("w", -1, "strict"), ("w", 1, "backslashreplace"))[number]
    return open(number, mode, buffering, errors=errors, closefd=False)


if __name__ == "__main__":
    package = import_module(MODULE)
    for module in pkgutil.walk_packages(package.__path__, f"{MODULE}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in THIRD_PARTY:
        import_module(name)
    finish_what_is_put_off()
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    descriptor, *libraries = sys.argv[1:]
    serve(socket.socket(fileno=int(descriptor)))
    for library in libraries:
        ctypes.CDLL(library).begin()
    run_without_taking_down()
