"""Runs one program to its end, whatever that is, and leaves nothing of it behind."""

import errno
import math
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Literal, TypeAlias

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.process.calls import CALL_VARIABLE, Call, begin_call, end_call
from ci_agent.process.capture import HeadAndTail, Output
from ci_agent.process.listener import Listener, OnOutput
from ci_agent.process.process_tree import signal_group

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""

DRAIN_SILENCE_S = 0.3
DRAIN_AT_MOST_S = 2.0
"""A background process may hold the pipe after the program has ended: how long its output is waited for."""

DEATH_WITHIN_S = 5.0
"""How long a killed program may hang in the kernel (a dead network file system) before it is given up."""

_Ending: TypeAlias = Literal["exited", "timed_out", "cancelled"]


@dataclass(frozen=True, slots=True)
class ProcessResult:
    exit_status: int | None
    """None: a signal ended it."""
    signal: int | None
    timed_out: bool
    duration_s: float
    output: Output
    """What was written to stdout, and to stderr in the order of writing unless that was to be separate."""
    stderr: Output | None
    """None: it is in `output`."""
    left_background: bool
    """Something that it had started was still running when it ended, and has been killed."""


class ProcessCancelled(Cancelled):
    """The program was ended because its token was cancelled."""

    def __init__(self, reason: str, result: ProcessResult) -> None:
        super().__init__(reason)
        self.result = result


@dataclass(frozen=True, slots=True)
class _Program:
    process: subprocess.Popen[bytes]
    call: Call


def run_process(  # noqa: PLR0913 - each is a fact of the call, and all but the first go by name
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
) -> ProcessResult:
    """Run a program and wait for it, its output and its time-out; then kill whatever it has started and left.

    It gets a session and a process group of its own, /dev/null as stdin, one pipe for stdout and stderr, and no
    other descriptor. Of each stream the first `head_bytes` and the last `tail_bytes` are kept (for a whole answer
    or its beginning: a large head and no tail). `on_output` gets every chunk, of stdout alone when stderr is
    separate; what it raises ends the program and is passed on.

    A time-out sends SIGTERM to the group, and SIGKILL to everything GRACE_S later; the output so far is in the
    result. Cancellation does the same and raises ProcessCancelled. A program that cannot be started raises
    ToolError.
    """
    cancel.raise_if_cancelled()
    started = time.monotonic()
    output = HeadAndTail(head_bytes, tail_bytes)
    stderr = HeadAndTail(head_bytes, tail_bytes) if separate_stderr else None
    with ExitStack() as listening:
        with ExitStack() as living:
            try:
                listener = listening.enter_context(Listener())
                ends = _open_streams(listener, output, on_output, stderr)
                program = living.enter_context(_running_program(argv, cwd, env, ends))
                listener.watch_end_of(program.process)
            except (OSError, RuntimeError, ValueError) as error:
                raise ToolError(_why_not_started(argv, error)) from error
            living.callback(cancel.on_cancel(listener.wake))
            ending = _wait_for_end(listener, program.process, timeout_s, cancel)
        _take_rest(listener)
    result = _result(program, ending, time.monotonic() - started, output.taken(), stderr.taken() if stderr else None)
    if ending == "cancelled":
        raise ProcessCancelled(cancel.reason or "cancelled", result)
    return result


def _result(
    program: _Program, ending: _Ending, duration_s: float, output: Output, stderr: Output | None
) -> ProcessResult:
    # A program that SIGKILL has not ended yet counts as ended by it.
    status = program.process.returncode if program.process.returncode is not None else -signal.SIGKILL
    return ProcessResult(
        exit_status=status if status >= 0 else None,
        signal=-status if status < 0 else None,
        timed_out=ending == "timed_out",
        duration_s=duration_s,
        output=output,
        stderr=stderr,
        left_background=ending == "exited" and program.call.left_running,
    )


def _open_streams(
    listener: Listener, output: HeadAndTail, on_output: OnOutput | None, stderr: HeadAndTail | None
) -> tuple[FileIO, FileIO]:
    """The ends that the child gets as stdout and stderr: the same one twice, so that the order is kept, or two."""
    stdout_end = listener.add_stream(output, on_output)
    return stdout_end, listener.add_stream(stderr, None) if stderr else stdout_end


@contextmanager
def _running_program(
    argv: Sequence[str | bytes], cwd: Path, env: Mapping[str, str], ends: tuple[FileIO, FileIO]
) -> Iterator[_Program]:
    """The program, started; afterwards it is dead and reaped, and so is all that it had started."""
    call = begin_call()
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, CALL_VARIABLE: call.marker},
            stdin=subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[1],
            start_new_session=True,
        )
        call.leader = process.pid
        for end in ends:
            end.close()
        try:
            yield _Program(process, call)
        finally:
            _kill(process)
    finally:
        end_call(call)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        signal_group(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(DEATH_WITHIN_S)


def _wait_for_end(
    listener: Listener, process: subprocess.Popen[bytes], timeout_s: float | None, cancel: CancelToken
) -> _Ending:
    deadline = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
    while not listener.child_has_ended:
        if cancel.is_cancelled or time.monotonic() >= deadline:
            _ask_to_end(listener, process)
            return "cancelled" if cancel.is_cancelled else "timed_out"
        listener.listen(deadline - time.monotonic())
    _drain(listener, DRAIN_AT_MOST_S)
    return "exited"


def _ask_to_end(listener: Listener, process: subprocess.Popen[bytes]) -> None:
    """Let the program clean up behind itself and say its last words, as long as that takes no more than GRACE_S."""
    signal_group(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while not listener.child_has_ended and time.monotonic() < deadline:
        listener.listen(deadline - time.monotonic())
    _drain(listener, deadline - time.monotonic())


def _drain(listener: Listener, at_most_s: float) -> None:
    """Hear out what still holds the pipes: until they close, fall silent, or the time is up."""
    deadline = time.monotonic() + at_most_s
    while listener.open_streams and time.monotonic() < deadline:
        if not listener.listen(min(DRAIN_SILENCE_S, deadline - time.monotonic())):
            return


def _take_rest(listener: Listener) -> None:
    """What was in the pipes when the last writer died; bounded, for one may have got away."""
    deadline = time.monotonic() + DRAIN_SILENCE_S
    while listener.open_streams and listener.listen(0) and time.monotonic() < deadline:
        pass


def _why_not_started(argv: Sequence[str | bytes], error: Exception) -> str:
    program = os.fsdecode(argv[0])
    return f"{program} cannot be started: {_reason(error)}"


def _reason(error: Exception) -> str:
    if isinstance(error, ValueError):
        return "an argument or its environment holds a NUL character or a lone surrogate"
    if not isinstance(error, OSError):
        return str(error)  # no thread to be had
    if error.errno == errno.E2BIG:
        return "the command and its environment are longer than the system accepts"
    where = f": {os.fsdecode(error.filename)}" if error.filename else ""
    return f"{os.strerror(error.errno or 0)}{where}"
