"""How signals, and the end of the parent, reach the run: as the cancellation of its token."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ci_agent.cancellation import CancelToken

LOOK_EVERY_S = 0.5
"""For the end of the parent, or of what is watched."""

_STOP = 0  # no signal has this number

_ALWAYS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGQUIT})
"""They count even when they were inherited as ignored: shells start background jobs like that."""

_END_A_PROCESS = (
    "SIGHUP",
    "SIGUSR1",  # batch systems warn by it of the end of a job's time
    "SIGUSR2",
    "SIGALRM",  # an alarm, and the timers after it, survive an exec: `perl -e 'alarm 60; exec ...'`
    "SIGVTALRM",
    "SIGPROF",
    "SIGXCPU",  # the kernel repeats it each second, and kills at the hard limit
    "SIGABRT",  # how a service manager ends what does not answer; abort(3) ends the process all the same
)
_END_A_PROCESS_ON_LINUX = ("SIGPOLL", "SIGPWR", "SIGSTKFLT")
"""Elsewhere they do nothing, or are not there."""


@dataclass(slots=True)
class SignalWatch:
    cancel: CancelToken
    on_second: Callable[[], None]
    received_signal: int | None = None
    """The first that came: the exit code is 128 and this. None: none came."""


@contextmanager
def cancel_on_signals(
    cancel: CancelToken, on_second: Callable[[], None], *, follow_parent: bool = False
) -> Iterator[SignalWatch]:
    """Cancel on the first signal that would end this process; on each after it call `on_second`, which makes things
    faster.

    To be entered in the main thread; the token is cancelled, and `on_second` called, in another one, so that a
    signal counts while the main thread waits for a lock or is busy in C code. SIGINT, SIGTERM and SIGQUIT count even
    when they were inherited as ignored; any other that was ignored stays so, as for SIGHUP is what nohup means. Those
    by which the kernel tells of a fault of the program itself (SIGSEGV and its like) end it.

    `follow_parent`: the end of the parent counts as SIGTERM, since whoever stops a job may signal no more than
    the shell that runs it. Under nohup it does not.
    """
    survives_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    numbers = _ALWAYS | {number for number in _ending_signals() if signal.getsignal(number) is signal.SIG_DFL}
    parent = os.getppid() if follow_parent and not survives_hangup else None
    watch = SignalWatch(cancel, on_second)
    is_over = threading.Event()
    with _signals_as_bytes(numbers) as (read_end, write_end):
        thread = threading.Thread(target=_watch, args=(watch, read_end, numbers, parent, is_over), daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            is_over.set()
            with suppress(OSError):  # then it looks for itself
                os.write(write_end, bytes([_STOP]))
            thread.join()


class EndedBySignal(SystemExit):
    """What a signal raises outside of a run."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        super().__init__(self.exit_code)
        self.reason = f"received {_name(number)}"


def end_on_signals() -> None:
    """Before a run goes on, and when it has ended, have a signal raise EndedBySignal.

    Of those that always count: what a run is to do takes a while to be read, and one that was inherited as ignored
    would be lost meanwhile; to the first process of a container each would be, by its default.
    """
    for number in _ALWAYS:
        signal.signal(number, _end)


def _end(number: int, _frame: object) -> None:
    # What is raised while a destructor or a weak reference's callback runs is lost: a second signal is not.
    if os.getpid() != 1:  # the kernel keeps from the first process of a container what it has no handler for
        signal.signal(number, signal.SIG_DFL)
    raise EndedBySignal(number)


def _ending_signals() -> Iterator[int]:
    for name in _END_A_PROCESS:
        yield signal.Signals[name]
    if sys.platform == "linux":
        yield from (signal.Signals[name] for name in _END_A_PROCESS_ON_LINUX)
        yield from range(signal.SIGRTMIN, signal.SIGRTMAX + 1)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


@contextmanager
def _signals_as_bytes(numbers: Collection[int]) -> Iterator[tuple[int, int]]:
    """A pipe into which the C handler writes the number of each signal, the moment that it comes."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)  # a child may open it through /proc, and take out what we were told of
    os.set_blocking(write_end, False)
    previous_wakeup = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    previous = {number: signal.signal(number, _ignore) for number in numbers}
    try:
        yield read_end, write_end
    finally:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(previous_wakeup)
        os.close(read_end)
        os.close(write_end)


def _ignore(_number: int, _frame: object) -> None:
    """Python calls it in the main thread, some time; by then the byte has been written and read."""


def _watch(
    watch: SignalWatch, read_end: int, numbers: Collection[int], parent: int | None, is_over: threading.Event
) -> None:
    poll = select.poll()
    poll.register(read_end, select.POLLIN)
    while True:
        # The kernel could signal us at the parent's death (PR_SET_PDEATHSIG), but does so when the thread that
        # started us ends, too: a program with a pool of threads, the GitHub runner among them, would end us early.
        poll.poll(LOOK_EVERY_S * 1000)
        came = _read_byte(read_end)
        if came == bytes([_STOP]) or (is_over.is_set() and not came):
            return
        if came and came[0] in numbers:
            _take(watch, came[0], f"received {_name(came[0])}")
        elif parent is not None and os.getppid() != parent:
            parent = None
            _take(watch, signal.SIGTERM, "the process that had started the run has ended")


def _read_byte(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1)
    except BlockingIOError:
        return b""


def _take(watch: SignalWatch, number: int, reason: str) -> None:
    if watch.received_signal is None:
        watch.received_signal = number
        watch.cancel.cancel(reason)
    else:
        watch.on_second()
