"""Which names git's ignore files leave out for certain: of their patterns, only the plain ones are believed."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.matchers.path_patterns import COST, PathPattern, PathPatterns, Spend, lines_of, path_pattern
from ci_agent.text_files import read_regular_file

IGNORE_FILE: Final = ".gitignore"
_FILE: Final = 30
"""To read one takes as long as to see this many entries of a folder."""
_MAX_BYTES: Final = 64_000

_ODD: Final = re.compile(r"[?\\\[\]]|[^\S ]|\*\*\*")


class Ignoring(NamedTuple):
    """The patterns of one ignore file."""

    folder: str
    """Where it stands, seen from the top: empty, or with a slash at its end."""
    files: PathPatterns
    """Paths, seen from there, that it leaves out whatever they are."""
    folders: PathPatterns
    """The same, where they are folders."""
    kept: PathPatterns
    """Names of what it may take in again."""


def read_ignoring(file: Path, folder: str, budget: DiskBudget) -> Ignoring | None:
    """None when there is none; where it cannot be read, it may take in everything. Each is read once."""
    question = ("ignore file", file)
    if question not in budget.facts:
        budget.facts[question] = _read(file, budget)
    found = budget.facts[question]
    return found._replace(folder=folder) if isinstance(found, Ignoring) else None


def _read(file: Path, budget: DiskBudget) -> Ignoring | None:
    budget.spend_entries(_FILE)
    try:
        text = "" if file.is_symlink() else read_regular_file(file, _MAX_BYTES).decode()
        budget.spend_entries(COST * text.count("\n"))
        return _parsed(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return _parsed("!*")


def is_ignored(path: str, rules: Sequence[Ignoring], budget: DiskBudget, *, is_folder: bool) -> bool:
    """Whether a path, seen from the top, is left out by one file and taken in again by none."""
    spend, name = budget.spend_entries, path.rpartition("/")[2].casefold()
    left_out = any(_leaves_out(rule, path, spend, is_folder=is_folder) for rule in rules)
    return left_out and not any(rule.kept.fit((name,), spend) for rule in rules)


def _leaves_out(rule: Ignoring, path: str, spend: Spend, *, is_folder: bool) -> bool:
    names = path[len(rule.folder) :].split("/")
    return rule.files.fit(names, spend) or (is_folder and rule.folders.fit(names, spend))


@lru_cache(maxsize=64)
def _parsed(text: str) -> Ignoring:
    """ValueError: it has too many patterns to be asked within a short time."""
    files: list[PathPattern] = []
    folders: list[PathPattern] = []
    kept: list[PathPattern] = []
    for line in lines_of(text):
        pattern = line.removesuffix("\r").rstrip(" ")
        if pattern.startswith("!"):
            kept.append(path_pattern(_kept_name(pattern[1:])))
        elif pattern.strip("/") and not pattern.startswith("#") and not _ODD.search(pattern):
            (folders if pattern.endswith("/") else files).append(_left_out(pattern.rstrip("/")))
    return Ignoring("", PathPatterns(files), PathPatterns(folders), PathPatterns(kept))


def _kept_name(pattern: str) -> str:
    name = pattern.rstrip("/").rpartition("/")[2].casefold()
    return "*" if not name or name == "**" or _ODD.search(name) else name


def _left_out(pattern: str) -> PathPattern:
    """A slash at the beginning or in the middle ties a pattern to the folder of its file."""
    return path_pattern(pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}")
