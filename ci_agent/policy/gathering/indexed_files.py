"""What of a folder is in git's index: the files that git names, whatever else lies beside them."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, Listing, listing_of, read_folder
from ci_agent.policy.facts import ExecFact, Fact, FileFact, files_in
from ci_agent.policy.gathering.repositories import tracked_names
from ci_agent.policy.gathering.stale_paths import base_name
from ci_agent.policy.matchers.reach import Names, fold
from ci_agent.policy.shell.static_words import word_set
from ci_agent.policy.words import Selection

_KEEP_INDEX: Final = word_set(
    "archive blame branch cat-file check-ignore describe diff diff-files diff-index diff-tree fetch "
    "for-each-ref format-patch grep log ls-files ls-remote ls-tree merge-base name-rev push remote rev-list rev-parse "
    "shortlog show show-ref status tag"
)
"""Git's commands after which the index names the same files."""

_RUN_NOTHING: Final = word_set(
    "basename cat cd cmp column comm cut date diff dirname du echo egrep exit false fgrep file grep head jq ls "
    "mapfile nl paste printf pwd read readarray realpath rg sed set sort stat tac tail test tr true uniq wc xargs "
    "[ [[ :"
)
"""Programs that run no code of the project, which might put anything in the index."""

_EXCLUSIONS: Final = 8
"""A path is held against so many in the time that it takes to see an entry of a folder."""


def indexed_beneath(folder: Path, selection: Selection, budget: DiskBudget) -> list[tuple[Names, Listing]] | None:
    """As `walk`, but only what git names there; None when that cannot be told, or a folder is among the names."""
    if not selection.indexed or budget.index_changes:
        return None
    wanted = _wanted(folder, selection, budget)
    return None if wanted is None else _on_disk(folder, wanted, budget, follows=not selection.stored)


def is_picked(top: Path, name: str, selection: Selection) -> bool:
    """Whether a path in the index of a working tree belongs to a selection."""
    endings = selection.endings
    fits = not endings or any(part.casefold().endswith(endings) for part in name.split("/"))
    return fits and not (selection.excluded and _any_of(selection.excluded).fullmatch(f"{top}/{name}"))


def picking_cost(selection: Selection) -> int:
    """Of `is_picked`, in entries of a folder."""
    return 1 + len(selection.excluded) // _EXCLUSIONS


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One for all of them; each has its own names of groups."""
    apart = [each.replace("(?P<g", f"(?P<p{at}g").replace("(?P=g", f"(?P=p{at}g") for at, each in enumerate(patterns)]
    return re.compile("|".join(f"(?:{each})" for each in apart), re.DOTALL)


class _Wanted:
    """Folded paths, by the folder that they are in; those above them are among them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.files = frozenset(paths)
        self.names: dict[str, set[str]] = {}
        for path in paths:
            while path:
                above, _, name = path.rpartition("/")
                known = self.names.setdefault(above, set())
                if name in known:
                    break
                known.add(name)
                path = above  # noqa: PLW2901 - the way up


def _wanted(folder: Path, selection: Selection, budget: DiskBudget) -> _Wanted | None:
    """Names of every working tree that the folder is in: git prints them from the top, or from where it is run."""
    tops = [each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")]
    paths: list[str] = []
    for top in tops:
        names = tracked_names(top)
        if names is None:
            return None
        budget.spend_entries(len(names) * picking_cost(selection))
        above = f"{folder.relative_to(top)}/" if folder != top else ""
        near = above if selection.stored else ""
        picked = [name for name in names if name.startswith(near) and is_picked(top, name, selection)]
        paths += [] if above and selection.stored else picked
        paths += [name.removeprefix(above) for name in picked if above and name.startswith(above)]
    return _Wanted([fold(path) for path in paths]) if tops else None


def _on_disk(folder: Path, wanted: _Wanted, budget: DiskBudget, *, follows: bool) -> list[tuple[Names, Listing]] | None:
    found: list[tuple[Names, Listing]] = []
    pending: list[tuple[str, Names, str]] = [(str(folder), (), "")]
    while pending:
        path, above, key = pending.pop()
        listing, names = read_folder(path, budget), wanted.names.get(key, set())
        kept = [(entry, name) for entry, name in zip(listing.entries, listing.names, strict=True) if name in names]
        for entry, name in kept:
            place = f"{key}/{name}" if key else name
            if os.path.isdir(entry.path):
                # A submodule, or a link that leads to other files than git knows.
                if not follows and (entry.is_symlink() or place in wanted.files):
                    continue
                if entry.is_symlink() or place in wanted.files:
                    return None
                pending.append((entry.path, (*above, entry.name), place))
        found.append((above, listing_of([entry for entry, _ in kept])))
    return found


def goes_by_index(files: Sequence[FileFact]) -> bool:
    """Whether any file is one only if git names it."""
    return any(file.selection.indexed for file in files)


def index_stays(facts: Sequence[Fact]) -> bool:
    """Whether nothing that the call runs may put another name in the index before git is asked.

    What is given the names runs when git has told them; git must not be asked again after it.
    """
    # What git prints itself is another matter: a program of the project's that puts it in the index has read it.
    of_git_alone = all(file.selection.stored for file in files_in(facts) if file.selection.indexed)
    has_run = False
    for command in (fact for fact in facts if isinstance(fact, ExecFact)):
        if has_run and base_name(command).startswith("git "):
            return False
        if of_git_alone and not base_name(command).startswith("git "):
            continue
        if not keeps_settings(command):
            has_run = any(word.beneath for word in command.words)
            if not has_run:
                return False
    return True


def keeps_settings(command: ExecFact) -> bool:
    """Whether it changes neither the index nor a file that it is not told to write."""
    program, _, subcommand = base_name(command).partition(" ")
    if program == "git":
        return subcommand in _KEEP_INDEX
    return not command.needs_rule or program in _RUN_NOTHING
