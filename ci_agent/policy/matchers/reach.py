"""Which files a rule reaches: its globs, anchored, and an index that finds the globs worth trying for a path."""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from ci_agent.policy.matchers.path_globs import Part, PathGlob, covers_beneath, matches_parts
from ci_agent.policy.matchers.wildcard_index import WildcardIndex
from ci_agent.policy.matchers.wildcards import Wildcard

Names: TypeAlias = tuple[str, ...]
"""An absolute path without its `/`, name by name."""


@dataclass(frozen=True, slots=True)
class AnchoredGlob:
    text: str
    """As it was written."""
    prefix: Names
    """What every path that it covers begins with."""
    tail: tuple[Part, ...]

    @property
    def last(self) -> Wildcard | None:
        """What the last name of every path that it covers must fit; None: anything does."""
        last = self.tail[-1] if self.tail else Wildcard((self.prefix[-1] if self.prefix else "",))
        return None if last is None or last.is_star else last

    def covers(self, names: Names) -> bool:
        size = len(self.prefix)
        return names[:size] == self.prefix and matches_parts(self.tail, names[size:])

    def covers_listing(self, names: Names) -> bool:
        """Whether a folder's list of names is within reach: the folder itself, or all that it holds, fits."""
        return self.covers(names) or self.covers((*names, ""))

    def covers_beneath(self, names: Names) -> bool:
        """Whether everything beneath a folder fits."""
        size = len(self.prefix)
        return names[:size] == self.prefix and covers_beneath(self.tail, names[size:])

    def reaches_into(self, names: Names) -> bool:
        """Whether something in or beneath a folder may fit, or the folder itself does."""
        prefix = self.prefix
        if names[: len(prefix)] != prefix[: len(names)]:
            return False
        return not all(self.tail) or len(names) < len(prefix) + len(self.tail) or self.covers(names)

    def spells(self, run: Names) -> bool:
        """Whether these names stand in it one after another, without a wildcard, in any case."""
        literals = [fold(part.literal) if part and part.literal is not None else None for part in self._parts()]
        return any(tuple(literals[at : at + len(run)]) == run for at in range(len(literals) - len(run) + 1))

    def _parts(self) -> tuple[Part, ...]:
        return (*(Wildcard((name,)) for name in self.prefix), *self.tail)


@dataclass(frozen=True, slots=True)
class Anchors:
    """Where globs start."""

    workspace: Path
    home: Path | None
    real: dict[Names, Names] = field(default_factory=dict, compare=False)
    """Where the fixed beginnings of globs lead: most rules begin alike."""


def names_of(path: Path) -> Names:
    return path.parts[1:]


def fold(name: str) -> str:
    """The form in which denies compare: on some systems names that differ in case or composition are one file."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def fold_all(names: Sequence[str]) -> list[str]:
    """Each of many names of files, folded."""
    joined = "/".join(names)
    return joined.lower().split("/") if names and joined.isascii() else list(map(fold, names))


def fold_names(names: Names) -> Names:
    return tuple(fold_all(names))


def anchor(glob: PathGlob, anchors: Anchors) -> tuple[AnchoredGlob, ...]:
    """The globs, from `/` on, that an allow rule's glob stands for; ValueError for `~/` when there is no home.

    The fixed beginning of an absolute glob is freed of symlinks, as every path is before it is matched
    (`/tmp` is a link on macOS). One in the workspace is not: who may edit the workspace could turn it elsewhere.
    """
    base = _base(glob, anchors)
    anchored = [_split(glob.text, base, parts) for parts in glob.alternatives]
    if glob.anchor == "workspace":
        return tuple(anchored)
    return tuple(_without_links(each, anchors) for each in anchored)


def anchor_for_denial(glob: PathGlob, anchors: Anchors) -> tuple[AnchoredGlob, ...]:
    """As `anchor`, folded, and in both spellings where the fixed beginning leads through a symlink."""
    base = _base(glob, anchors)
    written = [_split(glob.text, base, parts) for parts in glob.alternatives]
    resolved = (_resolved(each, anchors) for each in written)
    both = [*written, *(each for each in resolved if each not in written)]
    return tuple(dict.fromkeys(map(_folded, both)))


Payload = TypeVar("Payload")


class GlobIndex(Generic[Payload]):
    """Finds what belongs to the globs that cover a path, without trying all of them."""

    def __init__(self, entries: Iterable[tuple[AnchoredGlob, Payload]]) -> None:
        by_prefix: dict[Names, list[tuple[Wildcard | None, tuple[AnchoredGlob, Payload]]]] = {}
        self._by_part: dict[Names, list[tuple[str, tuple[AnchoredGlob, Payload]]]] = {}
        self._by_name: dict[Names, dict[str, list[tuple[AnchoredGlob, Payload]]]] = {}
        for glob, payload in entries:
            part = _part_on_the_way(glob)
            if part is None:
                last = glob.tail[-1] if glob.tail else None
                by_prefix.setdefault(glob.prefix, []).append((last, (glob, payload)))
            elif part.literal is None:
                self._by_part.setdefault(glob.prefix, []).append((part.longest, (glob, payload)))
            else:
                self._by_name.setdefault(glob.prefix, {}).setdefault(part.literal, []).append((glob, payload))
        self._by_prefix = {prefix: WildcardIndex(entries) for prefix, entries in by_prefix.items()}
        self._sizes = sorted({len(prefix) for prefix in (*self._by_prefix, *self._by_part, *self._by_name)})

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def near(self, names: Names) -> Iterator[tuple[AnchoredGlob, Payload]]:
        """The globs that may cover the path, or list it, or all beneath it."""
        last = names[-1] if names else ""
        for size in self._sizes:
            prefix = names[:size]
            index = self._by_prefix.get(prefix) if size <= len(names) else None
            if index is not None:
                yield from index.near(last)
            by_name = self._by_name.get(prefix, {})
            for name in dict.fromkeys(names[size:]) if by_name else ():
                yield from by_name.get(name, ())
            if prefix in self._by_part:
                way = "/".join(names[size:])
                yield from [found for longest, found in self._by_part[prefix] if longest in way]

    def covering(self, names: Names) -> Iterator[Payload]:
        return (payload for glob, payload in self.near(names) if glob.covers(names))


def _part_on_the_way(glob: AnchoredGlob) -> Wildcard | None:
    """What a name fits of every path which the glob covers or lists, when its last part does not tell."""
    if glob.last is not None:
        return None
    telling = [part for part in glob.tail[:-1] if part is not None and not part.is_star]
    literal = next((part for part in telling if part.literal is not None), None)
    return literal or max(telling, key=lambda part: len(part.longest), default=None)


def _base(glob: PathGlob, anchors: Anchors) -> Names:
    if glob.anchor == "workspace":
        return names_of(anchors.workspace)
    if glob.anchor == "root":
        return ()
    if anchors.home is None:
        raise ValueError(f"{glob.text!r}: the home folder is not known here; write the absolute path")
    return names_of(anchors.home)


def _split(text: str, base: Names, parts: Sequence[Part]) -> AnchoredGlob:
    prefix = list(base)
    for at, part in enumerate(parts):
        if part is None or part.literal is None:
            return AnchoredGlob(text, tuple(prefix), tuple(parts[at:]))
        prefix.append(part.literal)
    return AnchoredGlob(text, tuple(prefix), ())


def _without_links(glob: AnchoredGlob, anchors: Anchors) -> AnchoredGlob:
    inside = names_of(anchors.workspace)
    return glob if glob.prefix[: len(inside)] == inside else _resolved(glob, anchors)


def _resolved(glob: AnchoredGlob, anchors: Anchors) -> AnchoredGlob:
    real = anchors.real.get(glob.prefix)
    if real is None:
        real = anchors.real[glob.prefix] = names_of(Path(os.path.realpath("/" + "/".join(glob.prefix))))
    return glob if real == glob.prefix else AnchoredGlob(glob.text, real, glob.tail)


def _folded(glob: AnchoredGlob) -> AnchoredGlob:
    tail = tuple(part and Wildcard(tuple(map(fold, part.chunks))) for part in glob.tail)
    return AnchoredGlob(glob.text, fold_names(glob.prefix), tail)
