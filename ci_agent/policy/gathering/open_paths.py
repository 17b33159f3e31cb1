"""Paths that are known but for their digits, as facts: those that are there already, and one for all others."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, read_folder
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.facts import FileFact
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.matchers.open_names import OPEN, may_become, opened
from ci_agent.policy.matchers.reach import Names, fold, fold_names, names_of
from ci_agent.policy.protected import guard_read, guard_write
from ci_agent.policy.words import Word
from ci_agent.workspace import InvalidPathError

_SPECIAL: Final = ("/dev", "/proc", "/sys", "~")
"""What begins so is no plain path."""


def open_texts(site: Site, word: Word, folder: Path | None, budget: DiskBudget) -> list[str] | None:
    """Every path that a word may become, open ones among them; None: nobody knows them."""
    if not word.stand_ins or word.splits or folder is None or word.prefix.startswith(_SPECIAL):
        return None
    texts: dict[str, None] = {}
    for text in opened(word.stand_ins):
        if OPEN in text and not {"", ".", ".."}.isdisjoint(text.rstrip("/").split("/")[1:]):
            return None
        try:
            texts |= dict.fromkeys(_there_and_not(site, text, folder, budget))
        except InvalidPathError:
            return None
    return list(texts)


def _there_and_not(site: Site, text: str, folder: Path, budget: DiskBudget) -> Iterator[str]:
    """The text, and what it may become of the names that are there."""
    yield text
    names = text.split("/")
    at = next((at for at, name in enumerate(names) if OPEN in name), None)
    if at is None:
        return
    above, rest = "/".join((*names[:at], "")), names[at + 1 :]
    for entry in read_folder(_reached(site, above, folder), budget).entries:
        if may_become(fold(names[at]), fold(entry.name)):
            budget.spend_names(1)
            yield from _there_and_not(site, "/".join((above + entry.name, *rest)), folder, budget)


def open_fact(site: Site, text: str, effect: FileEffect, folder: Path, beneath: list[Names] | None) -> FileFact | str:
    """The fact for an open path whose first open name is not there yet; or why it cannot be told what it is."""
    names = text.rstrip("/").split("/")
    at = next(at for at, name in enumerate(names) if OPEN in name)
    above = _reached(site, "/".join((*names[:at], "")), folder)
    path = above.joinpath(*names[at:])
    if os.path.lexists(above / names[at]):
        return f"{text.replace(OPEN, '*')} is a name that nobody can tell from others"
    written = Path(os.path.normpath(folder / text))
    if any(may_meet(path, each) for each in (*site.around.records, *site.around.runner_files)):
        return f"{text.replace(OPEN, '*')} may name a file of this run"
    if effect in ("read", "list"):
        guarded = guard_read(path, site.around)
    else:
        guarded = guard_write(path, site.workspace.root, site.around, beneath=beneath, deleted=effect == "delete")
    return FileFact(effect, path, written, recursive=beneath is not None, guarded=guarded)


def may_meet(open_path: Path, path: Path) -> bool:
    """Whether one may be the other, or lie beneath it."""
    return all(map(may_become, fold_names(names_of(open_path)), fold_names(names_of(path))))


def _reached(site: Site, above: str, folder: Path) -> Path:
    return site.workspace.resolve(above or ".", start=folder)
