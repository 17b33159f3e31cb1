"""The folder that tools may touch, and the one interpretation of a path that policy and tools share."""

import errno
import os
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from ci_agent.errors import ConfigurationError

MAX_PATH_BYTES = 4096
"""Linux's PATH_MAX; longer ones cannot be opened anyway."""

MAX_LINKS = 40
"""Linux's limit for one path (path_resolution(7))."""

KERNEL_FOLDERS = ("proc", "sys", "dev")
"""Folders of the root in which the kernel makes up files on the fly; what their links lead to depends on who asks."""

_KERNEL_PARTS = frozenset((name,) for name in KERNEL_FOLDERS)
_KERNEL_ROOTS = frozenset(f"/{name}" for name in KERNEL_FOLDERS)
_BENEATH_KERNEL_ROOTS = tuple(f"/{name}/" for name in KERNEL_FOLDERS)

_JOINER = "\u200d"


class InvalidPathError(ValueError):
    """The text is no path that anybody means: empty, too long, or with characters that hide what it names."""


@dataclass(frozen=True, slots=True)
class Workspace:
    root: Path
    """Absolute and free of symlinks."""

    def resolve(self, text: str, *, start: Path | None = None) -> Path:
        """Where a path given by a model leads: absolute, symlinks followed in kernel order (a link first, then `..`).

        Relative paths start at `start`, itself free of symlinks, or at the root. What does not exist yet resolves
        through its nearest existing parent. The result may lie outside the workspace: judging that is the policy's
        business. Raises InvalidPathError for text with control, bidi or invisible characters, and where nobody can
        tell where a path leads: link loops, places too deep to look at, folders that are closed and could be opened.
        """
        check_path_text(text)
        root = str(self.root)
        if text.startswith(f"{root}/"):
            # Nothing above the root can be a link: it need not be looked at again.
            return Path(_places(root, text[len(root) :], text)[-1])
        return Path(way(str(start or root), text)[-1])

    def contains(self, path: Path) -> bool:
        """Whether a resolved path is the root or lies beneath it."""
        return lies_in(path, self.root)

    def display(self, path: Path) -> str:
        """The path as a person in the workspace would write it: relative inside, absolute outside."""
        return str(path.relative_to(self.root)) if self.contains(path) else str(path)


def real_path(path: str | Path) -> Path:
    """Absolute, and free of symlinks as far as it exists; a loop of links is left as it is."""
    return Path(os.path.realpath(path))


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a path is the folder or lies beneath it, by their names; `path.parents` would make a Path of each."""
    names = folder.parts
    return path.parts[: len(names)] == names


def open_workspace(folder: str | Path) -> Workspace:
    """The workspace at an existing folder; ConfigurationError when it is none."""
    try:
        root = Path(folder).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigurationError(f"workspace {str(folder)!r} does not exist or cannot be entered") from error
    if not root.is_dir():
        raise ConfigurationError(f"workspace {str(folder)!r} is not a folder")
    return Workspace(root)


def way(start: str, text: str) -> list[str]:
    """Every place that a path passes, links included; the last is where it leads, free of symlinks.

    `start`: an absolute path without symlinks, where the text begins unless it is absolute. Raises InvalidPathError
    when a link loops, or when it is not known whether one stands on the way.
    """
    return _places("" if text.startswith("/") else start, text, text)


def _places(start: str, names: str, text: str) -> list[str]:
    """The way from a place without symlinks on, `names` being what is left of the text."""
    at, places = start.rstrip("/"), []
    pending, links = _reversed_names(names), 0
    while pending:
        name = pending.pop()
        if name == "..":
            at = at.rpartition("/")[0]
            continue
        above, at = at, f"{at}/{name}"
        places.append(at)
        target = _link_target(at, text)
        if target is not None:
            links += 1
            if links > MAX_LINKS:
                raise InvalidPathError(f"{text!r} cannot be resolved: {os.strerror(errno.ELOOP)}")
            pending += _reversed_names(target)
            at = "" if target.startswith("/") else above
    return [*places, at or "/"]


def is_kernel_path(path: Path) -> bool:
    return path.parts[1:2] in _KERNEL_PARTS


def enters_kernel_folder(start: Path, text: str) -> bool:
    """Whether the path, as it is written, leads through a folder of the kernel, perhaps on its way to somewhere else.

    What `/proc/self/cwd` means depends on who opens it, so such a path cannot be resolved beforehand.
    """
    try:
        return any(map(is_kernel_place, way(str(start), text)))
    except InvalidPathError:
        return True


def is_kernel_place(place: str) -> bool:
    """As `is_kernel_path`, for a place on a way."""
    return place.startswith(_BENEATH_KERNEL_ROOTS) or place in _KERNEL_ROOTS


def _reversed_names(text: str) -> list[str]:
    return [name for name in reversed(text.split("/")) if name not in ("", ".")]


def _link_target(path: str, text: str) -> str | None:
    """What a link says; None for anything else, and for nothing."""
    try:
        return os.readlink(path) if stat.S_ISLNK(os.lstat(path).st_mode) else None
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.EINVAL} or _has_no_such_name(error, path):
            return None
        if error.errno == errno.EACCES and not _is_own(os.path.dirname(path)):
            return None  # closed to this user, who cannot open it: no tool gets past
        raise InvalidPathError(f"{text!r} cannot be resolved: {os.strerror(error.errno or 0)}") from error


def _has_no_such_name(error: OSError, path: str) -> bool:
    """The last name is longer than any; whereas the end of a path that is too long as a whole may well be there."""
    return error.errno == errno.ENAMETOOLONG and len(os.fsencode(path)) < MAX_PATH_BYTES


def _is_own(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return False


def check_path_text(text: str) -> None:
    """Raise InvalidPathError for text that no honest path contains."""
    if not text:
        raise InvalidPathError("the path is empty")
    if text.isascii() and text.isprintable() and len(text) <= MAX_PATH_BYTES:
        return
    if len(text.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise InvalidPathError(f"the path is longer than {MAX_PATH_BYTES} bytes")
    for position, char in enumerate(text):
        if _hides_something(text, position):
            raise InvalidPathError(f"the path contains the invisible character U+{ord(char):04X}")


def _hides_something(text: str, position: int) -> bool:
    char = text[position]
    category = unicodedata.category(char)
    if char == _JOINER and 0 < position < len(text) - 1:
        return not (_is_emoji_part(text[position - 1]) and _is_emoji_part(text[position + 1]))
    return category in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} or (category == "Zs" and char != " ")


def _is_emoji_part(char: str) -> bool:
    return unicodedata.category(char) in {"So", "Sk"} or char == "\ufe0f"
