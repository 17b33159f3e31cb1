"""Which names git's ignore files leave out for certain: of their patterns, only the plain ones are believed."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.text_files import read_regular_file

IGNORE_FILE: Final = ".gitignore"
COST: Final = 30
"""To read one takes as long as to see this many entries of a folder."""

_MAX_BYTES: Final = 256_000
_MAX_STARS: Final = 3
"""Of a pattern with more, nobody may wait for the answer."""

_ODD: Final = re.compile(r"[\\\[\]]|[^\S ]|\*\*\*")


class Ignoring(NamedTuple):
    """The patterns of one ignore file."""

    folder: str
    """Where it stands, seen from the top: empty, or with a slash at its end."""
    files: re.Pattern[str]
    """Paths, seen from there, that it leaves out whatever they are."""
    folders: re.Pattern[str]
    """The same, where they are folders."""
    kept: re.Pattern[str]
    """Names of what it may take in again."""


def read_ignoring(file: Path, folder: str) -> Ignoring | None:
    """None when there is none; where it cannot be read, it may take in everything."""
    try:
        text = "" if file.is_symlink() else read_regular_file(file, _MAX_BYTES).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        text = "!*"
    return _parsed(text)._replace(folder=folder)


def is_ignored(path: str, rules: list[Ignoring], *, is_folder: bool) -> bool:
    """Whether a path, seen from the top, is left out by one file and taken in again by none."""
    name = path.rpartition("/")[2]
    left_out = any(
        rule.files.fullmatch(path, len(rule.folder)) or (is_folder and rule.folders.fullmatch(path, len(rule.folder)))
        for rule in rules
    )
    return left_out and not any(rule.kept.fullmatch(name.casefold()) for rule in rules)


@lru_cache(maxsize=64)
def _parsed(text: str) -> Ignoring:
    files: list[str] = []
    folders: list[str] = []
    kept: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines():
        pattern = line.rstrip(" \r")
        if pattern.startswith("!"):
            kept.append(_kept_name(pattern[1:]))
        elif pattern and not pattern.startswith("#") and not _ODD.search(pattern) and _is_short(pattern):
            (folders if pattern.endswith("/") else files).append(_expression(pattern.rstrip("/")))
    return Ignoring("", *[re.compile("|".join(each) or "(?!)") for each in (files, folders, kept)])


def _is_short(pattern: str) -> bool:
    return pattern.strip("/") != "" and pattern.count("*") <= _MAX_STARS


def _kept_name(pattern: str) -> str:
    name = pattern.rstrip("/").rpartition("/")[2].casefold()
    return ".*" if _ODD.search(name) or not _is_short(name) else _in_name(name)


def _in_name(text: str) -> str:
    """`*` and `?` as they match within one name."""
    return "".join("[^/]*" if char == "*" else "[^/]" if char == "?" else re.escape(char) for char in text)


def _expression(pattern: str) -> str:
    """A slash at the beginning or in the middle ties a pattern to the folder of its file."""
    if "/" not in pattern:
        return "(?:.*/)?" + _in_name(pattern)
    parts = list(_parts(pattern.removeprefix("/").split("/")))
    return "".join(parts)


def _parts(names: list[str]) -> Iterator[str]:
    for at, name in enumerate(names, start=1):
        is_last = at == len(names)
        if name == "**":
            yield ".+" if is_last else "(?:.*/)?"
        else:
            yield _in_name(name) + ("" if is_last else "/")
