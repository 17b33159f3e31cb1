"""Files of a repository that no word names: those that it tracks, and those that git finds beside them.

No rule need grant what is done to them; a rule that forbids it forbids the command.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ci_agent.policy.effects import Effects, Tracked
from ci_agent.policy.facts import FileFact
from ci_agent.policy.gathering.file_facts import Place, possible_texts, use_facts
from ci_agent.policy.gathering.pathspec_reads import EXCLUSION, excluded_paths
from ci_agent.policy.gathering.repositories import top_of
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.programs.pathspecs import WORK_TREE
from ci_agent.policy.words import Selection, Word
from ci_agent.text_files import read_regular_file
from ci_agent.workspace import InvalidPathError

_MAX_BYTES = 64_000
_SECTION = re.compile(r'[ \t]*\[submodule "[^"\\\n]*"\][ \t\r]*')
_SETTING = re.compile(r'[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*=[ \t]*([^\s\0"\\#;]+)[ \t\r]*')
"""A key and a value without blanks, quotes or escapes."""

_TRACKED = 40
"""To find out what a command does to the tracked files takes as long as to see this many entries of a folder."""

_ALONE = frozenset({"diff", "restore", "checkout"})
"""Commands of git that look at the index beside the files, as long as nothing stands before their names."""


def unnamed_files(
    site: Site, words: tuple[Word, ...], effects: Effects, place: Place, *, plainly: bool
) -> Iterator[FileFact]:
    """`plainly`: no variable is set for the command."""
    top = top_of(place.folder) if place.folder is not None and (effects.tracked or effects.untracked) else None
    if place.folder is None or top is None:
        return
    by_index = plainly and words[0].literal == "git" and words[1].literal in _ALONE
    for each in effects.tracked:
        if _any_is_there(each.unless_there, place.folder):
            continue
        if each.if_there is not None and not _any_is_there((each.if_there,), place.folder):
            continue
        if each.submodules:
            yield from _in_submodules(top, place)
            continue
        place.budget.spend_entries(_TRACKED + EXCLUSION * len(each.excluded))
        path = _beneath(site, each, place, top)
        touched = () if each.changed and by_index else None
        excluded = excluded_paths(site, each.excluded, words, place, plainly=plainly)
        yield FileFact(
            each.effect,
            path,
            path,
            is_folder=os.path.isdir(path),
            recursive=True,
            argument=place.argument,
            span=place.span,
            selection=_selection(each, excluded),
            tracked=True,
            touched=touched,
        )
    for use in effects.untracked:
        yield from (fact for fact in use_facts(site, use, place) if isinstance(fact, FileFact))


def _selection(tracked: Tracked, excluded: tuple[str, ...]) -> Selection:
    if not (excluded or tracked.endings):
        return WORK_TREE
    return replace(WORK_TREE, excluded=excluded, endings=tracked.endings)


def _in_submodules(top: Path, place: Place) -> Iterator[FileFact]:
    try:
        text = read_regular_file(top / ".gitmodules", _MAX_BYTES).decode(errors="surrogateescape")
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        text = "?"
    for name in _submodules(text):
        path = Path(os.path.normpath(top / name))
        place.budget.spend_path(name)
        yield FileFact(
            "write",
            path,
            path,
            is_folder=True,
            recursive=True,
            argument=place.argument,
            span=place.span,
            selection=WORK_TREE,
        )


def _submodules(text: str) -> list[str]:
    """Their folders; all beneath the top where the file has a line of which only git knows what it says."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith(("#", ";"))]
    settings = [_SETTING.fullmatch(line) for line in lines if not _SECTION.fullmatch(line)]
    if None in settings:
        return ["."]
    return [setting[2] for setting in settings if setting is not None and setting[1].lower() == "path"]


def _beneath(site: Site, tracked: Tracked, place: Place, top: Path) -> Path:
    texts = [] if tracked.beneath is None else possible_texts(tracked.beneath, place)
    if texts is None or len(texts) != 1:
        return top
    try:
        path = site.workspace.resolve(texts[0], start=place.folder)
    except InvalidPathError:
        return top
    return path if path.is_relative_to(top) else top


def _any_is_there(words: tuple[Word, ...], folder: Path) -> bool:
    return any("\0" not in word.text and os.path.lexists(folder / word.text) for word in words)
