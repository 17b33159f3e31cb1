"""What git tracks: the top of a working tree, and the names in its index."""

import os
import re
import stat
import struct
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from ci_agent.policy.gathering.stored_content import holds_stored
from ci_agent.text_files import read_regular_file

_HEADER: Final = struct.Struct(">4sII")
_HASH_SIZES: Final = (20, 32)
_BEFORE_HASH: Final = 40
_MAX_BYTES: Final = 64_000_000
_MAX_LINK_BYTES: Final = 8_192
_EXTENDED: Final = 0x4000
_UNUSUAL: Final = 0x70
"""Of the first byte of an entry's flags: further flags, and the stage of an unfinished merge."""
_HEAD: Final = re.compile(r"ref: *refs/[^\0\n]+|[0-9a-f]{40}|[0-9a-f]{64}")
_STAT: Final = struct.Struct(">IIIIII")


def top_of(folder: Path) -> Path | None:
    """The working tree that a folder is in; None when it is in none."""
    # A command asks several times, and there may be many: texts are looked at, for a Path of each takes far longer.
    above, at = "", str(folder)
    while at != above:
        if os.path.lexists(os.path.join(at, ".git")):
            return Path(at)
        above, at = at, os.path.dirname(at)
    return None


def is_repository(top: Path) -> bool:
    """Whether git takes the folder for a working tree's top: otherwise it looks further up."""
    folder = git_folder(top)
    try:
        head = read_regular_file(folder / "HEAD", _MAX_LINK_BYTES).decode()
    except (OSError, ValueError):
        return False
    holds_objects = (folder / "objects").is_dir() and (folder / "refs").is_dir()
    return _HEAD.fullmatch(head.strip()) is not None and (holds_objects or (folder / "commondir").is_file())


def tracked_names(top: Path) -> tuple[str, ...] | None:
    """The paths in the index of a working tree, relative to it; None when they cannot be told."""
    index = git_folder(top) / "index"
    try:
        status = index.stat()
    except FileNotFoundError:
        return ()
    except OSError:
        return None
    return _read_index(str(index), (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


def git_folder(top: Path) -> Path:
    """`.git`, or what it says when it is a file, as in a worktree or a submodule."""
    try:
        text = read_regular_file(top / ".git", _MAX_LINK_BYTES).decode()
    except (OSError, ValueError):
        return top / ".git"
    return top / text.removeprefix("gitdir:").strip()


@lru_cache(maxsize=4)
def _read_index(path: str, state: tuple[int, int, int, int]) -> tuple[str, ...] | None:
    """`state`, the size first, stands for the content: git replaces the file whenever it changes."""
    if state[0] > _MAX_BYTES:
        return None
    try:
        data = read_regular_file(path, _MAX_BYTES)
    except (OSError, ValueError):
        return None
    return next((names for size in _HASH_SIZES if (names := parse_index(data, size)) is not None), None)


def parse_index(data: bytes, hash_size: int) -> tuple[str, ...] | None:
    """The names in an index of versions 2 to 4 (git's `index-format`); None for one that is not whole in itself."""
    try:
        signature, version, count = _HEADER.unpack_from(data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            return None
        names, _, end = _entries(data, version, count, hash_size)
    except (struct.error, ValueError, IndexError):
        return None
    is_whole = data[end : end + 4] not in (b"link", b"sdir") and not any(name.endswith(b"/") for name in names)
    if not is_whole or any(left > right for left, right in pairwise(names)):
        return None
    return tuple(os.fsdecode(name) for name in names)


def is_unchanged(top: Path, name: str, home: Path | None = None) -> bool:
    """Whether a file is for certain as the index has it, so that `git diff` prints nothing of it.

    Git looks at the content where it finds less than this: another time, size or inode, and a file that was changed in
    the second in which the index was written, or after it. So it is after a checkout. With `home`, where the user's
    settings are, the content is compared here too.
    """
    index = git_folder(top) / "index"
    try:
        written, now = index.stat(), os.lstat(top / name)
    except (OSError, ValueError):
        return False
    entries = _read_entries(str(index), (written.st_size, written.st_mtime_ns, written.st_ctime_ns, written.st_ino))
    known = entries.get(os.fsencode(name))
    if known is None or not stat.S_ISREG(now.st_mode):
        return False
    as_stored = _STAT.pack(
        *(field & 0xFFFFFFFF for field in _seconds(now.st_ctime_ns) + _seconds(now.st_mtime_ns)),
        now.st_ino & 0xFFFFFFFF,
        now.st_size & 0xFFFFFFFF,
    )
    is_older = now.st_mtime_ns // 1_000_000_000 < written.st_mtime_ns // 1_000_000_000
    if is_older and known[0] == as_stored:
        return True
    attributes = (f"{folder}/.gitattributes".removeprefix("./") for folder in Path(name).parents)
    return not _any_is_gone(top, attributes) and holds_stored(top, git_folder(top), name, known[1], home)


def _any_is_gone(top: Path, names: Iterable[str]) -> bool:
    """What the index has and the disk does not, git reads from the index."""
    tracked = tracked_names(top)
    return tracked is None or any(name in tracked and not os.path.lexists(top / name) for name in names)


def _seconds(time_ns: int) -> tuple[int, int]:
    return time_ns // 1_000_000_000, time_ns % 1_000_000_000


@lru_cache(maxsize=4)
def _read_entries(path: str, state: tuple[int, int, int, int]) -> dict[bytes, tuple[bytes, bytes]]:
    """Times, inode and size of each entry of the usual kind, and the object that is its content, by its name."""
    names = _read_index(path, state)
    data = Path(path).read_bytes() if names is not None else b""
    size = next((size for size in _HASH_SIZES if names is not None and parse_index(data, size) == names), None)
    if size is None:
        return {}
    _, version, count = _HEADER.unpack_from(data)
    found, starts, _ = _entries(data, version, count, size)
    return {
        name: (
            data[at : at + 16] + data[at + 20 : at + 24] + data[at + 36 : at + 40],
            data[at + _BEFORE_HASH : at + _BEFORE_HASH + size],
        )
        for name, at in zip(found, starts, strict=True)
        if not data[at + _BEFORE_HASH + size] & _UNUSUAL
    }


def _entries(data: bytes, version: int, count: int, hash_size: int) -> tuple[list[bytes], list[int], int]:
    """Names, where each entry begins, and where the last ends."""
    names: list[bytes] = []
    starts: list[int] = []
    at, before = _HEADER.size, b""
    for _ in range(count):
        start = at
        starts.append(start)
        at += _BEFORE_HASH + hash_size
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            dropped, at = _varint(data, at)
            kept = before[: len(before) - dropped]
        else:
            kept = b""
        end = data.index(b"\0", at)
        before = kept + data[at:end]
        names.append(before)
        # Entries of older versions are filled up to a multiple of eight bytes.
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
    return names, starts, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number as in packs: each further byte stands for one more than its seven bits say."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
