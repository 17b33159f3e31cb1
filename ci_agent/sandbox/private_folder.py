"""A folder for temporary files that belongs to one run alone."""

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ci_agent.sandbox.removal import remove_folder

PREFIX: Final = "ci-agent-tmp-"

_ABANDONED_AFTER_S: Final = 60.0

REMOVED_WITHIN_S: Final = 10.0
"""At the end of a run, and for what others have left. A command may have made millions of files, and a run must end;
what stays is removed by the spawn server when it ends, as far as it gets, and by the next run."""


def _tell_nobody(_folder: int) -> None:
    pass


class PrivateFolder:
    """Made when it is first asked for, with mode 0700. For any number of threads."""

    def __init__(self, on_made: Callable[[int], None] = _tell_nobody) -> None:
        """`on_made` gets a descriptor of the folder: for whoever shall remove it should this process be killed. While
        a copy of it is open, the folder counts as in use."""
        self._on_made = on_made
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._in_use = -1
        """A descriptor of the folder, locked as long as the run lives, however it ends; negative: there is none."""

    def path(self) -> Path:
        """Absolute and free of symlinks; OSError when there is no place for it.

        What killed runs have left beside it is removed.
        """
        with self._lock:
            if self._path is None:
                self._path = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX)))
                with suppress(OSError):  # a file system without locks: then nobody can tell what is abandoned
                    self._in_use = _lock_folder(self._path)
                    self._on_made(self._in_use)
                    _remove_abandoned(self._path.parent)
            return self._path

    def remove(self, within_s: float = REMOVED_WITHIN_S) -> None:
        """With all that is in it, as far as that can be removed in this time."""
        with self._lock:
            if self._path is not None:
                with suppress(OSError):  # it is gone
                    descriptor = self._in_use if self._in_use >= 0 else _open_folder(self._path)
                    remove_folder(descriptor, within_s)
                    os.close(descriptor)
                self._path, self._in_use = None, -1


def _open_folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _lock_folder(path: Path) -> int:
    """A descriptor of a folder of our own that no run uses; OSError when it is none."""
    descriptor = _open_folder(path)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_abandoned(folder: Path) -> None:
    deadline = time.monotonic() + REMOVED_WITHIN_S
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is in use, another user's, or gone
            # A run may be about to lock what it has just made.
            if time.time() - os.lstat(path).st_ctime > _ABANDONED_AFTER_S:
                descriptor = _lock_folder(path)
                remove_folder(descriptor, deadline - time.monotonic())
                os.close(descriptor)
