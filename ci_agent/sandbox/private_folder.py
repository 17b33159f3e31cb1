"""A folder for temporary files that belongs to one run alone."""

import os
import shutil
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path


class PrivateFolder:
    """Made when it is first asked for, with mode 0700. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._path: Path | None = None

    def path(self) -> Path:
        """Absolute and free of symlinks. OSError when there is no place for it."""
        with self._lock:
            if self._path is None:
                self._path = Path(os.path.realpath(tempfile.mkdtemp(prefix="ci-agent-tmp-")))
            return self._path

    def remove(self) -> None:
        """With all that is in it, as far as that can be removed."""
        with self._lock:
            if self._path is not None:
                _open_folders(self._path)
                shutil.rmtree(self._path, ignore_errors=True)
                self._path = None


def _open_folders(top: Path) -> None:
    """Some tools lock their folders against their own user (Go's module cache)."""
    with suppress(OSError):
        os.chmod(top, stat.S_IRWXU)
    for folder, names, _ in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, stat.S_IRWXU)
