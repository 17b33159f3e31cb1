"""Looking at folders while deciding, within bounds."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.policy.words import EVERYTHING, Selection

MAX_ENTRIES = 100_000
"""Entries of folders that one decision looks at."""

MAX_ENTRIES_ABROAD = 10_000
"""How many of them may lie outside the workspace, where little is granted and much is there."""

MAX_NAMES = 1_000
"""Names that the globs of one call may become."""

MAX_PATHS = 300
"""Paths of which one decision finds out where they lead."""

_NAMES_IN_A_PATH = 8
"""A path of more counts as several."""

Entry: TypeAlias = "os.DirEntry[str]"


@dataclass(slots=True)
class DiskBudget:
    """What one decision may still look at."""

    entries: int = MAX_ENTRIES
    names: int = MAX_NAMES
    paths: int = MAX_PATHS
    most: int = MAX_ENTRIES
    _abroad: "DiskBudget | None" = None

    def at(self, folder: Path, workspace: Path) -> "DiskBudget":
        """What may be looked at there: less outside the workspace."""
        if folder == workspace or workspace in folder.parents:
            return self
        if self._abroad is None:
            self._abroad = DiskBudget(entries=MAX_ENTRIES_ABROAD, most=MAX_ENTRIES_ABROAD)
        return self._abroad

    def spend_entries(self, count: int) -> None:
        self.entries -= count
        if self.entries < 0:
            raise BoundExceededError(f"more than {self.most} files would have to be looked at; name a smaller folder")

    def spend_path(self, text: str) -> None:
        self.paths -= 1 + text.count("/") // _NAMES_IN_A_PATH
        if self.paths < 0:
            raise BoundExceededError(f"more than {MAX_PATHS} files are named; name fewer of them, or their folder")

    def spend_name(self) -> None:
        self.names -= 1
        if self.names < 0:
            raise BoundExceededError(f"the globs match more than {MAX_NAMES} files; name fewer of them")


def read_folder(folder: str | Path, budget: DiskBudget) -> list[Entry]:
    """What a folder holds; nothing when it cannot be read, or is none."""
    try:
        scan = os.scandir(folder)
    except OSError:
        return []
    with scan:
        entries = list(islice(scan, budget.entries + 1))
    budget.spend_entries(len(entries))
    return entries


def walk(
    folder: Path, budget: DiskBudget, selection: Selection = EVERYTHING
) -> Iterator[tuple[tuple[str, ...], list[Entry]]]:
    """Each folder at or beneath one, by its names relative to it, with what it holds, as far as the selection says.

    Symlinks are not followed, and belong to every selection but one of plain files: what they lead to may have any
    name. A folder whose name fits may be meant as a whole.
    """
    pending: list[tuple[tuple[str, ...], Selection]] = [((), selection)]
    while pending:
        above, wanted = pending.pop()
        entries = [entry for entry in read_folder(folder.joinpath(*above), budget) if entry.name not in wanted.without]
        yield above, [entry for entry in entries if _is_selected(entry, wanted)]
        whole = Selection(without=wanted.without)
        pending += [
            ((*above, entry.name), whole if _fits(entry, wanted) and not wanted.plain_files else wanted)
            for entry in entries
            if entry.is_dir(follow_symlinks=False)
        ]


def _is_selected(entry: Entry, selection: Selection) -> bool:
    if selection.plain_files and entry.is_symlink():
        return False
    return not selection.endings or entry.is_symlink() or _fits(entry, selection)


def _fits(entry: Entry, selection: Selection) -> bool:
    return bool(selection.endings) and entry.name.casefold().endswith(selection.endings)
