"""What git reads of the folders that its pathspecs name: what it tracks there, but for what they exclude."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.effects import Exclusion, FileUse
from ci_agent.policy.gathering.file_facts import Place
from ci_agent.policy.gathering.repositories import is_repository, top_of, tracked_names
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.words import Word

_DIRECTING: Final = frozenset(
    ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_CEILING_DIRECTORIES")
)
"""With these, git may look at another repository, or find none."""
_MODULES: Final = ".gitmodules"
_PATHSPECS: Final = ("literal", "glob", "noglob", "icase")
_OPTIONS: Final = frozenset(f"--{name}-pathspecs" for name in _PATHSPECS)
_VARIABLES: Final = frozenset(f"GIT_{name.upper()}_PATHSPECS" for name in _PATHSPECS)
"""With these, `:!docs` may be a name like any other."""

_PATHSPEC: Final = 80
"""To find out what git makes of a path takes as long as to see this many entries of a folder."""
EXCLUSION: Final = 40
"""To find out what a path is that git shall leave out takes as long as to see so many."""


def with_stored(site: Site, use: FileUse, words: tuple[Word, ...], place: Place, *, plainly: bool) -> FileUse:
    """The use as git makes it; where that is not certain, all beneath the path is meant, and what is tracked there.

    `plainly`: no variable is set for the command.
    """
    place.budget.spend_entries(_PATHSPEC + EXCLUSION * len(use.excluded))
    if plainly and goes_by_index(site, words, place):
        excluded = excluded_paths(site, use.excluded, words, place, plainly=True)
        return use._replace(selection=replace(use.selection, excluded=excluded), excluded=())
    return use._replace(selection=replace(use.selection, indexed=False), excluded=())


def goes_by_index(site: Site, words: tuple[Word, ...], place: Place) -> bool:
    """Whether git is sure to find the repository and its index, and not to compare two paths without them."""
    if place.folder is None or place.budget.index_changes or not _DIRECTING.isdisjoint(site.around.exported):
        return False
    return _has_plain_index(place.folder, place.budget) and not _may_be_two_paths(words, place.folder)


def _has_plain_index(folder: Path, budget: DiskBudget) -> bool:
    """Whether the folder is in a repository that tracks something, and has no submodules. Many commands of a call may
    ask."""
    question = ("index", folder)
    if question not in budget.facts:
        top = top_of(folder)
        names = tracked_names(top) if top is not None and is_repository(top) else None
        budget.facts[question] = top is not None and bool(names) and not _has_submodules(top, names or ())
    return bool(budget.facts[question])


def _has_submodules(top: Path, names: Sequence[str]) -> bool:
    """Settings may say that git goes into them."""
    return _MODULES in names or os.path.lexists(top / _MODULES)


def _may_be_two_paths(words: tuple[Word, ...], folder: Path) -> bool:
    """Where git takes the repository for somebody else's, `git diff -- . docs` compares all that the folders hold."""
    texts = [word.literal for word in words[1:] if not word.text.startswith("-")]
    if "diff" not in texts:
        return False
    start = str(folder)
    paths = (None if text is None else os.path.join(start, text) for text in texts)
    there = (path for path in paths if path is None or ("\0" not in path and os.path.lexists(path)))
    return len(list(islice(there, 2))) > 1


def excluded_paths(
    site: Site, excluded: tuple[Exclusion, ...], words: tuple[Word, ...], place: Place, *, plainly: bool
) -> tuple[str, ...]:
    """Absolute paths, as regular expressions; none where git may read the patterns otherwise."""
    if not excluded or not plainly or not goes_by_index(site, words, place) or place.folder is None:
        return ()
    top = top_of(place.folder)
    if not _VARIABLES.isdisjoint(site.around.exported) or any(word.text in _OPTIONS for word in words):
        return ()
    start = re.escape(f"{place.folder}/")
    return tuple(start + each.pattern for each in excluded if not each.from_top or place.folder == top)
