"""The whole output of a call in a file, for a person who looks into it later."""

import errno
import os
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Protocol

from ci_agent.json_types import JsonObject

MAX_SPILL_BYTES = 1 << 30
"""An endless output must not fill the disk."""


class TextFilter(Protocol):
    """Takes out what must not be written down, however the text is cut."""

    def feed(self, chunk: str) -> str:
        """What can be written by now."""

    def flush(self) -> str:
        """The rest."""


class AsItIs:
    """Takes out nothing."""

    def feed(self, chunk: str) -> str:
        return chunk

    def flush(self) -> str:
        return ""


NewFilter = Callable[[], TextFilter]


class Spill:
    """Takes chunks as they come. A full disk ends the file, never the call."""

    def __init__(
        self,
        file: FileIO | None,
        details: JsonObject,
        room: int = MAX_SPILL_BYTES,
        new_filter: NewFilter = AsItIs,
    ) -> None:
        self._file = file
        self._room = room
        self._decoder = getincrementaldecoder("utf-8")(
            "surrogateescape"
        )  # bytes that are no text come out as they came
        self._filter = new_filter()
        self.details = details
        """What there is of `output_file`, its path, and `output_file_problem`, why it does not hold everything."""

    def write(self, chunk: bytes) -> None:
        if self._file is not None:
            self._write(self._filter.feed(self._decoder.decode(chunk)))

    def close(self) -> None:
        """Write what had been held back."""
        if self._file is not None:
            self._write(self._filter.feed(self._decoder.decode(b"", final=True)) + self._filter.flush())

    def _write(self, text: str) -> None:
        chunk = text.encode("utf-8", "surrogateescape")
        if self._file is None or not chunk:
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
def open_spill(
    folder: Path | None, prefix: str, max_bytes: int = MAX_SPILL_BYTES, new_filter: NewFilter = AsItIs
) -> Iterator[Spill]:
    """A new private file in the folder, whose path must be free of links; with None, one that takes everything and
    keeps nothing."""
    if folder is None:
        yield Spill(None, {})
        return
    try:
        descriptor, path = _new_file(folder, prefix)
    except OSError as error:
        yield Spill(None, {"output_file_problem": f"{folder}: {error.strerror}"})
        return
    with FileIO(descriptor, "w") as file:
        spill = Spill(file, {"output_file": path}, max_bytes, new_filter)
        try:
            yield spill
        finally:
            spill.close()


def _new_file(folder: Path, prefix: str) -> tuple[int, str]:
    """Of a random name, opened exclusively, mode 0600: nobody can have prepared it, and nobody else can read it."""
    if os.path.realpath(folder) != str(folder):
        raise OSError(errno.ELOOP, "it leads somewhere else by now")
    return tempfile.mkstemp(prefix=prefix, suffix=".log", dir=folder)


def _write_all(file: FileIO, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]
