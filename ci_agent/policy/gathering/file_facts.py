"""From a path as it was written to a fact: where it leads, and what would have to be spelled to reach it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.policy.disk import DiskBudget, walk
from ci_agent.policy.edited import edited
from ci_agent.policy.effects import FileEffect, FileUse
from ci_agent.policy.facts import FileFact, Span, UnknownFact
from ci_agent.policy.gathering.absent_places import unless_absent
from ci_agent.policy.gathering.open_paths import open_fact, open_texts
from ci_agent.policy.gathering.repositories import top_of
from ci_agent.policy.gathering.shell_globs import UnknownGlobError, expand_glob
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.matchers.open_names import OPEN
from ci_agent.policy.matchers.reach import Names, fold_names
from ci_agent.policy.protected import (
    FREE,
    UNKNOWN_NAMES,
    Guarded,
    guard_read,
    guard_write,
    is_in_selection,
    protected_beneath,
)
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.policy.words import EVERYTHING, Selection, Word
from ci_agent.workspace import MAX_LINKS, InvalidPathError, check_path_text, is_kernel_path, is_kernel_place, way

_ASKED_AGAIN = 20
"""What a path that is known costs, in entries of folders."""
_KEPT = 4_000
"""Entries that are left for other questions when the contents of a folder are too many."""
_DEVICES_READ = frozenset({"/dev/null", "/dev/stdin", "/dev/fd/0"})
_DEVICES_WRITTEN = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"})

_PLACE: Final = 4
"""To see where one more name on the way leads takes as long as to see so many entries of a folder."""


class Place(NamedTuple):
    """Where a path stands, and what may be looked at to find out where it leads."""

    folder: Path | None
    """What it is relative to; None: not known."""
    budget: DiskBudget
    argument: str
    span: Span | None = None
    by_tool: bool = False
    """A file tool opens it, not a program in the shell."""

    def at(self, span: Span) -> "Place":
        return Place(self.folder, self.budget, self.argument, span, self.by_tool)

    def unknown(self, why: str) -> UnknownFact:
        return UnknownFact(why, argument=self.argument, span=self.span)


def which_file(word: Word) -> str:
    """Why a file is not known, and what to do where many would name one."""
    why = f"which file {word.text} means is not known"
    if "TMPDIR" not in word.text:
        return why
    return f"{why}: programs put their temporary files there by themselves; to name one, take a folder of the workspace"


def reaches_no_file(text: str, effect: FileEffect) -> bool:
    """`/dev/null` and its like: nothing is read there and nothing is kept."""
    return (effect in ("read", "list") and text in _DEVICES_READ) or (effect == "write" and text in _DEVICES_WRITTEN)


def use_facts(site: Site, use: FileUse, place: Place) -> Iterable[FileFact | UnknownFact]:
    """The files that a program's use of a word may concern."""
    if use.from_top and place.folder is not None:
        place = place._replace(folder=top_of(place.folder) or place.folder)
    path = unless_absent(use.path, use.effect, place.budget)
    if path is None:
        return ()
    use = use if path is use.path else use._replace(path=path)
    return _known_facts(site, use, place)


def _known_facts(site: Site, use: FileUse, place: Place) -> Iterator[FileFact | UnknownFact]:
    texts = possible_texts(use.path, place)
    if texts is None:
        texts = open_texts(site, use.path, place.folder, place.budget)
    if texts is None:
        yield place.unknown(which_file(use.path))
        return
    for text in texts:
        if reaches_no_file(text, use.effect) or (not text and _names_nothing(use)):
            continue
        if not text and use.path.stand_ins:
            yield place.unknown(f"{use.path.text} may be empty when its command fails: begin the name with something")
            continue
        # With sources, what lands there tells whether more than the path itself is written.
        beneath = _arriving(site, use, place) if use.recursive and not use.into else None
        if OPEN in text:
            fact = _open_fact(site, text, use.effect, place, beneath)
        else:
            fact = file_fact(site, text, use.effect, place, beneath=beneath, selection=use.selection)
        if isinstance(fact, FileFact) and use.into:
            yield from _into(site, fact, use.into, place)
        elif isinstance(fact, FileFact):
            yield fact if use.selection is EVERYTHING else fact._replace(selection=use.selection)
        else:
            yield fact


def _open_fact(
    site: Site, text: str, effect: FileEffect, place: Place, beneath: list[Names] | None
) -> FileFact | UnknownFact:
    place.budget.spend_path(text)
    fact = open_fact(site, text, effect, place.folder or site.workspace.root, beneath)
    return place.unknown(fact) if isinstance(fact, str) else fact._replace(argument=place.argument, span=place.span)


def _names_nothing(use: FileUse) -> bool:
    """Of an empty text that is one of several nothing is made, deleted or entered; all beneath may be all beneath the
    folder."""
    alone = use.effect in ("write", "delete", "list") and not use.recursive and not use.into
    return alone and (use.path.kind == "choice" or bool(use.path.stand_ins))


def possible_texts(word: Word, place: Place) -> list[str] | None:
    """Every word that bash may make of one; None: nobody knows them all."""
    if word.kind == "literal":
        return [word.text]
    if word.kind == "choice":
        options = [possible_texts(choice, place) for choice in word.choices]
        known = [texts for texts in options if texts is not None]
        return [text for texts in known for text in texts] if len(known) == len(options) else None
    if word.kind == "glob" and (place.folder is not None or word.text.startswith("/")):
        try:
            names = expand_glob(word.text, place.folder or Path("/"), place.budget)
        except UnknownGlobError:
            return None
        made = [edited(name, word.edits) for name in names]
        return None if None in made else [text for text in made if text is not None]
    return None


def file_fact(  # noqa: PLR0913 - half of them by name
    site: Site,
    text: str,
    effect: FileEffect,
    place: Place,
    *,
    beneath: Sequence[Names] | None = None,
    selection: Selection = EVERYTHING,
) -> FileFact | UnknownFact:
    """The fact for one path; UnknownFact for text that is no path, or whose beginning is not known.

    `beneath`: all beneath the path is meant too, and a write may bring these names of consequence there.
    """
    brought = None if beneath is None else tuple(beneath)
    picked = None if selection is EVERYTHING else selection
    question = (text, effect, place.folder, place.by_tool, brought, picked)
    known = place.budget.facts.get(question)
    if isinstance(known, FileFact):
        place.budget.spend_entries(_ASKED_AGAIN)
        return known._replace(argument=place.argument, span=place.span)
    fact = _find_out(site, text, effect, place, beneath=beneath, selection=selection)
    place.budget.facts[question] = fact
    return fact


def _find_out(  # noqa: PLR0913 - as above
    site: Site,
    text: str,
    effect: FileEffect,
    place: Place,
    *,
    beneath: Sequence[Names] | None,
    selection: Selection,
) -> FileFact | UnknownFact:
    place.budget.spend_path(text)
    try:
        path, written = _locate(site, text, effect, place)
    except InvalidPathError as error:
        return place.unknown(str(error))
    is_folder = os.path.isdir(path) and not (effect == "delete" and os.path.islink(path))
    if effect in ("read", "list"):
        recursive = beneath is not None and is_folder
        guarded = guard_read(path, site.around, recursive=recursive, by_tool=place.by_tool)
    else:
        recursive = beneath is not None or (effect == "delete" and is_folder)
        at_stake = _at_stake_beneath(site, path, effect, is_folder, place)
        if at_stake and selection.endings:
            at_stake = [names for names in at_stake if _holds_any(path.joinpath(*names), names, selection, place)]
        if at_stake and selection.without:
            at_stake = [names for names in at_stake if not _is_passed_by(path, names, selection)]
        if beneath is not None and effect == "write":
            at_stake = [*(at_stake or ()), *beneath]
        picked = selection if effect == "delete" else EVERYTHING
        guarded = _guard(site, path, at_stake, place, deleted=effect == "delete", selection=picked)
    return FileFact(effect, path, written, is_folder, recursive, guarded, place.argument, place.span)


def _at_stake_beneath(site: Site, path: Path, effect: FileEffect, is_folder: bool, place: Place) -> list[Names] | None:
    """The names beneath a path that may be written or deleted with it; None: it is written alone.

    Who writes a folder may write what is in it, as unpacking an archive does.
    """
    if is_folder:
        return _protected_beneath(site, path, place, deleted=effect == "delete")
    return [] if effect == "delete" else None


def _protected_beneath(site: Site, folder: Path, place: Place, *, deleted: bool = False) -> list[Names]:
    """Outside the workspace, and for a deletion, a folder that holds too much to look at may hold anything."""
    budget = place.budget.at(folder, site.workspace.root)
    if deleted and budget is place.budget:
        budget = place.budget.part(place.budget.left() - _KEPT)
    try:
        return list(protected_beneath(folder, budget, deleted=deleted))
    except BoundExceededError:
        if budget is place.budget or place.budget.left() < 0:
            raise
        return list(UNKNOWN_NAMES)


def _arriving(site: Site, use: FileUse, place: Place) -> list[Names]:
    """The names of consequence that a write brings: those beneath its sources, or whatever an archive may hold."""
    if use.in_place or use.effect != "write":
        return []
    names: list[Names] = []
    for source in use.contents:
        texts = possible_texts(source, place)
        if texts is None:
            return list(UNKNOWN_NAMES)
        for text in texts:
            origin = file_fact(site, text, "list", place)
            if not isinstance(origin, FileFact) or not origin.is_folder:
                return list(UNKNOWN_NAMES)
            names += _protected_beneath(site, origin.path, place)
    return names if use.contents else list(UNKNOWN_NAMES)


def _is_passed_by(folder: Path, names: Names, selection: Selection) -> bool:
    """Whether it is, or lies in, a folder of a name that is left out; a file of such a name is not left out."""
    at = next((at for at, name in enumerate(names, 1) if name in selection.without), None)
    return at is not None and folder.joinpath(*names[:at]).is_dir() and not folder.joinpath(*names[:at]).is_symlink()


def _holds_any(folder: Path, names: Names, selection: Selection, place: Place) -> bool:
    """Whether anything of a selection is in a folder, or the folder is, or one above it."""
    if is_in_selection(fold_names(names), selection):
        return True
    return any(listing.entries for _, listing in walk(folder, place.budget, selection))


def _guard(  # noqa: PLR0913 - half of them by name
    site: Site,
    path: Path,
    beneath: list[Names] | None,
    place: Place,
    *,
    deleted: bool = False,
    selection: Selection = EVERYTHING,
) -> Guarded:
    return guard_write(
        path,
        site.workspace.root,
        site.around,
        beneath=beneath,
        by_tool=place.by_tool,
        deleted=deleted,
        selection=selection,
        budget=place.budget,
    )


def _locate(site: Site, text: str, effect: FileEffect, place: Place) -> tuple[Path, Path]:
    """Where a path leads, and how it was written, both absolute."""
    check_path_text(text)
    if text.startswith("~"):
        # The shell has put the home folder in by now; what is left may still be one to a program.
        raise InvalidPathError(f"some programs take {text!r} for a home folder; write ./{text}")
    if place.folder is None and not text.startswith("/"):
        raise InvalidPathError(f"the folder that {text!r} starts in is not known")
    start = "/" if place.folder is None else str(place.folder)
    plain = os.path.normpath(os.path.join(start, text))
    written = Path(plain)
    if is_kernel_path(written):
        return written, written
    reached = _reached(start, text, place.budget)
    if effect == "delete" and not text.endswith("/") and os.path.basename(text) not in ("", ".", ".."):
        parent = place.folder or Path("/")
        if "/" in text:
            parent = site.workspace.resolve(os.path.dirname(text), start=parent)
        return parent / os.path.basename(text), written
    # Most paths lead where they say: a second Path of the same text would take longer than the comparison.
    return (written if reached == plain else Path(reached)), written


def _reached(start: str, text: str, budget: DiskBudget) -> str:
    """Where a path leads; InvalidPathError when that depends on who goes there."""
    try:
        places = way(start, text)
    except InvalidPathError:
        places = []
        budget.spend_entries(_PLACE * MAX_LINKS)
    # What is written has been paid for; links may make the way much longer.
    more = len(places) - text.count("/") - 2
    if more > 0:
        budget.spend_entries(_PLACE * more)
    if not places or any(map(is_kernel_place, places)):
        raise InvalidPathError(f"what {text!r} leads to depends on the process that opens it")
    return places[-1]


def _into(site: Site, target: FileFact, sources: tuple[Word, ...], place: Place) -> Iterator[FileFact | UnknownFact]:
    """What is written when files are copied or moved to a path that may be a folder."""
    for source in sources:
        texts = possible_texts(source, place)
        if texts is None:
            guarded = _guard(site, target.path, list(UNKNOWN_NAMES), place)
            yield target._replace(recursive=target.is_folder, guarded=guarded)
        else:
            yield from (_landing(site, target, text, place) for text in texts)


def _landing(site: Site, target: FileFact, source: str, place: Place) -> FileFact | UnknownFact:
    origin = file_fact(site, source, "list", place)
    if isinstance(origin, UnknownFact):
        return origin
    landed: FileFact | UnknownFact = target
    if target.is_folder:
        name = os.path.basename(os.path.normpath(source))
        landed = file_fact(site, os.path.join(target.path, name), "write", place)
    if isinstance(landed, UnknownFact):
        return landed
    landed = landed._replace(landing=(origin.written, target.path))
    if not origin.is_folder or landed.guarded != FREE:
        return landed
    guarded = _guard(site, landed.path, _protected_beneath(site, origin.path, place), place)
    return landed._replace(recursive=True, guarded=guarded)
