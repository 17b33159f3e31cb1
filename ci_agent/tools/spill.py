"""The whole output of a call in a file, for a person who looks into it later."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from ci_agent.json_types import JsonObject

MAX_SPILL_BYTES = 1 << 30
"""An endless output must not fill the disk."""


class Spill:
    """Takes chunks as they come. A full disk ends the file, never the call."""

    def __init__(self, file: FileIO | None, details: JsonObject, room: int = MAX_SPILL_BYTES) -> None:
        self._file = file
        self._room = room
        self.details = details
        """What there is of `output_file`, its path, and `output_file_problem`, why it does not hold everything."""

    def write(self, chunk: bytes) -> None:
        if self._file is None:
            return
        try:
            _write_all(self._file, chunk[: self._room])
        except OSError as error:
            self._stop(str(error.strerror))
        self._room -= min(len(chunk), self._room)
        if self._room == 0:
            self._stop("the output is longer than the file may be")

    def _stop(self, problem: str) -> None:
        self._file = None
        self.details = {"output_file_problem": problem, **self.details}


@contextmanager
def open_spill(folder: Path | None, prefix: str, max_bytes: int = MAX_SPILL_BYTES) -> Iterator[Spill]:
    """A new private file in the folder; with None, one that takes everything and keeps nothing."""
    if folder is None:
        yield Spill(None, {})
        return
    try:
        # A random name, opened exclusively, mode 0600: nobody can have prepared it, and nobody else can read it.
        descriptor, path = tempfile.mkstemp(prefix=prefix, suffix=".log", dir=folder)
    except OSError as error:
        yield Spill(None, {"output_file_problem": f"{folder}: {error.strerror}"})
        return
    with FileIO(descriptor, "w") as file:
        yield Spill(file, {"output_file": path}, max_bytes)


def _write_all(file: FileIO, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]
