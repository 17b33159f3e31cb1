"""What a search comes to that passes by names with a dot: all others, and those that an ignore file takes in again."""

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, Entry, Listing, listing_of, read_folder
from ci_agent.policy.facts import ExecFact, Fact, FileFact, files_in
from ci_agent.policy.gathering.indexed_files import keeps_settings
from ci_agent.policy.matchers.reach import Names, fold
from ci_agent.policy.words import Selection
from ci_agent.text_files import read_regular_file

IGNORE_FILES: Final = (".gitignore", ".ignore", ".rgignore")
STEERING: Final = frozenset({"RIPGREP_CONFIG_PATH", "XDG_CONFIG_HOME"})
"""Variables that lead the search to other settings."""

_MAX_BYTES: Final = 256_000
_FILE: Final = 30
"""To read an ignore file takes as long as to see this many entries of a folder."""


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
    folder: Path, selection: Selection, budget: DiskBudget, taken: tuple[str, ...]
) -> list[tuple[Names, Listing]]:
    found: list[tuple[Names, Listing]] = []
    pending: list[tuple[Path, Names, tuple[str, ...]]] = [(folder, (), taken)]
    while pending:
        path, above, patterns = pending.pop()
        listing = read_folder(path, budget)
        patterns += _taken_in(_ignore_files(path, listing), budget)
        kept = [entry for entry in listing.entries if _is_kept(entry, selection, patterns)]
        found.append((above, listing_of(kept)))
        folders = (entry for entry in kept if entry.is_dir(follow_symlinks=False))
        pending += [(Path(entry.path), (*above, entry.name), patterns) for entry in folders]
    return found


def _is_kept(entry: Entry, selection: Selection, patterns: Sequence[str]) -> bool:
    name = entry.name
    if name.startswith(".") and not any(fnmatchcase(fold(name), pattern) for pattern in patterns):
        return False
    left_out = selection.without if entry.is_dir(follow_symlinks=False) else selection.left_out
    return name not in left_out or entry.is_symlink()


def _ignore_files(path: Path, listing: Listing) -> list[Path]:
    names = {entry.name for entry in listing.entries}
    return [path / name for name in IGNORE_FILES if name in names] + ([path / ".git"] if ".git" in names else [])


def _around(folder: Path, budget: DiskBudget, home: Path) -> tuple[str, ...]:
    """What is taken in by the files of the folders above, and by the settings of the user."""
    for settings in (home / ".gitconfig", home / ".config/git/config"):
        if b"excludesfile" in _read(settings, budget).lower():
            raise _UnknownError
    above = [each / name for each in folder.parents for name in (*IGNORE_FILES, ".git")]
    return _taken_in([*above, home / ".config/git/ignore"], budget)


def _taken_in(files: Iterable[Path], budget: DiskBudget) -> tuple[str, ...]:
    """Patterns of single names: of a path that is taken in, any of its names may be."""
    found: list[str] = []
    for file in files:
        if file.name == ".git":
            if os.path.lexists(file) and not file.is_dir():
                raise _UnknownError
            file = file / "info/exclude"  # noqa: PLW2901 - what counts of a repository
        for line in _read(file, budget).decode(errors="replace").removeprefix("\ufeff").splitlines():
            if line.lstrip().startswith("!"):
                found += [_simple(fold(part)) for part in line.strip()[1:].split("/") if part]
    return tuple(found)


def _simple(pattern: str) -> str:
    """What `fnmatch` may read otherwise than the search is taken for anything."""
    return "*" if any(char in pattern for char in "[]{}\\") else pattern


def _read(file: Path, budget: DiskBudget) -> bytes:
    try:
        data = read_regular_file(file, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError) as error:
        raise _UnknownError from error
    budget.spend_entries(_FILE)
    return data


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
