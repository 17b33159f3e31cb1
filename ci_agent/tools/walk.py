"""Everything beneath a folder in a fixed order, without what .gitignore leaves out and without following a link."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.file_access import FileAccess, open_folder
from ci_agent.tools.ignore import MAX_IGNORE_BYTES, IgnoreFile, is_ignored, parse_ignore_file
from ci_agent.tools.text_stream import read_at_most

MAX_DEPTH = 200
"""Folders nested deeper are not entered: no project has them."""

MAX_FOLDER_ENTRIES = 100_000
"""What a folder holds beyond that is passed by."""

EntryKind: TypeAlias = Literal["file", "folder", "link", "other"]

_IGNORE_NAME = ".gitignore"
_REPOSITORY_NAME = ".git"
_READ_IGNORE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    """Relative to where the walk began; bytes that are not UTF-8 as lone surrogates (PEP 383)."""
    kind: EntryKind


@dataclass(frozen=True, slots=True)
class _Walk:
    files: FileAccess
    start: Path
    prefix: bytes
    """The start as seen from the topmost folder whose .gitignore counts: empty, or with a slash at its end."""
    cancel: CancelToken
    unlisted: list[str]


Ignores: TypeAlias = tuple[tuple[int, IgnoreFile], ...]
"""The .gitignore files that count, the innermost first, each with how much of a path from the top it does not see."""


def walk(files: FileAccess, start: Path, cancel: CancelToken, unlisted: list[str]) -> Iterator[Entry]:
    """Depth first, names in order, a folder before what is in it; `.git` is left out wherever it is.

    The .gitignore of every folder counts, and those above the start up to the workspace (or, outside of it, up to
    the repository). Folders that cannot be looked into, or not to their end, are added to `unlisted`; ToolError when
    the start cannot be.
    """
    top = _topmost(files, start)
    above = start.relative_to(top).parts
    ignores: Ignores = ()
    for depth in range(len(above)):
        folder = Path(top, *above[:depth])
        ignores = _with_ignore_file(files, folder, len(_as_prefix(above[:depth])), ignores)
    yield from _walk_folder(_Walk(files, start, _as_prefix(above), cancel, unlisted), "", 0, ignores)


def _topmost(files: FileAccess, start: Path) -> Path:
    if files.workspace.contains(start):
        return files.workspace.root
    repositories = (folder for folder in (start, *start.parents) if os.path.lexists(folder / _REPOSITORY_NAME))
    return next(repositories, start)


def _as_prefix(parts: tuple[str, ...]) -> bytes:
    return b"".join(os.fsencode(part) + b"/" for part in parts)


def _with_ignore_file(files: FileAccess, folder: Path, start: int, ignores: Ignores) -> Ignores:
    with open_folder(files, folder) as descriptor:
        ignore_file = _read_ignore_file(descriptor)
    return ((start, ignore_file), *ignores) if ignore_file else ignores


def _walk_folder(walk: _Walk, folder: str, depth: int, ignores: Ignores) -> Iterator[Entry]:
    with open_folder(walk.files, walk.start / folder) as descriptor:
        entries = sorted(_entries(descriptor, folder), key=lambda entry: entry.path)
        if len(entries) > MAX_FOLDER_ENTRIES:
            walk.unlisted.append(folder)
        ignore_file = (
            _read_ignore_file(descriptor) if any(entry.path == folder + _IGNORE_NAME for entry in entries) else None
        )
    if ignore_file:
        ignores = ((len(walk.prefix) + len(os.fsencode(folder)), ignore_file), *ignores)
    for entry in entries:
        walk.cancel.raise_if_cancelled()
        if is_ignored(walk.prefix + os.fsencode(entry.path), ignores, is_folder=entry.kind == "folder"):
            continue
        yield entry
        if entry.kind == "folder":
            yield from _walk_below(walk, entry.path + "/", depth + 1, ignores)


def _walk_below(walk: _Walk, folder: str, depth: int, ignores: Ignores) -> Iterator[Entry]:
    if depth > MAX_DEPTH:
        walk.unlisted.append(folder)
        return
    try:
        yield from _walk_folder(walk, folder, depth, ignores)
    except ToolError:
        walk.unlisted.append(folder)


def _entries(descriptor: int, folder: str) -> list[Entry]:
    with os.scandir(descriptor) as entries:
        seen = islice(entries, MAX_FOLDER_ENTRIES + 1)
        return [Entry(folder + entry.name, _kind(entry)) for entry in seen if entry.name != _REPOSITORY_NAME]


def _kind(entry: "os.DirEntry[str]") -> EntryKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _read_ignore_file(folder: int) -> IgnoreFile | None:
    try:
        descriptor = os.open(_IGNORE_NAME, _READ_IGNORE, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return parse_ignore_file(read_at_most(file, MAX_IGNORE_BYTES)) if regular else None
