"""Removing a folder with all that is in it, however deep, without following a link; in a time that is bounded."""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_GET_PATH: Final[int | None] = getattr(fcntl, "F_GETPATH", None)
"""macOS."""


def remove_folder(folder: int, within_s: float) -> bool:
    """Remove the folder that this descriptor stands for, wherever it has been moved; True when it is gone.

    What cannot be removed, or not in that time, stays. The descriptor stays open.
    """
    try:
        _empty(folder, time.monotonic() + within_s)
        path = _path_of(folder)
        if not os.path.samestat(os.lstat(path), os.fstat(folder)):
            return False
        os.rmdir(path)
    except OSError:
        return False
    return True


def _empty(top: int, deadline: float) -> None:
    """Folders in a folder are moved to the top before it is removed. So there is no depth at which calls nest too deep
    or a path becomes too long, as there is for `shutil.rmtree`: a command makes five thousand levels in a moment."""
    os.fchmod(top, stat.S_IRWXU)
    goes_on = True
    while goes_on:
        goes_on = False
        for name in os.listdir(top):
            if time.monotonic() > deadline:
                return
            with suppress(OSError):  # the rest shall go
                goes_on |= _remove_entry(top, name, deadline)


def _remove_entry(top: int, name: str, deadline: float) -> bool:
    """True when something of it was removed, or moved to the top."""
    if _unlinked(name, top):
        return True
    has_changed = False
    with _opened(name, top) as folder:
        for inner in os.listdir(folder):
            if time.monotonic() > deadline:
                return False
            with suppress(OSError):
                if not _unlinked(inner, folder):
                    _make_movable(inner, folder)
                    os.rename(inner, f"moved-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
                has_changed = True
    with suppress(OSError):
        os.rmdir(name, dir_fd=top)
        has_changed = True
    return has_changed


def _unlinked(name: str, folder: int) -> bool:
    """False: it is a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # macOS says the second
        if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            raise
        return False
    return True


@contextmanager
def _opened(name: str, parent: int) -> Iterator[int]:
    """One that was locked against its own user, as Go does with its module cache, is unlocked."""
    try:
        folder = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    except PermissionError:
        os.chmod(name, stat.S_IRWXU, dir_fd=parent)
        folder = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    try:
        os.fchmod(folder, stat.S_IRWXU)
        yield folder
    finally:
        os.close(folder)


def _make_movable(name: str, parent: int) -> None:
    """Another parent is written into a folder itself."""
    with _opened(name, parent):
        pass


def _path_of(folder: int) -> str:
    if _GET_PATH is None:
        return os.readlink(f"/proc/self/fd/{folder}")
    return os.fsdecode(fcntl.fcntl(folder, _GET_PATH, bytes(1024)).rstrip(b"\0"))
