"""The folder that tools may touch, and the one interpretation of a path that policy and tools share."""

import errno
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from ci_agent.errors import ConfigurationError

MAX_PATH_BYTES = 4096
"""Linux's PATH_MAX; longer ones cannot be opened anyway."""

_JOINER = "\u200d"


class InvalidPathError(ValueError):
    """The text is no path that anybody means: empty, too long, or with characters that hide what it names."""


@dataclass(frozen=True, slots=True)
class Workspace:
    root: Path
    """Absolute and free of symlinks."""

    def resolve(self, text: str, *, start: Path | None = None) -> Path:
        """Where a path given by a model leads: absolute, symlinks followed in kernel order (a link first, then `..`).

        Relative paths start at `start`, or at the root. What does not exist yet resolves through its nearest
        existing parent. The result may lie outside the workspace: judging that is the policy's business.
        Raises InvalidPathError for text with control, bidi or invisible characters, and for link loops.
        """
        check_path_text(text)
        try:
            resolved = os.path.realpath(os.path.join(start or self.root, text))
            _refuse_link_loop(resolved)
        except OSError as error:
            raise InvalidPathError(f"{text!r} cannot be resolved: {os.strerror(error.errno or 0)}") from error
        return Path(resolved)

    def contains(self, path: Path) -> bool:
        """Whether a resolved path is the root or lies beneath it."""
        names = self.root.parts
        return path.parts[: len(names)] == names

    def display(self, path: Path) -> str:
        """The path as a person in the workspace would write it: relative inside, absolute outside."""
        return str(path.relative_to(self.root)) if self.contains(path) else str(path)


def open_workspace(folder: str | Path) -> Workspace:
    """The workspace at an existing folder; ConfigurationError when it is none."""
    try:
        root = Path(folder).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigurationError(f"workspace {str(folder)!r} does not exist or cannot be entered") from error
    if not root.is_dir():
        raise ConfigurationError(f"workspace {str(folder)!r} is not a folder")
    return Workspace(root)


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


def _refuse_link_loop(resolved: str) -> None:
    # realpath leaves a loop in place without a word; everything else on the way to its answer is free of links.
    try:
        os.stat(resolved)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
