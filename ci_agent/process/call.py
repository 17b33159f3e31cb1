"""One command from its start to its end, whatever that is: output, time-out, cancellation."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.process.capture import HeadAndTail
from ci_agent.process.failure import not_started
from ci_agent.process.listener import Listener, OnOutput
from ci_agent.process.result import ProcessCancelled, ProcessResult
from ci_agent.process.supervised import Supervised

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""

DRAIN_SILENCE_S = 0.3
DRAIN_AT_MOST_S = 2.0
"""A background process may hold the pipe after the program has ended: how long its output is waited for."""

LOST = "the process that supervised it was killed or stopped, by the command or from outside"

_Ending: TypeAlias = Literal["exited", "timed_out", "cancelled"]

Start: TypeAlias = Callable[[Sequence[int]], AbstractContextManager[Supervised]]
"""Starts a command whose stdout and stderr are these descriptors; on leaving, nothing of it is left."""


@dataclass(frozen=True, slots=True)
class Capture:
    """Where the output goes."""

    output: HeadAndTail
    stderr: HeadAndTail | None
    """None: it goes with `output`."""
    on_output: OnOutput | None


def run_call(
    start: Start, program: str, capture: Capture, timeout_s: float | None, cancel: CancelToken
) -> ProcessResult:
    """Wait for a command, its output and its time-out, then for the end of what it left; see `Processes.run`."""
    started = time.monotonic()
    with ExitStack() as listening:
        with ExitStack() as living:
            try:
                listener = listening.enter_context(Listener())
                command = living.enter_context(_started(start, listener, capture))
            except OSError as error:
                raise not_started(program, error) from error
            living.callback(cancel.on_cancel(listener.wake))
            ending = _wait_for_end(listener, command, timeout_s, cancel)
        _take_rest(listener)
    if command.failed:
        raise not_started(program, OSError(command.failed.errno, None, command.failed.path))
    if command.broken is not None:
        raise RuntimeError(f"a supervisor failed:\n{command.broken}")
    result = _result(command, ending, time.monotonic() - started, capture)
    if ending == "cancelled":
        raise ProcessCancelled(cancel.reason or "cancelled", result)
    return result


@contextmanager
def _started(start: Start, listener: Listener, capture: Capture) -> Iterator[Supervised]:
    """The command, listened to. Its ends of the pipes are its own: ours are closed."""
    stdout = listener.add_stream(capture.output, capture.on_output)
    stderr = listener.add_stream(capture.stderr, None) if capture.stderr else stdout
    with start([stdout.fileno(), stderr.fileno()]) as command:
        stdout.close()
        stderr.close()
        listener.watch_reports_of(command)
        yield command


def _result(command: Supervised, ending: _Ending, duration_s: float, capture: Capture) -> ProcessResult:
    # What never reported its end was ended by SIGKILL.
    status = command.exited.status if command.exited else -signal.SIGKILL
    return ProcessResult(
        exit_status=status if status >= 0 else None,
        signal=-status if status < 0 else None,
        timed_out=ending == "timed_out",
        duration_s=duration_s,
        output=capture.output.taken(),
        stderr=capture.stderr.taken() if capture.stderr else None,
        left_background=ending == "exited" and command.finished is not None and command.finished.left_running,
        killed_because=None if ending == "cancelled" else _killed_because(command),
    )


def _killed_because(command: Supervised) -> str | None:
    if command.is_lost:
        return LOST
    last = command.finished or command.exited
    return last.killed_because if last else None


def _wait_for_end(listener: Listener, command: Supervised, timeout_s: float | None, cancel: CancelToken) -> _Ending:
    deadline = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
    while not command.has_ended:
        if cancel.is_cancelled or time.monotonic() >= deadline:
            _ask_to_end(listener, command)
            return "cancelled" if cancel.is_cancelled else "timed_out"
        listener.listen(deadline - time.monotonic())
    _drain(listener, DRAIN_AT_MOST_S)
    return "exited"


def _ask_to_end(listener: Listener, command: Supervised) -> None:
    """Let the program clean up behind itself and say its last words, as long as that takes no more than GRACE_S."""
    command.terminate()
    deadline = time.monotonic() + GRACE_S
    while not command.has_ended and time.monotonic() < deadline:
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
