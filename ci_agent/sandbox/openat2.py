"""openat2(2): a path that the kernel itself opens without following a link. Linux 5.6."""

import ctypes
import errno
import os
from functools import cache
from typing import Final

FOLLOW_NO_MAGIC_LINKS: Final = 0x02  # RESOLVE_NO_MAGICLINKS in linux/openat2.h
FOLLOW_NO_LINKS: Final = 0x04  # RESOLVE_NO_SYMLINKS
STAY_BENEATH: Final = 0x08  # RESOLVE_BENEATH

_OPENAT2 = 437  # the same on every architecture that Python runs on (asm-generic/unistd.h)


class _OpenHow(ctypes.Structure):
    """`struct open_how`."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(above: int, path: bytes, flags: int, resolve: int) -> int:
    """A descriptor of the path, seen from the folder `above`. OSError, also where there is no such call."""
    how = _OpenHow(flags, 0, resolve)
    while True:
        descriptor: int = _libc().syscall(_OPENAT2, above, path, ctypes.byref(how), ctypes.sizeof(how))
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        # EAGAIN: the kernel could not tell whether the path stays beneath, as something was moved at the moment.
        if number not in {errno.EINTR, errno.EAGAIN}:
            raise OSError(number, os.strerror(number), os.fsdecode(path))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
