"""The journal of a run: one line for each thing that happens, on disk before the next."""

import fcntl
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from ci_agent.errors import BusyError, ConfigurationError, RecordError
from ci_agent.json_types import JsonObject
from ci_agent.transcript.journal_lines import NO_RECORD, JournalContents, encode_line, line_hash, read_lines
from ci_agent.transcript.room import Room
from ci_agent.transcript.spare_copy import SpareCopy

JOURNAL_SUFFIX = ".journal"

PRODUCT_SUFFIX = ".jsonl"
"""A transcript of this name is the journal itself; no document is made of it."""

MAX_RECORD_BYTES = 1024 * 1024 * 1024
"""Larger files are not read: no run writes as much, and they would be held in memory."""

_CLOSED = -1


class Journal:
    """An open journal. Each record is one `write`; after a write that failed nothing more is written.

    Its lock on the file is the operating system's: it ends with the process, however that ends.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self.path = path
        self.on_record: Callable[[str], None] | None = None
        """Gets each line, with its end, once it has been written; it must not raise."""
        self.records = 0
        self.head = NO_RECORD
        self._descriptor = descriptor
        self._written = hashlib.sha256()
        self._written_bytes = 0
        self._spare = SpareCopy()
        self._room = Room(descriptor)
        self._broken: str | None = None
        self._lock = threading.Lock()

    def append(self, kind: str, fields: JsonObject) -> int:
        """Write one record and return its number; when this returns, the record survives the end of this process.

        `fields` are plain JSON. Raises RecordError when it cannot be written, and from then on always;
        ConfigurationError when that happens to the very first one, before anything has begun.
        """
        with self._lock:
            self._refuse_when_broken()
            seq = self.records + 1
            line = encode_line({"seq": seq, "prev": self.head, "kind": kind, **fields})
            self._broken = "a write to it was interrupted"
            self._write(line)
            self._written.update(line)
            self._spare.append(line)
            self._written_bytes += len(line)
            self._room.keep(self._written_bytes)
            self.records, self.head, self._broken = seq, line_hash(line), None
            if self.on_record is not None:
                self.on_record(line.decode())
            return seq

    def sync(self) -> None:
        """Make what was written survive a power failure too. Raises RecordError."""
        with self._lock:
            self._refuse_when_broken()
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise self._failure(os.strerror(error.errno or 0)) from error

    def read(self) -> JournalContents:
        """What was written, also when somebody has removed or changed the file. Raises RecordError."""
        with self._reopened() as file:
            return read_lines(self._lines_in(file))

    def lines(self) -> list[bytes]:
        """The same as bytes, each line with its end."""
        with self._reopened() as file:
            return [*self._lines_in(file)]

    def is_intact(self) -> bool:
        """Whether the file holds what this journal wrote and nothing else, and is still found under its name.
        Raises RecordError when it cannot be read."""
        with self._reopened() as file:
            return self._holds_what_was_written(file) and self._is_found()

    @property
    def is_short_of_room(self) -> bool:
        """Whether the disk is full, and what is left of the room that was kept is needed for the end of the record."""
        return self._room.is_short

    def release_room(self) -> None:
        """For what is written in its place. Nothing is appended any more."""
        self._room.release()

    def empty(self) -> None:
        """Remove what an earlier run left. The lock stays: there is no moment in which another run could take it."""
        os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Let the file and its lock go. To be called in any case, also after a failure; twice does no harm."""
        if self._descriptor != _CLOSED:
            self._room.release()
            with suppress(OSError):  # it is closed nevertheless, and what must not be lost has been synced
                os.close(self._descriptor)
            self._descriptor = _CLOSED
            self._spare.close()

    def _lines_in(self, file: BufferedReader) -> Iterable[bytes]:
        """Those of the spare copy when the file was changed; without a copy, whatever the file holds now."""
        if not self.records or self._holds_what_was_written(file):
            return file
        return self._spare.lines() or file

    def _holds_what_was_written(self, file: BufferedReader) -> bool:
        digest = hashlib.file_digest(file, "sha256")
        file.seek(0)
        return digest.digest() == self._written.digest()

    def _is_found(self) -> bool:
        folder = self.path.parent
        try:
            return os.path.realpath(folder) == str(folder) and is_same_file(self._descriptor, self.path)
        except OSError:  # its folder was closed, or replaced
            return False

    @contextmanager
    def _reopened(self) -> Iterator[BufferedReader]:
        try:
            with open(os.dup(self._descriptor), "rb") as file:
                file.seek(0)
                yield file
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise RecordError(f"the run's journal {str(self.path)!r} cannot be read back: {why}") from error

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise self._failure(os.strerror(error.errno or 0)) from error
        if written != len(line):
            raise self._failure(f"only {written} of {len(line)} bytes could be written")

    def _refuse_when_broken(self) -> None:
        if self._broken is not None:
            raise self._failure(self._broken)

    def _failure(self, why: str) -> RecordError | ConfigurationError:
        self._broken = why
        kind = RecordError if self.records else ConfigurationError
        return kind(f"the run's journal {str(self.path)!r} cannot be written: {why}")


def open_journal_file(path: Path, mode: int) -> Journal:
    """Open or create the file and lock it, whatever it holds.

    Raises BusyError when a living run holds it, ConfigurationError when it cannot be opened, or when it is
    something that no run has made: a link, a special file, somebody else's.
    """
    try:
        while (journal := _open_and_lock(path, mode)) is None:
            pass  # between opening and locking the run that held it has ended and removed it
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError) and path.parent.is_dir():  # as in /proc
            why = "no file can be made in that folder"
        raise ConfigurationError(f"cannot open the run's journal {str(path)!r} for writing: {why}") from error
    return journal


def read_journal(path: Path) -> JournalContents:
    """Read the journal of a run that has ended. BusyError when it has not, ConfigurationError when it is unreadable."""
    try:
        with open_record(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return read_lines(file)
    except BlockingIOError as error:
        raise BusyError(f"a run is still writing {str(path)!r}: wait for its end") from error
    except OSError as error:
        raise ConfigurationError(f"cannot read the journal {str(path)!r}: {os.strerror(error.errno or 0)}") from error


def open_record(path: Path) -> BufferedReader:
    """A journal or a document, opened for reading without waiting for anybody. Raises OSError, and ConfigurationError
    for what no run has written: a folder, a pipe, a device, more bytes than any record has."""
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115 - the caller closes it
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_RECORD_BYTES:
        return file
    file.close()
    why = "larger than 1 GiB" if stat.S_ISREG(status.st_mode) else "not a regular file"
    raise ConfigurationError(f"{str(path)!r} is no record of a run: it is {why}")


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the name still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _open_and_lock(path: Path, mode: int) -> Journal | None:
    """None when the file that was locked is no longer the one of that name."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode)
    try:
        _refuse_foreign(descriptor, path)
        _lock(descriptor, path)
        if is_same_file(descriptor, path):
            return Journal(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _refuse_foreign(descriptor: int, path: Path) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_uid != os.geteuid():
        raise ConfigurationError(
            f"{str(path)!r} is no journal that this user's runs have made: remove it, or name another transcript"
        )


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BusyError(f"another run is writing {str(path)!r}: wait for it, or name another transcript") from error
