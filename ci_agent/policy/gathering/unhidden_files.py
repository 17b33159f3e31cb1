"""What a search comes to that passes by names with a dot: all others, and those that an ignore file takes in again."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, Entry, Listing, listing_of, read_folder
from ci_agent.policy.facts import ExecFact, Fact, FileFact, files_in
from ci_agent.policy.gathering.indexed_files import keeps_settings
from ci_agent.policy.matchers.path_patterns import COST, PathPatterns, lines_of, path_pattern
from ci_agent.policy.matchers.reach import Names, fold
from ci_agent.policy.words import Selection
from ci_agent.text_files import read_regular_file

IGNORE_FILES: Final = (".gitignore", ".ignore", ".rgignore")
STEERING: Final = frozenset({"RIPGREP_CONFIG_PATH", "XDG_CONFIG_HOME"})
"""Variables that lead the search to other settings."""

_MAX_BYTES: Final = 64_000
_FILE: Final = 30
"""To read an ignore file takes as long as to see this many entries of a folder."""

_UNSURE: Final = re.compile(r"[?\[\]{}\\]|[^\x20-\x7e]")


class _UnknownError(Exception):
    """What is taken in cannot be told."""


def unhidden_beneath(
    folder: Path, selection: Selection, budget: DiskBudget, home: Path | None
) -> list[tuple[Names, Listing]] | None:
    """As `walk`, but for what is hidden; None when that cannot be told.

    A `!` in an ignore file takes hidden names in: in those of the folders, of the ones above, and of the user.
    """
    if not selection.unhidden or budget.ignore_files_change or home is None:
        return None
    try:
        return _search(folder, selection, budget, _around(folder, budget, home))
    except _UnknownError:
        return None


def _search(
    folder: Path, selection: Selection, budget: DiskBudget, taken: tuple[PathPatterns, ...]
) -> list[tuple[Names, Listing]]:
    found: list[tuple[Names, Listing]] = []
    pending: list[tuple[Path, Names, tuple[PathPatterns, ...]]] = [(folder, (), taken)]
    while pending:
        path, above, patterns = pending.pop()
        listing = read_folder(path, budget)
        patterns += _taken_in(_ignore_files(path, listing), budget)
        kept = [entry for entry in listing.entries if _is_kept(entry, selection, patterns, budget)]
        found.append((above, listing_of(kept)))
        folders = (entry for entry in kept if entry.is_dir(follow_symlinks=False))
        pending += [(Path(entry.path), (*above, entry.name), patterns) for entry in folders]
    return found


def _is_kept(entry: Entry, selection: Selection, patterns: Sequence[PathPatterns], budget: DiskBudget) -> bool:
    name = entry.name
    if name.startswith(".") and not any(each.fit((fold(name),), budget.spend_entries) for each in patterns):
        return False
    left_out = selection.without if entry.is_dir(follow_symlinks=False) else selection.left_out
    return name not in left_out or entry.is_symlink()


def _ignore_files(path: Path, listing: Listing) -> list[Path]:
    names = {entry.name for entry in listing.entries}
    return [path / name for name in IGNORE_FILES if name in names] + ([path / ".git"] if ".git" in names else [])


def _around(folder: Path, budget: DiskBudget, home: Path) -> tuple[PathPatterns, ...]:
    """What is taken in by the files of the folders above, and by the settings of the user."""
    for settings in (home / ".gitconfig", home / ".config/git/config"):
        if "excludesfile" in _read(settings, budget).lower():
            raise _UnknownError
    above = [each / name for each in folder.parents for name in (*IGNORE_FILES, ".git")]
    return _taken_in([*above, home / ".config/git/ignore"], budget)


def _taken_in(files: Iterable[Path], budget: DiskBudget) -> tuple[PathPatterns, ...]:
    found: list[PathPatterns] = []
    for file in files:
        if file.name == ".git":
            if os.path.lexists(file) and not file.is_dir():
                raise _UnknownError
            file = file / "info/exclude"  # noqa: PLW2901 - what counts of a repository
        text = _read(file, budget)
        if "!" in text:
            found.append(_parsed(text, budget))
    return tuple(found)


def _parsed(text: str, budget: DiskBudget) -> PathPatterns:
    budget.spend_entries(COST * text.count("\n"))
    try:
        return _names_in(text)
    except ValueError as error:
        raise _UnknownError from error


@lru_cache(maxsize=64)
def _names_in(text: str) -> PathPatterns:
    """Single names: of a path that is taken in, any of its names may be. ValueError: they are too many."""
    taken = [line.strip(" \t\r")[1:] for line in lines_of(text) if line.lstrip(" \t\r").startswith("!")]
    # To ripgrep a lone `!` takes in everything.
    names = [fold(name) for path in taken for name in (path.strip("/").split("/") if path.strip("/ \t\r") else "*")]
    # What a search may read otherwise is taken for anything.
    return PathPatterns(path_pattern("*" if name == "**" or _UNSURE.search(name) else name) for name in names)


def _read(file: Path, budget: DiskBudget) -> str:
    """Empty when it is not there. Each is read once."""
    question = ("ignore file of a search", file)
    if question not in budget.facts:
        budget.facts[question] = _content(file, budget)
    found = budget.facts[question]
    if not isinstance(found, str):
        raise _UnknownError
    return found


def _content(file: Path, budget: DiskBudget) -> str | None:
    budget.spend_entries(_FILE)
    try:
        return read_regular_file(file, _MAX_BYTES).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError):
        return None


def ignore_files_stay(facts: Sequence[Fact]) -> bool:
    """Whether nothing that the call does, and no variable of a search, may change what is taken in."""
    searches = [fact for fact in facts if isinstance(fact, ExecFact) and passes_hidden_by(fact.files)]
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    if any(fact.assignments for fact in searches) or not all(map(keeps_settings, commands)):
        return False
    changed = (file for file in files_in(facts) if file.effect in ("write", "delete"))
    return not any(map(_may_be_ignore_file, changed))


def _may_be_ignore_file(file: FileFact) -> bool:
    names = {fold(file.path.name), fold(file.written.name)}
    return file.recursive or file.is_open or not names.isdisjoint((*IGNORE_FILES, "exclude", "ignore", ".gitconfig"))


def passes_hidden_by(files: Sequence[FileFact]) -> bool:
    return any(file.selection.unhidden for file in files)
