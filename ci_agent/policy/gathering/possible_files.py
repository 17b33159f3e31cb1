"""Words of which nobody knows whether they name files: what the disk says they would name."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ci_agent.policy.facts import FileFact, UnknownFact
from ci_agent.policy.gathering.file_facts import Place, file_fact
from ci_agent.policy.gathering.open_paths import open_texts
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.matchers.open_names import OPEN
from ci_agent.policy.protected import FREE, guard_write
from ci_agent.policy.words import Word
from ci_agent.workspace import InvalidPathError, check_path_text

_MAX_PATH: Final = 4096
"""Longer text is no path to the kernel."""

_COST: Final = 20
"""Finding out where a path leads takes as long as seeing this many entries of a folder."""

_SEPARATORS: Final = re.compile(r"[:,=]")
_GLUED: Final = re.compile(r"[:,=@]")
_LISTED: Final = re.compile(r"[,=]")
_VALUES_IN_CLUSTERS: Final = (3, 4)
"""Where a value may begin in a cluster of two or three options; behind more a word is hardly one."""

_WITHOUT_PARTS: Final = re.compile(r"[^@:,=-][^:,=]*")


def possible_files(
    site: Site, words: tuple[Word, ...], place: Place, *, whole: bool = False, writes: bool = False
) -> Iterator[FileFact | UnknownFact]:
    """What is there under the name of a word, or of a part of one such as the value in `--file=.env`.

    `whole`: all beneath a folder may be read too, as by a program of which nothing is known.
    `writes`: what is protected may be written too, also before it is there, as by code of which nothing is known.
    """
    if place.folder is None or not words:
        return
    names = (known for word in words for known in _known(site, word, place))
    folders: dict[str, bool] = {}
    for text in _each_once(part for known in names for part in _parts(known)):
        place.budget.spend_entries(_COST)
        if _is_somewhere(text, place.folder, folders):
            yield from _found(site, text, place, whole, writes)
        elif writes and "/" in text:
            yield from _protected(site, text, place)
    for text in _each_once(part for word in words if whole for part in _glued(word.text)):
        place.budget.spend_entries(_COST)
        if _is_there(text, place.folder):
            named = file_fact(site, text, "read", place)
            inside = isinstance(named, FileFact) and site.workspace.contains(named.path)
            yield from _found(site, text, place, inside, inside)
        elif "/" in text:
            yield from _protected(site, text, place)


def _each_once(texts: Iterable[str]) -> Iterator[str]:
    """As they come: where a bound is exceeded, the rest need not be made."""
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _known(site: Site, word: Word, place: Place) -> Iterator[str]:
    for text in open_texts(site, word, place.folder, place.budget) or ():
        if OPEN not in text:
            yield text
    for each in word.choices or (word,):
        if each.literal is not None:
            yield each.literal


def _parts(text: str) -> list[str]:
    parts = [text, text.partition("=")[2]]
    if _WITHOUT_PARTS.fullmatch(text):
        return parts
    parts += [text.removeprefix("@"), text[2:] if text.startswith("-") else text]
    # Parts of a list; what looks like a way out, as in a URL, has been seen to.
    return parts + [part for part in _SEPARATORS.split(text) if not part.startswith(("/", "~"))]


def _glued(text: str) -> Iterator[str]:
    """What may be the value of a short option in a cluster (`-xo../x`), or stand behind a list's or a pair's sign."""
    is_option = text[:1] in ("-", "+")
    if is_option and text[1:2] != "-":
        yield from (text[at:] for at in _VALUES_IN_CLUSTERS if len(text) > at and text[1:at].isalnum())
        yield text[2:] if text[0] == "+" else ""
    parts = [] if "://" in text else (_GLUED if is_option else _LISTED).split(text)[1:]
    yield from (part for part in parts if is_option or part.startswith(("/", "../")))


def _is_there(text: str, folder: Path) -> bool:
    """Something has the name, or may get it in a folder that is there and not the root."""
    if not text or len(text) > _MAX_PATH:
        return False
    try:
        check_path_text(text)
        above = os.path.dirname(text) if text.startswith(("/", "../")) else ""
        return os.path.lexists(folder / text) or (above not in ("", "/") and os.path.isdir(folder / above))
    except (InvalidPathError, ValueError):
        return False


def _is_somewhere(text: str, folder: Path, folders: dict[str, bool]) -> bool:
    """Something has the name, or may get it in a folder that is there.

    `folders`: whether they are there, as far as that has been asked.
    """
    if not text or len(text) > _MAX_PATH:
        return False
    try:
        check_path_text(text)
        above = os.path.dirname(text)
        if above not in folders:
            folders[above] = os.path.isdir(folder / above)
        # A `Path` reads `x/` and `x/.` as `x`, which may be a file; every other name needs its folder.
        return folders[above] or (os.path.basename(text) in ("", ".") and os.path.lexists(folder / text))
    except (InvalidPathError, ValueError):
        return False


def _found(site: Site, text: str, place: Place, whole: bool, writes: bool) -> Iterator[FileFact | UnknownFact]:
    """In the workspace it may be read; outside, where only a link leads to, it may be written as well."""
    read = file_fact(site, text, "read", place, beneath=[] if whole else None)
    yield read
    if not isinstance(read, FileFact):
        return
    if not site.workspace.contains(read.path):
        yield file_fact(site, text, "write", place)
    elif writes:
        guarded = guard_write(read.path, site.workspace.root, site.around, budget=place.budget)
        if guarded != FREE:
            yield FileFact("write", read.path, read.written, read.is_folder, False, guarded, read.argument, read.span)


def _protected(site: Site, text: str, place: Place) -> Iterator[FileFact]:
    """Something that is protected before it is there."""
    made = file_fact(site, text, "write", place)
    if isinstance(made, FileFact) and made.guarded != FREE:
        yield made
