"""Looking at folders while deciding, within bounds."""

import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from ci_agent.policy.matchers.reach import Names, fold_all
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.policy.words import EVERYTHING, Selection
from ci_agent.workspace import InvalidPathError, lies_in, way

MAX_ENTRIES = 30_000
"""Entries of folders that one decision looks at; whatever else takes long is counted as so many of them."""

MAX_ENTRIES_ABROAD = 10_000
"""How many of them may lie outside the workspace, where little is granted and much is there."""

MAX_NAMES = 1_000
"""Names that the globs of one call may become."""

MAX_PATHS = 300
"""Paths of which one decision finds out where they lead."""

_FOLDER = 10
"""To open a folder takes as long as to see this many of its entries."""

_DEEP = 8
"""A folder so deep beneath another takes longer with each further one above it."""

_SELECTED = 4
"""So many entries are looked at for what is selected of them in the time that it takes to see one more."""

_NAMES_IN_A_PATH = 8
"""A path of more counts as several."""

_PATH = 35
"""To find out where a path leads, and who grants it, takes as long as to see this many entries."""

Entry: TypeAlias = "os.DirEntry[str]"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds."""

    entries: list[Entry]
    names: list[str]
    """Of the entries, folded, in the same order."""
    folders: list[Entry]
    links: list[Entry]


def listing_of(entries: list[Entry]) -> Listing:
    """Of these entries of a folder."""
    return Listing(
        entries,
        fold_all([entry.name for entry in entries]),
        [entry for entry in entries if entry.is_dir(follow_symlinks=False)],
        [entry for entry in entries if entry.is_symlink()],
    )


@dataclass(slots=True)
class DiskBudget:
    """What one decision may still look at, and the folders that it has seen: each is read once."""

    entries: int = MAX_ENTRIES
    names: int = MAX_NAMES
    paths: int = MAX_PATHS
    most: int = MAX_ENTRIES
    seen: dict[str, Listing] = field(default_factory=dict)
    globs: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The names that the globs of the call become, by the folder that they are matched in."""
    found_in: set[str] = field(default_factory=set)
    """Folders of which commands get the names of files while the call runs."""
    facts: dict[Hashable, object] = field(default_factory=dict)
    """What was found out about a path, by what was asked: the same path need not be looked up again."""
    odd: dict[Hashable, bool] = field(default_factory=dict)
    """Whether such names hold something odd, by what they are and what that is."""
    targets: dict[str, str] = field(default_factory=dict)
    """Where links lead that have been followed, and the folders that hold them."""
    links: dict[Hashable, list[tuple[Path, Path]]] = field(default_factory=dict)
    """The links that lead out of a folder, and where to, by what was asked."""
    index_changes: bool = False
    """The call may change which files git tracks before it asks git."""
    sent_lists_change: bool = False
    """The call may change what is left out of a folder that is sent."""
    absent: set[Path] = field(default_factory=set)
    """Names right beneath the root of which it counts that nothing has them."""
    ignore_files_change: bool = False
    """The call may change which hidden files a search comes to."""
    around: "DiskBudget | None" = None
    """Of which this one is a part: what is spent here is spent there too."""
    _abroad: "DiskBudget | None" = None

    def at(self, folder: Path, workspace: Path) -> "DiskBudget":
        """What may be looked at there: less outside the workspace."""
        if lies_in(folder, workspace):
            return self
        if self._abroad is None:
            self._abroad = self.part(MAX_ENTRIES_ABROAD)
        return self._abroad

    def part(self, entries: int) -> "DiskBudget":
        """No more than so many of the entries that are left."""
        return DiskBudget(
            entries,
            most=entries,
            seen=self.seen,
            globs=self.globs,
            found_in=self.found_in,
            facts=self.facts,
            odd=self.odd,
            targets=self.targets,
            links=self.links,
            absent=self.absent,
            around=self,
        )

    def spend_entries(self, count: int) -> None:
        if self.around is not None:
            self.around.spend_entries(count)
        self.entries -= count
        if self.entries < 0:
            raise BoundExceededError(
                f"more than {self.most} files would have to be looked at (a folder counts as {_FOLDER} more, a command "
                "as some too); name a smaller folder, or put fewer commands in one call"
            )

    def left(self) -> int:
        """How many entries may still be looked at."""
        return self.entries if self.around is None else min(self.entries, self.around.left())

    def spend_path(self, text: str) -> None:
        self.paths -= 1 + text.count("/") // _NAMES_IN_A_PATH
        self.spend_entries(_PATH)
        if self.paths < 0:
            raise BoundExceededError(f"more than {MAX_PATHS} files are named; name fewer of them, or their folder")

    def target_of(self, link: Entry) -> str:
        """Where a link leads."""
        target = self.targets.get(link.path)
        if target is None:
            target = self.targets[link.path] = self._followed(link.path)
        return target

    def _followed(self, link: str) -> str:
        """As `os.path.realpath`, which would look at every folder above the link again."""
        above = os.path.dirname(link)
        folder = self.targets.get(above)
        if folder is None:
            folder = self.targets[above] = os.path.realpath(above)
        try:
            return way(folder, os.readlink(link))[-1]
        except (InvalidPathError, OSError):
            return os.path.realpath(link)

    def spend_names(self, count: int) -> None:
        self.names -= count
        if self.names < 0:
            raise BoundExceededError(f"the globs match more than {MAX_NAMES} files; name fewer of them")


def read_folder(folder: str | Path, budget: DiskBudget) -> Listing:
    """What a folder holds; nothing when it cannot be read, or is none."""
    path = str(folder)
    known = budget.seen.get(path)
    if known is not None:
        budget.spend_entries((_FOLDER + len(known.entries)) // 4)
        return known
    budget.spend_entries(_FOLDER)
    try:
        with os.scandir(path) as scan:
            entries = list(islice(scan, budget.left() + 1))
    except OSError:
        entries = []
    budget.spend_entries(len(entries))
    listing = listing_of(entries)
    budget.seen[path] = listing
    return listing


def walk(folder: Path, budget: DiskBudget, selection: Selection = EVERYTHING) -> Iterator[tuple[Names, Listing]]:
    """Each folder at or beneath one, by its names relative to it, with what it holds, as far as the selection says.

    Symlinks are not followed, and belong to every selection but one of plain files: what they lead to may have any
    name. A folder whose name fits may be meant as a whole.
    """
    pending: list[tuple[str, Names, Selection]] = [(str(folder), (), selection)]
    while pending:
        path, above, wanted = pending.pop()
        listing = read_folder(path, budget)
        if len(above) > _DEEP:
            budget.spend_entries((len(above) - _DEEP) // 4)
        if wanted is EVERYTHING:
            yield above, listing
        else:
            budget.spend_entries(len(listing.entries) // _SELECTED)
            yield above, _selected(listing, wanted)
        if not wanted.endings or wanted.plain_files:
            kept = [entry for entry in listing.folders if entry.name not in wanted.without]
            pending += [(entry.path, (*above, entry.name), wanted) for entry in kept]
            continue
        whole = Selection(without=wanted.without, left_out=wanted.left_out)
        pending += [
            (entry.path, (*above, entry.name), whole if _fits(entry, wanted) else wanted)
            for entry in listing.folders
            if entry.name not in wanted.without
        ]


def _selected(listing: Listing, selection: Selection) -> Listing:
    """What of a folder belongs to a selection."""
    passed_by = {*selection.without, *selection.left_out}
    by_name = selection.endings or selection.plain_files
    if not by_name and passed_by.isdisjoint([entry.name for entry in listing.entries]):
        return listing
    kept = [entry for entry in listing.entries if _is_selected(entry, selection)]
    return listing if len(kept) == len(listing.entries) else listing_of(kept)


def _is_selected(entry: Entry, selection: Selection) -> bool:
    if entry.is_symlink() and selection.plain_files:
        return False
    if entry.name in selection.without and entry.is_dir() and not entry.is_symlink():
        return False
    if entry.name in selection.left_out and entry.is_file(follow_symlinks=False):
        return False
    return not selection.endings or entry.is_symlink() or _fits(entry, selection)


def _fits(entry: Entry, selection: Selection) -> bool:
    return bool(selection.endings) and entry.name.casefold().endswith(selection.endings)
