"""What git reads of the folders that its pathspecs name: what it tracks there, but for what they exclude."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

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


def with_stored(site: Site, use: FileUse, words: tuple[Word, ...], place: Place, *, plainly: bool) -> FileUse:
    """The use as git makes it; where that is not certain, all beneath the path is meant, and what is tracked there.

    `plainly`: no variable is set for the command.
    """
    if plainly and goes_by_index(site, words, place):
        excluded = excluded_paths(site, use.excluded, words, place, plainly=True)
        return use._replace(selection=replace(use.selection, excluded=excluded), excluded=())
    return use._replace(selection=replace(use.selection, indexed=False), excluded=())


def goes_by_index(site: Site, words: tuple[Word, ...], place: Place) -> bool:
    """Whether git is sure to find the repository and its index, and not to compare two paths without them."""
    top = top_of(place.folder) if place.folder is not None else None
    if (
        top is None
        or place.folder is None
        or place.budget.index_changes
        or not _DIRECTING.isdisjoint(site.around.exported)
    ):
        return False
    names = tracked_names(top) if is_repository(top) else None
    return bool(names) and not _has_submodules(top, names or ()) and not _may_be_two_paths(words, place.folder)


def _has_submodules(top: Path, names: Sequence[str]) -> bool:
    """Settings may say that git goes into them."""
    return _MODULES in names or os.path.lexists(top / _MODULES)


def _may_be_two_paths(words: tuple[Word, ...], folder: Path) -> bool:
    """Where git takes the repository for somebody else's, `git diff -- . docs` compares all that the folders hold."""
    texts = [word.literal for word in words[1:] if not word.text.startswith("-")]
    there = [text for text in texts if text is None or ("\0" not in text and os.path.lexists(folder / text))]
    return "diff" in texts and len(there) > 1


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
