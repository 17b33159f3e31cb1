"""A folder for temporary files that belongs to one run alone."""

import fcntl
import os
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from ci_agent.sandbox.removal import remove_tree

PREFIX: Final = "ci-agent-tmp-"

_ABANDONED_AFTER_S: Final = 60.0


class PrivateFolder:
    """Made when it is first asked for, with mode 0700. For any number of threads."""

    def __init__(self) -> None:
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
                    _remove_abandoned(self._path.parent)
            return self._path

    def remove(self) -> None:
        """With all that is in it, as far as that can be removed."""
        with self._lock:
            if self._path is not None:
                remove_tree(self._path)
                if self._in_use >= 0:
                    os.close(self._in_use)
                self._path, self._in_use = None, -1


def _lock_folder(path: Path) -> int:
    """A descriptor of a folder of our own that no run uses; OSError when it is none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is in use, another user's, or gone
            # A run may be about to lock what it has just made.
            if time.time() - os.lstat(path).st_ctime > _ABANDONED_AFTER_S:
                descriptor = _lock_folder(path)
                remove_tree(path)
                os.close(descriptor)
