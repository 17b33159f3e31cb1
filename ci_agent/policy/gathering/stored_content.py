"""Whether a file holds what git has stored of it, so that `git diff` prints nothing, whatever times and inodes say."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.text_files import read_regular_file

MAX_BYTES: Final = 256_000
"""Of one file."""
_SHA1_BYTES: Final = 20
_CONVERTS: Final = (b"filter", b"encoding")
"""Attributes by which git stores something else than the file holds. To others only CRs and `$Id` matter."""
_ELSEWHERE: Final = (b"attributesfile", b"[include")
"""Settings by which attributes may stand in other files."""
STEERING: Final = frozenset(
    ("XDG_CONFIG_HOME", "GIT_ATTR_SOURCE", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_PARAMETERS")
)
"""Variables that lead git to other settings or attributes."""
_SYSTEM: Final = tuple(map(Path, ("/etc", "/usr/local/etc", "/opt/homebrew/etc")))


class _UnknownError(Exception):
    """A file cannot be read, or is a link."""


def holds_stored(top: Path, git_folder: Path, name: str, stored: bytes, home: Path | None) -> bool:
    """`stored`: the name of the object that the index has for the file."""
    try:
        data = read_regular_file(top / name, MAX_BYTES)
        plain = b"\r" not in data and b"$Id" not in data
        return plain and _object_name(data, len(stored)) == stored and _is_kept(top, git_folder, name, home)
    except (OSError, ValueError, _UnknownError):
        return False


def _object_name(data: bytes, size: int) -> bytes:
    new = hashlib.new("sha1" if size == _SHA1_BYTES else "sha256", usedforsecurity=False)
    new.update(b"blob %d\0%b" % (len(data), data))
    return new.digest()


def _is_kept(top: Path, git_folder: Path, name: str, home: Path | None) -> bool:
    """No attribute makes git store another content."""
    if home is None or (git_folder / "commondir").exists():
        return False
    attributes = b"".join(map(_content, _attribute_files(top, git_folder, name, home)))
    settings = b"".join(map(_content, _setting_files(git_folder, home))).lower()
    return not any(word in attributes for word in _CONVERTS) and not any(word in settings for word in _ELSEWHERE)


def _attribute_files(top: Path, git_folder: Path, name: str, home: Path) -> Iterator[Path]:
    yield from (top / folder / ".gitattributes" for folder in Path(name).parents)
    yield git_folder / "info/attributes"
    yield home / ".config/git/attributes"
    yield from (folder / "gitattributes" for folder in _SYSTEM)


def _setting_files(git_folder: Path, home: Path) -> Iterator[Path]:
    yield from (git_folder / "config", git_folder / "config.worktree", home / ".gitconfig", home / ".config/git/config")
    yield from (folder / "gitconfig" for folder in _SYSTEM)


def _content(file: Path) -> bytes:
    if os.path.islink(file):
        raise _UnknownError
    try:
        return read_regular_file(file, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""
