"""Waits for everything that can happen while a command runs: output, reports, a wake-up from another thread."""

import os
import selectors
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO
from typing import Self, TypeAlias

from ci_agent.process.capture import HeadAndTail
from ci_agent.process.supervised import Supervised

OnOutput: TypeAlias = Callable[[bytes], None]

_READ_BYTES = 1 << 16

_LONGEST_WAIT_S = 3600.0  # epoll cannot wait for ever by a number


@dataclass(frozen=True, slots=True)
class _Stream:
    kept: HeadAndTail
    on_output: OnOutput | None


class Listener:
    """Open it with `with`; OSError when descriptors are used up."""

    open_streams = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._selector = stack.enter_context(selectors.DefaultSelector())
            woken, self._wake_end = _open_pipe(stack)
            self._selector.register(woken, selectors.EVENT_READ)
            self._wake_lock = threading.Lock()
            self._opened = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._wake_lock:
            self._opened.close()

    def wake(self) -> None:
        """End the `listen` that is going on, or the next one. For any thread, also after the listener was closed."""
        with self._wake_lock:
            if not self._wake_end.closed:
                self._wake_end.write(b"!")

    def add_stream(self, kept: HeadAndTail, on_output: OnOutput | None) -> FileIO:
        """Listen to one more pipe; returns the end for the child, which the caller closes when the child has it."""
        read_end, write_end = _open_pipe(self._opened)
        self._selector.register(read_end, selectors.EVENT_READ, _Stream(kept, on_output))
        self.open_streams += 1
        return write_end

    def watch_reports_of(self, command: Supervised) -> None:
        """Take in what its supervisor reports, until there is no more to come."""
        self._selector.register(command.control, selectors.EVENT_READ, command)

    def listen(self, timeout_s: float) -> bool:
        """Take in what has happened, after waiting for it; True if a stream had something to say, or ended."""
        heard = False
        for key, _ in self._selector.select(min(timeout_s, _LONGEST_WAIT_S)):
            if isinstance(key.data, _Stream):
                heard |= self._read(key.fd, key.data)
            elif isinstance(key.data, Supervised):
                self._take_reports(key.data)
            else:
                with suppress(BlockingIOError):
                    os.read(key.fd, 1)
        return heard

    def _take_reports(self, command: Supervised) -> None:
        command.take_reports()
        if command.is_over:
            self._selector.unregister(command.control)

    def _read(self, descriptor: int, stream: _Stream) -> bool:
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(descriptor)
            self.open_streams -= 1
            return True
        stream.kept.append(chunk)
        if stream.on_output:
            stream.on_output(chunk)
        return True


def _open_pipe(stack: ExitStack) -> tuple[FileIO, FileIO]:
    """Read end and write end, closed with the stack, or before by who likes."""
    read_end, write_end = os.pipe()
    # Ready to be read is no promise: on Linux a child can open its pipe anew, and take out what we were told of.
    os.set_blocking(read_end, False)
    return stack.enter_context(FileIO(read_end)), stack.enter_context(FileIO(write_end, "w"))
