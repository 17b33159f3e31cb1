"""The standard streams, also when they were closed, when nobody reads them, and when the disk behind them is full."""

import fcntl
import os
import select
import sys
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

STDOUT_CLOSED = "stdout was closed before the result could be written to it"


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


def write_stream(stream: TextIO, chunks: Iterable[str]) -> None:
    """Write and flush; OSError when the stream does not take it, and nothing is tried again at exit."""
    try:
        stream.writelines(chunks)
        stream.flush()
    except OSError:
        give_up(stream)
        raise


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
