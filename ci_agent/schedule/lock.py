"""A lock that a file stands for: held by at most one run, and free as soon as that run is gone, however it ended."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ci_agent.errors import BusyError, ConfigurationError

_LONGEST_NOTE = 32


@dataclass(frozen=True, slots=True)
class HeldLock:
    path: Path
    """Absolute."""
    descriptor: int

    def is_found(self) -> bool:
        """Whether the next run would find this very lock, and so be told that it is held."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.lstat(self.path))
        except OSError:
            return False


@contextmanager
def hold_lock(path: Path) -> Iterator[HeldLock]:
    """Hold the lock, or raise BusyError at once when another process does.

    The file is created when it is missing and stays when the lock is given up: removing it would let two runs
    hold "the" lock, each on a file of its own. While it is held it says the holder's process id, unless it is a
    file with other content, which is left alone. ConfigurationError when it cannot be used at all.
    """
    descriptor = _open(path)
    try:
        _lock(descriptor, path)
        _write_holder(descriptor)
        yield HeldLock(path.absolute(), descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        # O_NONBLOCK: opening a named pipe must not wait for somebody at its other end. O_NOFOLLOW: in a folder that
        # others write to, a link would let them choose the file that is made or held.
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"lock file {str(path)!r} cannot be opened: {_reason(error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigurationError(f"lock file {str(path)!r} is not a regular file; name a file of its own for the lock")
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BusyError(f"another run holds the lock {str(path)!r}{_holder(descriptor)}") from error
    except OSError as error:
        raise ConfigurationError(
            f"lock file {str(path)!r} cannot be locked: {_reason(error)}; put it on a local file system"
        ) from error


def _holder(descriptor: int) -> str:
    note = os.pread(descriptor, _LONGEST_NOTE, 0)
    return f" (process {int(note)})" if _is_holder(note) and note else ""


def _write_holder(descriptor: int) -> None:
    if _is_holder(os.pread(descriptor, _LONGEST_NOTE, 0)):
        with suppress(OSError):  # a full disk takes the courtesy, not the lock
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _is_holder(note: bytes) -> bool:
    """What this module writes, or nothing at all: what may be overwritten."""
    return note == b"" or (note.strip().isdigit() and note.endswith(b"\n"))


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "it is a symbolic link; name the file itself"
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0)
    return "its name holds a NUL character or a lone surrogate"
