"""What bash makes of a glob, with its default options, looking at the disk as it is now."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, Entry, read_folder

_SPECIAL = frozenset("*?[")
_FIRST_SPECIAL = re.compile(r"[*?\[\\]")


class UnknownGlobError(Exception):
    """A glob that bash and this module might read differently."""


_COST: Final = 10
"""To compile a character of a pattern takes as long as to see this many entries of a folder."""

_COST_AGAIN: Final = 5
"""What is done with a name takes as long as to see this many."""


def expand_glob(pattern: str, folder: Path, budget: DiskBudget) -> list[str]:
    """The words that bash makes of a glob in a folder, with its default options, sorted.

    `pattern` escapes what was quoted by a backslash. No match: the pattern itself without the backslashes.
    Raises UnknownGlobError, or BoundExceededError.
    """
    start = str(folder)
    known = budget.globs.get((pattern, start))
    if known is not None:
        # The variable of a loop is the same glob wherever it stands.
        budget.spend_entries(_COST_AGAIN * len(known))
        return known
    names = budget.globs[pattern, start] = _expanded(pattern, start, budget)
    above, slash, _ = _FIRST_SPECIAL.split(pattern, maxsplit=1)[0].rpartition("/")
    budget.found_in.add(os.path.join(start, above + slash) if slash else start)
    return names


def _expanded(pattern: str, folder: str, budget: DiskBudget) -> list[str]:
    parts = _parts(pattern)
    start, found = ("/", ["/"]) if pattern.startswith("/") else (folder, [""])
    for at, part in enumerate(parts, start=1):
        found = [path for base in found for path in _step(start, base, part, at == len(parts), budget)]
    names = sorted([path for path in found if path])
    budget.spend_names(len(names))
    return names or [unescape(pattern)]


def unescape(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def _parts(pattern: str) -> list[str]:
    if "/" not in pattern:
        return [pattern]
    parts = re.split(r"/+", pattern.lstrip("/"))
    if "[" in pattern and re.search(r"\[[^\]]*/", pattern):
        raise UnknownGlobError("a slash in brackets")
    return parts


def _step(start: str, base: str, part: str, is_last: bool, budget: DiskBudget) -> Iterator[str]:
    if part == "":
        if os.path.isdir(os.path.join(start, base)):
            yield base + "/" * (not base.endswith("/"))
        return
    join = base if base == "" or base.endswith("/") else base + "/"
    if not _is_pattern(part):
        if os.path.lexists(os.path.join(start, join + unescape(part))):
            yield join + unescape(part)
        return
    budget.spend_entries(_COST * len(part))
    matches = _matcher(part)
    shows_hidden = part.startswith((".", "\\."))
    if shows_hidden:
        # Until bash 5.2, `.*` became these too.
        yield from (join + name for name in (".", "..") if matches(name))
    entries = read_folder(Path(start, base) if base else start, budget).entries
    # To match a name takes twice as long as to read it.
    budget.spend_entries(2 * len(entries))
    for entry in entries:
        hidden = entry.name.startswith(".") and not shows_hidden
        if not hidden and matches(entry.name) and (is_last or _is_folder(entry)):
            yield join + entry.name


def _is_folder(entry: Entry) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads to itself: bash finds nothing there either


def _is_pattern(part: str) -> bool:
    plain = re.sub(r"\\.", "", part, flags=re.DOTALL) if "\\" in part else part
    return not _SPECIAL.isdisjoint(plain)


@lru_cache(maxsize=256)
def _matcher(part: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate("".join(_translated(part)))).match


def _translated(part: str) -> Iterator[str]:
    """The same glob as `fnmatch` writes it."""
    at = 0
    while at < len(part):
        char = part[at]
        if char == "\\":
            at += 1
            escaped = part[at : at + 1]
            yield f"[{escaped}]" if escaped in _SPECIAL and escaped else escaped
        elif char == "[":
            bracket, at = _bracket(part, at)
            yield bracket
        else:
            yield char
        at += 1


def _bracket(part: str, start: int) -> tuple[str, int]:
    """A bracket expression in `fnmatch`'s spelling, and where it ends; a lone bracket is literal."""
    negated = part[start + 1 : start + 2] in ("!", "^")
    first = start + 1 + negated
    end = part.find("]", first + 1)
    if end < 0:
        return "[[]", start
    inner = part[first:end]
    if "\\" in inner or any(mark in inner for mark in ("[:", "[.", "[=")):
        raise UnknownGlobError("a character class")
    return f"[{'!' * negated}{inner}]", end
