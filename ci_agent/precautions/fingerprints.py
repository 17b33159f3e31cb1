"""How files stand that no tool may change: taken before a run, and compared when it is over."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

from ci_agent.errors import system_refusal

Fingerprints: TypeAlias = Mapping[Path, str]

MAX_FILES_OF_A_FOLDER = 1_000
MAX_BYTES_OF_A_FILE = 64 * 1024 * 1024
"""Of a longer file its beginning, its length and its time of change count, the one that no program can set."""

_CHUNK_BYTES = 1024 * 1024
_OWN_OUTPUT = (1, 2)


def take_fingerprints(paths: Iterable[Path]) -> Fingerprints:
    """Of files, whether they exist or not, and of what lies in folders; not of those that this process writes to as
    its stdout or stderr. OSError when the system gives out: what could not be looked at has not changed by that."""
    return {found: _fingerprint(found) for path in paths for found in [path, *_files_in(path)] if not _is_output(found)}


def changed_since(before: Fingerprints, paths: Iterable[Path]) -> list[Path]:
    """What stands differently now, came or went, in order."""
    now = take_fingerprints(paths)
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def _files_in(path: Path) -> list[Path]:
    if path.is_symlink():
        return []
    try:
        return [path / name for name in sorted(os.listdir(path))[:MAX_FILES_OF_A_FOLDER]]
    except OSError as error:
        _raise_if_refused(error)
        return []


def _is_output(path: Path) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return any(_is_open_as(descriptor, status) for descriptor in _OWN_OUTPUT)


def _is_open_as(descriptor: int, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), status)
    except OSError:
        return False


def _fingerprint(path: Path) -> str:
    """What kind of thing it is, where a link leads, and of a file the digest of its content.

    Its name may lead to something else by now.
    """
    try:
        return f"link to {os.readlink(path)}"
    except OSError:
        pass
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        _raise_if_refused(error)
        return f"cannot be opened: {os.strerror(error.errno or 0)}"
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return f"kind {stat.S_IFMT(status.st_mode):o}"
    with open(descriptor, "rb") as file:
        changed = f", changed {status.st_ctime_ns}" if status.st_size > MAX_BYTES_OF_A_FILE else ""
        return f"file of {status.st_size} bytes, {_digest(file)}{changed}"


def _raise_if_refused(error: OSError) -> None:
    if system_refusal(error) is not None:
        raise error


def _digest(file: BufferedReader) -> str:
    digest = hashlib.sha256()
    for _ in range(MAX_BYTES_OF_A_FILE // _CHUNK_BYTES):
        digest.update(file.read(_CHUNK_BYTES))
    return digest.hexdigest()
