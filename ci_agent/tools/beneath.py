"""Reaching a folder without following one link on the way, whatever another process does to the way meanwhile."""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from ci_agent.sandbox.openat2 import FOLLOW_NO_LINKS, FOLLOW_NO_MAGIC_LINKS, STAY_BENEATH, openat2

EnterFolder: TypeAlias = Callable[[Path], int]
"""A descriptor of the folder at an absolute path; OSError with ELOOP when a link stands on the way, or at its end."""

# O_PATH asks for no right to list a folder that is only passed through. macOS has none.
PASS_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Without O_NOFOLLOW, so that a link at the end is told from a file: the kernel says ELOOP, as for one on the way.
_AT_ONCE = PASS_THROUGH & ~os.O_NOFOLLOW


@contextmanager
def enter_folder(path: Path, enter: EnterFolder, *, create: bool = False) -> Iterator[int]:
    """A descriptor to act beneath (`dir_fd`), closed in the end. `create` makes the folders that are missing.

    Raises OSError.
    """
    descriptor = _enter_or_create(path, enter) if create else enter(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@lru_cache(maxsize=1)
def best_way_in() -> EnterFolder:
    """One call to the kernel where it has openat2 (Linux 5.6) and no seccomp filter hides it; else name by name."""
    if sys.platform != "linux":
        return enter_name_by_name
    try:
        os.close(enter_at_once(Path("/")))
    except OSError:
        return enter_name_by_name
    return enter_at_once


def enter_at_once(path: Path) -> int:
    """With openat2: the kernel itself refuses links, on the way and at the end."""
    top = os.open("/", PASS_THROUGH)
    try:
        below = os.fsencode(path.relative_to("/")) or b"."
        return openat2(top, below, _AT_ONCE, STAY_BENEATH | FOLLOW_NO_LINKS | FOLLOW_NO_MAGIC_LINKS)
    finally:
        os.close(top)


def enter_name_by_name(path: Path) -> int:
    """Folder by folder, each opened from within the one above."""
    return _walk(path, _enter)


def _enter_or_create(path: Path, enter: EnterFolder) -> int:
    with suppress(FileNotFoundError):
        return enter(path)
    return _walk(path, _make_and_enter)


def _walk(path: Path, enter: Callable[[str, int], int]) -> int:
    descriptor = os.open("/", PASS_THROUGH)
    for name in path.parts[1:]:
        above = descriptor
        try:
            descriptor = enter(name, above)
        finally:
            os.close(above)
    return descriptor


def _enter(name: str, above: int) -> int:
    try:
        return os.open(name, PASS_THROUGH, dir_fd=above)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _make_and_enter(name: str, above: int) -> int:
    with suppress(FileNotFoundError):
        return _enter(name, above)
    with suppress(FileExistsError):  # somebody else was faster; if it is no folder, entering it says so
        os.mkdir(name, dir_fd=above)
    return _enter(name, above)
