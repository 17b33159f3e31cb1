"""Room on the disk that is set aside for the record of a run, so that a command that fills the disk does not end it."""

import ctypes
import errno
import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

KEPT_BYTES = 16 * 1024 * 1024
"""Beyond what is written; taken anew when half of it is used."""

SHARE_OF_FREE_ROOM = 4
"""Of a small disk no more than a quarter is taken, so that the run itself has room."""

_TIMES = 3
"""The document repeats what the journal holds, and the results of calls once more, as messages."""

_KEEP_SIZE = 1  # linux/falloc.h


class Room:
    """What the file system keeps for a journal behind its end: nobody else can have it, and it is no part of the file.

    Where that cannot be had (macOS, many file systems that come over a network, a full disk), there is none, and
    nothing else changes.
    """

    def __init__(self, descriptor: int) -> None:
        self.is_short = False
        """Whether the disk is full and what was kept is half used: time to come to an end."""
        self._descriptor = descriptor
        self._kept_bytes = 0
        self._spare_bytes: int | None = None
        """None: nothing was asked for yet."""

    def keep(self, size: int) -> None:
        """Have room for a journal of this size to go on, and for its document."""
        if self._spare_bytes is None:
            self._spare_bytes = _affordable(self._descriptor)
        needed = size * _TIMES + self._spare_bytes // 2
        if self._spare_bytes == 0 or self.is_short or needed <= self._kept_bytes:
            return
        wanted = size * _TIMES + self._spare_bytes
        refused = _allocate(self._descriptor, wanted)
        if refused is None:
            self._kept_bytes = wanted
        elif self._kept_bytes and refused in (errno.ENOSPC, errno.EDQUOT):
            self.is_short = True
        else:
            self._spare_bytes = 0

    def release(self) -> None:
        """Give it back: it is wanted now."""
        if self._kept_bytes:
            with suppress(OSError):
                _cut_behind_the_end(self._descriptor)
        self._kept_bytes, self._spare_bytes = 0, 0


def give_back_room(path: Path) -> None:
    """Of the journal that a killed run left. Nothing happens when it cannot be written or its run goes on."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _cut_behind_the_end(descriptor)
        finally:
            os.close(descriptor)


def _cut_behind_the_end(descriptor: int) -> None:
    os.ftruncate(descriptor, os.fstat(descriptor).st_size)


def _affordable(descriptor: int) -> int:
    try:
        disk = os.fstatvfs(descriptor)
    except OSError:
        return 0
    return min(KEPT_BYTES, disk.f_bavail * disk.f_frsize // SHARE_OF_FREE_ROOM)


def _allocate(descriptor: int, size: int) -> int | None:
    """Why the file system does not keep so many bytes for the file, as an errno; None: it does."""
    if sys.platform != "linux":
        return errno.ENOSYS
    library = ctypes.CDLL(None, use_errno=True)
    fallocate = getattr(library, "fallocate64", library.fallocate)
    result = fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size))
    return None if result == 0 else ctypes.get_errno()
