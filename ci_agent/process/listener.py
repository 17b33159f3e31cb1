"""Waits for everything that can happen while a child runs: output, its end, a wake-up from another thread."""

import os
import selectors
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO
from typing import Self, TypeAlias

from ci_agent.process.capture import HeadAndTail

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
    child_has_ended = False

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

    def watch_end_of(self, process: subprocess.Popen[bytes]) -> None:
        """Note in `child_has_ended` when it has; it is not reaped, so its id stays its own."""
        watch = self._opened.enter_context(_open_end_watch(process))
        self._selector.register(watch, selectors.EVENT_READ, process)

    def listen(self, timeout_s: float) -> bool:
        """Take in what has happened, after waiting for it; True if a stream had something to say, or ended."""
        heard = False
        for key, _ in self._selector.select(min(timeout_s, _LONGEST_WAIT_S)):
            if isinstance(key.data, _Stream):
                heard |= self._read(key.fd, key.data)
            elif key.data is None:
                with suppress(BlockingIOError):
                    os.read(key.fd, 1)
            else:
                self.child_has_ended = True
                self._selector.unregister(key.fd)
        return heard

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


def _open_end_watch(process: subprocess.Popen[bytes]) -> FileIO:
    try:
        return FileIO(os.pidfd_open(process.pid))
    except (AttributeError, OSError):  # not Linux, or before 5.3
        return _watch_by_thread(process)


def _watch_by_thread(process: subprocess.Popen[bytes]) -> FileIO:
    read_end, write_end = os.pipe()
    threading.Thread(target=_close_at_end, args=(process, write_end), daemon=True).start()
    return FileIO(read_end)


def _close_at_end(process: subprocess.Popen[bytes], write_end: int) -> None:
    try:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13: reaped here, and Popen keeps the status
            process.wait()
    finally:
        os.close(write_end)
