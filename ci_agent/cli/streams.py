"""The standard streams, also when they were closed, when nobody reads them, and when the disk behind them is full."""

import errno
import fcntl
import os
import select
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

from ci_agent.spelling import counted

STDOUT_CLOSED = "stdout was closed before the result could be written to it"

PATIENCE_S = 600.0
"""How long a reader of a result may take nothing: somebody may be looking at it, page by page."""

_LOG_STALL_S = 2.0
"""How long a line of the log waits for its reader; a run that is cancelled is over within five seconds."""

_PATIENCE_WITH_LOG_S = 30.0
"""How long all lines of the log together wait."""

_LOOK_EVERY_S = 0.2


def prepare_streams() -> None:
    """Make stdout and stderr UTF-8, whatever the locale is, and let /dev/null stand where a stream was closed at start.

    Otherwise the next file to be opened, which may be the record, would get the number of the closed one, and whatever
    is written to the stream. What goes to stderr is then for nobody; stdout is opened for reading, so that writing to
    it fails, for a result that nobody gets is no success.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, flags)  # takes the lowest number that is free
    sys.stdout = _as_utf_8(sys.stdout, 1)
    sys.stderr = _as_utf_8(sys.stderr, 2)


def stdout_problem() -> str | None:
    """Why nothing can be written to stdout; None when it looks as if something could."""
    descriptor = sys.stdout.fileno()
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        return STDOUT_CLOSED
    poll = select.poll()
    poll.register(descriptor, 0)
    # The reader of a pipe has gone: POLLERR comes without being asked for.
    gone = select.POLLERR | select.POLLNVAL
    return STDOUT_CLOSED if any(events & gone for _, events in poll.poll(0)) else None


def write_stream(
    stream: TextIO,
    chunks: Iterable[str],
    patience_s: float = PATIENCE_S,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Write and flush; OSError when the stream does not take it (see `write_all`), and nothing is tried again at
    exit."""
    try:
        stream.flush()
        write_all(stream.fileno(), "".join(chunks), patience_s, is_over)
    except OSError:
        give_up(stream)
        raise


def write_all(descriptor: int, text: str, patience_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
    """Write it whole, as UTF-8; TimeoutError when the reader takes nothing for so long, or once `is_over`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    rest = memoryview(text.encode("utf-8", "backslashreplace"))
    give_up_at = time.monotonic() + patience_s
    while rest:
        taken = 0
        if poll.poll(min(_LOOK_EVERY_S, patience_s) * 1000):
            # So much a pipe that can be written to takes without waiting; somebody else may have filled it meanwhile.
            with suppress(BlockingIOError):
                taken = os.write(descriptor, rest[: select.PIPE_BUF])
        if taken:
            rest, give_up_at = rest[taken:], time.monotonic() + patience_s
        elif is_over() or time.monotonic() >= give_up_at:
            raise TimeoutError(errno.ETIMEDOUT, "nobody read it")


class Log:
    """Lines on stderr. A reader that stalls does not hold the run up: it is waited for a little, then loses lines until
    it reads on, and is told so. One that has gone is no reason to stop: the record has it all."""

    def __init__(self) -> None:
        self._patience_s = _PATIENCE_WITH_LOG_S
        self._lost = 0

    def __call__(self, text: str) -> None:
        lines = text.count("\n") + 1
        if self._lost:
            text = f"\n({counted(self._lost, 'line')} missing here: nobody read the log)\n{text}"
        started = time.monotonic()
        try:
            sys.stderr.flush()
            write_all(sys.stderr.fileno(), f"{text}\n", 0 if self._lost else min(self._patience_s, _LOG_STALL_S))
        except TimeoutError:
            self._lost += lines
            self._patience_s = max(0, self._patience_s - (time.monotonic() - started))
        except OSError:
            give_up(sys.stderr)
        else:
            self._lost = 0


def give_up(stream: TextIO) -> None:
    """Let /dev/null have what the stream still holds: Python flushes at exit, and would end with a code of its own."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), stream.fileno(), inheritable=False)
    with suppress(OSError):
        stream.flush()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _as_utf_8(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream
