"""What git finds beside the files that it tracks: `add` takes it in, `clean` deletes it, `stash -u` puts it away."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, Entry, Listing, listing_of, read_folder
from ci_agent.policy.facts import ExecFact, Fact, FileFact, files_in
from ci_agent.policy.gathering.ignored_files import IGNORE_FILE, Ignoring, is_ignored, read_ignoring
from ci_agent.policy.gathering.repositories import top_of, tracked_names
from ci_agent.policy.gathering.stale_paths import base_name, changes_working_tree
from ci_agent.policy.matchers.reach import Names, fold
from ci_agent.policy.words import Selection

_NEW: Final = frozenset({"git init", "git clone"})
_IGNORE_NAMES: Final = frozenset({IGNORE_FILE, "exclude"})


def untracked_beneath(folder: Path, selection: Selection, budget: DiskBudget) -> list[tuple[Names, Listing]] | None:
    """As `walk`, but only what git does not track there; None when that cannot be told."""
    top = top_of(folder) if selection.untracked or selection.unignored else None
    tracked = None if top is None else tracked_names(top)
    if top is None or tracked is None:
        return None
    budget.spend_entries(len(tracked))
    known = frozenset(tracked if selection.untracked else ())
    start = "" if folder == top else f"{folder.relative_to(top)}/"
    rules = _rules_above(top, folder, budget) if selection.unignored else []
    return _search(folder, start, selection, known, rules, budget)


def _rules_above(top: Path, folder: Path, budget: DiskBudget) -> list[Ignoring]:
    """Those of the repository, and of the folders on the way; the user's own may leave out more."""
    above = [each for each in (folder, *folder.parents) if each != folder and each.is_relative_to(top)]
    places = [(top / ".git/info/exclude", "")]
    places += [(each / IGNORE_FILE, "" if each == top else f"{each.relative_to(top)}/") for each in above]
    return [rule for file, start in places if (rule := read_ignoring(file, start, budget)) is not None]


def _search(  # noqa: PLR0913, PLR0917 - the ways of one walk
    folder: Path,
    start: str,
    selection: Selection,
    known: frozenset[str],
    rules: list[Ignoring],
    budget: DiskBudget,
) -> list[tuple[Names, Listing]]:
    found: list[tuple[Names, Listing]] = []
    pending: list[tuple[str, str, Names, list[Ignoring], bool]] = [(str(folder), start, (), rules, False)]
    while pending:
        path, place, above, applied, whole = pending.pop()
        listing = read_folder(path, budget)
        if selection.unignored and IGNORE_FILE in listing.names:
            own = read_ignoring(Path(path, IGNORE_FILE), place, budget)
            applied = applied if own is None else [*applied, own]
        kept = [entry for entry in listing.entries if _is_meant(entry, place, selection, known, applied, budget)]
        for entry in kept:
            if entry.is_dir(follow_symlinks=False):
                fits = whole or not selection.endings or entry.name.casefold().endswith(selection.endings)
                pending.append((entry.path, f"{place}{entry.name}/", (*above, entry.name), applied, fits))
        found.append((above, _without_links(kept, selection, whole)))
    return found


def _is_meant(  # noqa: PLR0913, PLR0917 - the ways of one walk
    entry: Entry,
    place: str,
    selection: Selection,
    known: frozenset[str],
    rules: list[Ignoring],
    budget: DiskBudget,
) -> bool:
    path = place + entry.name
    is_folder = entry.is_dir(follow_symlinks=False)
    if path in known or (is_folder and entry.name in selection.without):
        return False
    return not (rules and is_ignored(path, rules, budget, is_folder=is_folder))


def _without_links(entries: list[Entry], selection: Selection, whole: bool) -> Listing:
    """To git a link is what it says, not what it leads to."""
    if selection.endings and not whole:
        entries = [entry for entry in entries if entry.name.casefold().endswith(selection.endings)]
    listing = listing_of(entries)
    return Listing(listing.entries, listing.names, listing.folders, [])


def with_unsure_ignored(facts: Sequence[Fact]) -> Sequence[Fact]:
    """The facts, where the call itself may change what git ignores or tracks, with all that git may find then."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    if not any(file.selection.untracked for command in commands for file in command.files + command.perhaps):
        return facts
    changing = [command for command in commands if changes_working_tree(base_name(command), command)]
    is_written = any(map(_may_be_ignore_file, files_in(facts)))
    is_new = any(base_name(command) in _NEW for command in commands)
    found: list[Fact] = []
    for fact in facts:
        unsure = is_written or is_new or any(command is not fact for command in changing)
        found.append(_unsure(fact, is_new) if unsure and isinstance(fact, ExecFact) else fact)
    return found


def _unsure(command: ExecFact, is_new: bool) -> ExecFact:
    return command._replace(
        files=tuple(_with_ignored(file, is_new) for file in command.files),
        perhaps=tuple(_with_ignored(file, is_new) for file in command.perhaps),
    )


def _with_ignored(file: FileFact, is_new: bool) -> FileFact:
    selection = file.selection
    if not selection.untracked:
        return file
    return file._replace(selection=replace(selection, unignored=False, untracked=not is_new))


def _may_be_ignore_file(file: FileFact) -> bool:
    if file.effect not in ("write", "delete"):
        return False
    brings_any = file.recursive and file.effect == "write" and not file.selection.endings
    return brings_any or file.is_open or not _IGNORE_NAMES.isdisjoint((fold(file.path.name), fold(file.written.name)))
