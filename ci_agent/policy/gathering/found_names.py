"""Words made of the names of files that are found while the call runs: whether each is surely one whole name."""

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from ci_agent.policy.disk import DiskBudget, walk
from ci_agent.policy.facts import Origin
from ci_agent.policy.gathering.file_facts import Place, possible_texts
from ci_agent.policy.gathering.indexed_files import indexed_beneath
from ci_agent.policy.gathering.repositories import top_of, tracked_names
from ci_agent.policy.matchers.reach import Names
from ci_agent.policy.words import Selection, Word

_CUT_BY_XARGS = re.compile(r"""[\s'"\\]""")
_ODD_IN_A_LINE = re.compile(r"""[^ -~]|["\\]""")
"""Also what git writes in quotes."""
_CUT_BY_SHELL = re.compile(r"""[^!-~]|['"\\*?\[\]]""")
"""And what may be a pattern."""


_BY_LINE = frozenset({"-d\\n", "--delimiter=\\n"})
_MEANS_MORE = ("~", "+", "@")
"""What begins so means something else than a file to some programs."""


def certain(words: tuple[Word, ...], place: Place, origin: Origin | None) -> tuple[tuple[Word, ...], str | None]:
    """The words, those made of file names that may be something else as well unknown; and why the last of them is."""
    if not [word for word in words if word.beneath]:
        return words, None
    problems = [_cut(word, place, origin) if word.beneath else None for word in words]
    known = tuple(
        word if problem is None else word._replace(beneath=(), printed_by=None)
        for word, problem in zip(words, problems, strict=True)
    )
    return known, next(filter(None, problems), None)


def _cut(word: Word, place: Place, origin: Origin | None) -> str | None:
    """Why a word made of file names may be a part of one, or another; None: it is whole."""
    if _lists_folder(word, place):
        return "ls prints what is in a folder without its name: name the files, or use find"
    if word.printed_by is None and (not word.splits or _ends_at_nul(origin)):
        return None
    as_line = word.line or _ends_at_line(origin)
    if any(base.selection.gone for base in word.beneath) and not as_line:
        return "a deleted file may be named too, with blanks that cut the name: add --diff-filter=d"
    odd = _CUT_BY_XARGS if word.printed_by is None else _CUT_BY_SHELL
    odd = _ODD_IN_A_LINE if as_line else odd
    if not _has_odd_name(word, place, odd):
        return None
    if word.printed_by is None:
        return "a file name with blanks or quotes would be cut: use find -print0 and xargs -0"
    return "a file name with blanks or special characters would be another: print names with -z or -print0 to xargs -0"


def may_be_option(word: Word, place: Place) -> bool:
    """Whether a name that the word becomes begins with a dash, as far as the disk tells."""
    if word.beneath:
        gone = any(base.selection.gone and base.literal == "." for base in word.beneath)
        return gone or _has_dash(word, place)
    texts = possible_texts(word, place)
    return texts is None or any(text.startswith("-") for text in texts)


def _has_dash(word: Word, place: Place) -> bool:
    question = (_places(word), place.folder, "-")
    known = place.budget.odd.get(question)
    if known is None:
        any_has = any(names[0].startswith("-") for names in _names_beneath(word, place))
        known = place.budget.odd[question] = any_has
    return known


def _places(word: Word) -> tuple[Word, ...]:
    """What the word is made of, wherever that was written."""
    return tuple(base._replace(span=(0, 0)) for base in word.beneath)


def _has_odd_name(word: Word, place: Place, odd: re.Pattern[str]) -> bool:
    question = (_places(word), word.printed_by is not None, place.folder, odd.pattern)
    known = place.budget.odd.get(question)
    if known is None:
        known = place.budget.odd[question] = _any_is_odd(word, place, odd)
    return known


def _any_is_odd(word: Word, place: Place, odd: re.Pattern[str]) -> bool:
    return any(
        any(map(odd.search, names)) or (word.printed_by is not None and names[0].startswith(_MEANS_MORE))
        for names in _names_beneath(word, place)
    )


def _ends_at_nul(origin: Origin | None) -> bool:
    """The outer command, `xargs -0`, takes whole names."""
    return origin is not None and any(word.literal in ("-0", "--null") for word in origin.command.words)


def _lists_folder(word: Word, place: Place) -> bool:
    bases = [base for base in word.beneath if base.selection.listed]
    if not bases:
        return False
    texts = [possible_texts(base, place) for base in bases]
    return place.folder is None or any(
        each is None or any(os.path.isdir(place.folder / text) for text in each) for each in texts
    )


def _ends_at_line(origin: Origin | None) -> bool:
    """The outer command, `xargs -d '\\n'`, takes whole lines."""
    texts = [] if origin is None else [word.literal or "" for word in origin.command.words]
    return any(" ".join(pair) in ("-d \\n", "--delimiter \\n") for pair in pairwise(texts)) or not _BY_LINE.isdisjoint(
        texts
    )


def _names_beneath(word: Word, place: Place) -> Iterator[Names]:
    """Every path that a word made of file names may be, in its parts; `-` and a blank when that is not known."""
    for base in word.beneath:
        for text in possible_texts(base, place) or ["- "]:
            start = () if text in (".", "./") else (text,)
            yield start or (text,)
            if place.folder is not None:
                place.budget.found_in.add(os.path.join(place.folder, text))
                if indexed_beneath(place.folder / text, base.selection, place.budget) is not None:
                    continue
                for above, listing in walk(place.folder / text, place.budget, base.selection):
                    yield from ((*start, *above, entry.name) for entry in listing.entries)
        if base.selection.tracked and place.folder is not None:
            yield from _tracked_paths(place.folder, base.selection, place.budget)


def _tracked_paths(folder: Path, selection: Selection, budget: DiskBudget) -> Iterator[Names]:
    """What git may print, from the top of the working tree or from the folder on."""
    top = top_of(folder)
    if top is None:
        return
    names = tracked_names(top)
    if names is None:
        yield ("- ",)
        return
    budget.spend_entries(len(names))
    above = f"{folder.relative_to(top)}/" if folder != top else ""
    for name in names:
        if not selection.endings or name.casefold().endswith(selection.endings):
            yield tuple(name.split("/"))
            if above and name.startswith(above):
                yield tuple(name.removeprefix(above).split("/"))
