"""A second copy of a journal that no command can reach, for when one has damaged or removed the first."""

import os
import tempfile
from contextlib import suppress


class SpareCopy:
    """A file without a name. It ends with the process: what a killed run leaves is its journal.

    Nothing depends on it, so that no failure of its own ends a run: the copy is then given up.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._is_whole = True

    def append(self, line: bytes) -> None:
        if not self._is_whole:
            return
        try:
            if self._descriptor is None:
                self._descriptor = _nameless_file()
            self._is_whole = os.write(self._descriptor, line) == len(line)
        except OSError:
            self._is_whole = False

    def lines(self) -> list[bytes]:
        """All that was appended, each line with its end; empty when there is no whole copy. Raises OSError."""
        if self._descriptor is None or not self._is_whole:
            return []
        with open(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return file.readlines()

    def close(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):  # it is closed nevertheless
                os.close(self._descriptor)
        self._descriptor, self._is_whole = None, False


def _nameless_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
