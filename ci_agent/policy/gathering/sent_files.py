"""What `docker build FOLDER` sends: all that its lists (`.dockerignore`) do not leave out."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from ci_agent.policy.disk import DiskBudget, Listing, listing_of, read_folder
from ci_agent.policy.effects import FileUse
from ci_agent.policy.facts import ExecFact, Fact, FileFact
from ci_agent.policy.gathering.answers import may_be_written
from ci_agent.policy.gathering.file_facts import Place
from ci_agent.policy.matchers.ignore_lists import IgnoreList, leaves_out, leaves_out_all_beneath, parse_list
from ci_agent.policy.matchers.path_patterns import COST
from ci_agent.policy.matchers.reach import Names
from ci_agent.policy.words import Selection, Sent
from ci_agent.text_files import read_regular_file

_MAX_BYTES: Final = 64_000
_LIST: Final = 30
"""To read a list takes as long as to see this many entries of a folder."""
_BUILD: Final = 50
"""To find out what a build sends takes as long as to see so many."""
_NAMES: Final = (".dockerignore", ".containerignore")

_Lists = Sequence[IgnoreList]


class _UnknownError(Exception):
    """What is left out cannot be told."""


def with_build_files(use: FileUse, sent: Sent, place: Place) -> FileUse:
    """The files that an option names are relative to where the program works, not to the folder that is sent."""
    place.budget.spend_entries(_BUILD)
    told = tuple(os.path.join(place.folder or "/", word.text) for word in use.build_files if word.text != "-")
    return use._replace(selection=replace(use.selection, sent=sent._replace(files=sent.files + told)))


def sent_beneath(folder: Path, selection: Selection, budget: DiskBudget) -> Iterator[tuple[Names, Listing]] | None:
    """As `walk`, but for folders of which nothing is sent; None when there is no list, or nobody knows what it says.

    Which files of the others are sent, `only_sent` tells.
    """
    lists = _lists_of(folder, selection, budget)
    return _walk(folder, lists, budget) if lists else None


def _walk(folder: Path, lists: _Lists, budget: DiskBudget) -> Iterator[tuple[Names, Listing]]:
    pending: list[tuple[str, Names]] = [(str(folder), ())]
    while pending:
        path, above = pending.pop()
        listing = read_folder(path, budget)
        passed_by = {
            entry.name
            for entry in listing.folders
            if all(leaves_out_all_beneath(each, (*above, entry.name), budget.spend_entries) for each in lists)
        }
        yield above, listing_of([entry for entry in listing.entries if entry.name not in passed_by])
        pending += [(entry.path, (*above, entry.name)) for entry in listing.folders if entry.name not in passed_by]


def only_sent(folder: Path, above: Names, listing: Listing, selection: Selection, budget: DiskBudget) -> Listing:
    """What of a listing beneath the folder is sent."""
    lists = _lists_of(folder, selection, budget)
    if not lists:
        return listing
    spend = budget.spend_entries
    named = [(entry, (*above, entry.name)) for entry in listing.entries]
    return listing_of([entry for entry, names in named if not all(leaves_out(each, names, spend) for each in lists)])


def _lists_of(folder: Path, selection: Selection, budget: DiskBudget) -> _Lists:
    if selection.sent is None or budget.sent_lists_change:
        return ()
    try:
        return _lists(folder, selection.sent, budget)
    except _UnknownError:
        return ()


def _lists(folder: Path, sent: Sent, budget: DiskBudget) -> _Lists:
    """Each builder reads one of them, mostly the first: all count, where there is that one."""
    found = [_read(place, budget) for place in _places(folder, sent)]
    return [] if found[0] is None else [ignoring for ignoring in found if ignoring is not None]


def _places(folder: Path, sent: Sent) -> list[Path]:
    """The folder's own lists, and one beside each build file."""
    return [folder / name for name in (*_NAMES, *(f"{file}{name}" for file in sent.files for name in _NAMES))]


def _read(place: Path, budget: DiskBudget) -> IgnoreList | None:
    """None: there is no such list. Each is read once."""
    question = ("list of a build", place)
    if question not in budget.facts:
        budget.facts[question] = _parsed(place, budget)
    found = budget.facts[question]
    if found is not None and not isinstance(found, IgnoreList):
        raise _UnknownError
    return found


def _parsed(place: Path, budget: DiskBudget) -> IgnoreList | Literal["unknown"] | None:
    budget.spend_entries(_LIST)
    try:
        status = os.lstat(place)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return "unknown"
        text = read_regular_file(place, _MAX_BYTES).decode()
        budget.spend_entries(COST * text.count("\n"))
        return parse_list(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return "unknown"


def sends_folders(files: Sequence[FileFact]) -> list[FileFact]:
    return [file for file in files if file.selection.sent is not None]


def sent_lists_stay(folders: Sequence[FileFact], facts: Sequence[Fact]) -> bool:
    """Whether nothing else that the call does may change a list, or bring one."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    places = {place for each in folders if each.selection.sent for place in _places(each.path, each.selection.sent)}
    return not any(may_be_written(place, facts, commands) for place in places)
