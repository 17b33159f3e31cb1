"""Lists of what a build leaves out of the folder that it sends, as docker reads them (`.dockerignore`)."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from ci_agent.policy.matchers.path_patterns import PathPatterns, Spend, lines_of, path_pattern

_SENT_ANYWAY: Final = ("!Dockerfile", "!dockerfile", "!Containerfile", "!.dockerignore", "!.containerignore")
_UNCERTAIN: Final = re.compile(r"[?\[\]\\\0\x1c-\x1f()+^|{}]|\*\*[^/]|[^/]\*\*")
"""Sets and the like, escapes, `**` that is no whole name, what is a blank to Python alone, and what docker, which makes
an expression of a pattern, leaves in it as it is."""


class _Pattern(NamedTuple):
    takes_in: bool
    """It begins with a `!`."""
    path: str | None
    """None: not every reader takes it alike."""
    text: str


class _Group(NamedTuple):
    """Patterns one after another, of which it is the same which one fits."""

    takes_in: bool
    patterns: PathPatterns | None
    """None: any path may fit."""


class IgnoreList(NamedTuple):
    groups: tuple[_Group, ...]
    """In their order; the last that fits a path, or a folder above it, decides."""
    back: tuple[str, ...]
    """What it takes in again, each with a slash at its end."""
    takes_in: bool
    """Something is taken in again that is not sent by every builder anyway."""


@lru_cache(maxsize=16)
def parse_list(text: str) -> IgnoreList:
    """ValueError: it has too many patterns to be asked within a short time."""
    own = [pattern for line in lines_of(text) if not line.startswith("#") for pattern in _parse(line)]
    patterns = [*own, *(pattern for line in _SENT_ANYWAY for pattern in _parse(line))]
    certain = [pattern for pattern in patterns if pattern.takes_in or pattern.path is not None]
    groups = tuple(_group(takes_in, list(each)) for takes_in, each in groupby(certain, lambda each: each.takes_in))
    back = tuple(f"{pattern.text}/" for pattern in patterns if pattern.takes_in)
    return IgnoreList(groups, back, any(pattern.takes_in for pattern in own))


def _parse(line: str) -> Iterator[_Pattern]:
    takes_in = line.strip().startswith("!")
    path = line.strip().removeprefix("!").strip()
    if not path:
        return
    path = posixpath.normpath(path).lstrip("/")
    if path.startswith("!") and not takes_in:  # docker takes the slash away first
        yield _Pattern(takes_in=True, path=None, text=path[1:])
        return
    is_plain = path.isprintable() and path == path.strip() and not _UNCERTAIN.search(line)
    certain = is_plain and path not in ("", ".") and not path.startswith("..")
    yield _Pattern(takes_in, path if certain else None, path)


def _group(takes_in: bool, patterns: Sequence[_Pattern]) -> _Group:
    paths = [pattern.path for pattern in patterns if pattern.path is not None]
    return _Group(takes_in, PathPatterns(map(path_pattern, paths)) if len(paths) == len(patterns) else None)


def leaves_out(ignoring: IgnoreList, path: Sequence[str], spend: Spend) -> bool:
    """Whether a path in the folder is not sent for certain: by docker today, and by older readers."""
    return _decides(ignoring, path, spend) and _is_passed_by_older(ignoring, path, spend)


def leaves_out_all_beneath(ignoring: IgnoreList, folder: Sequence[str], spend: Spend) -> bool:
    """Whether nothing in a folder is sent, so that none of it need be looked at."""
    return not ignoring.takes_in and leaves_out(ignoring, folder, spend)


def _decides(ignoring: IgnoreList, path: Sequence[str], spend: Spend) -> bool:
    out = False
    for takes_in, patterns in ignoring.groups:
        if out == takes_in and (patterns is None or patterns.hold(path, spend)):
            out = not out
    return out


def _decides_for_older(ignoring: IgnoreList, path: Sequence[str], spend: Spend) -> bool:
    """Of the folders above they look only at the one that is as deep as the pattern, but for what is taken in."""
    out = False
    for takes_in, patterns in ignoring.groups:
        if takes_in and out:
            out = patterns is not None and not patterns.hold(path, spend)
        elif not takes_in and not out:
            out = patterns is not None and patterns.hold_as_deep(path, spend)
    return out


def _is_passed_by_older(ignoring: IgnoreList, path: Sequence[str], spend: Spend) -> bool:
    """They do not enter a folder that is left out, unless a `!` begins with its name."""
    for size in range(len(path), 0, -1):
        spend(1 + len(ignoring.back))
        above = path[:size]
        is_entered = size < len(path) and any(text.startswith(f"{'/'.join(above)}/") for text in ignoring.back)
        if not is_entered and _decides_for_older(ignoring, above, spend):
            return True
    return False
