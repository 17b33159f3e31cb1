"""Many patterns over paths at once, from files of the workspace that list what is left out or taken in.

Whoever wrote such a file may want a decision to take long: what a look costs is told before the next one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ci_agent.policy.matchers.path_globs import Part, matches_parts
from ci_agent.policy.matchers.wildcard_index import WildcardIndex
from ci_agent.policy.matchers.wildcards import Wildcard

MAX_LINES: Final = 2_000
"""Of a file that lists patterns, comments included."""

COST: Final = 4
"""To read a line takes as long as to see so many entries of a folder."""

Spend: TypeAlias = Callable[[int], None]
"""Told how much was looked at, in entries of a folder; it raises when that is too much."""

_BENEATH: Final = Wildcard(("", ""))
"""A closing `**` is what lies in the folder."""
_NAMES_AT_ONCE: Final = 4
"""To hold a pattern against so many names takes as long as to see one more entry."""


class PathPattern(NamedTuple):
    parts: tuple[Part, ...]
    names: int
    """How many there are in its text, each `**` among them."""

    @property
    def name_anywhere(self) -> Wildcard | None:
        """The name that a path must end in, where nothing else matters."""
        return self.parts[1] if len(self.parts) == 2 and self.parts[0] is None else None


def path_pattern(text: str) -> PathPattern:
    """`*` is anything within a name, `**` any number of names; every other character is itself."""
    names = text.split("/")
    parts = [None if name == "**" else Wildcard(tuple(name.split("*"))) for name in names]
    return PathPattern((*parts, _BENEATH) if parts[-1] is None else tuple(parts), len(names))


def lines_of(text: str) -> list[str]:
    """Of a file that lists patterns; ValueError: they are too many to be read within a short time."""
    if text.count("\n") > MAX_LINES:
        raise ValueError(f"more than {MAX_LINES} lines")
    return text.removeprefix("\ufeff").split("\n")


class PathPatterns:
    """Asked with the names of a path."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        unique = list(dict.fromkeys(patterns))
        tied = [pattern for pattern in unique if pattern.name_anywhere is None]
        self._tied = WildcardIndex([(pattern.parts[0], pattern) for pattern in tied])
        self._anywhere = WildcardIndex(
            [(each.name_anywhere, each) for each in unique if each.name_anywhere is not None]
        )

    def fit(self, path: Sequence[str], spend: Spend) -> bool:
        """Whether one of them means the path itself."""
        return any(matches_parts(each.parts, path) for each in self._near(path, path[-1:], spend))

    def hold(self, path: Sequence[str], spend: Spend) -> bool:
        """Whether one of them means the path or a folder above it."""
        return any(matches_parts((*each.parts, None), path) for each in self._near(path, path, spend))

    def hold_as_deep(self, path: Sequence[str], spend: Spend) -> bool:
        """The same, but of the folders above only the one counts that is as deep as the pattern."""
        names = {path[-1], path[min(2, len(path)) - 1]}
        near = self._near(path, names, spend)
        return any(matches_parts(each.parts, path) or matches_parts(each.parts, path[: each.names]) for each in near)

    def _near(self, path: Sequence[str], names: Iterable[str], spend: Spend) -> Iterator[PathPattern]:
        """Those that may fit: by the first name of the path, or by one of the names."""
        cost = 2 + len(path) // _NAMES_AT_ONCE
        for index, text in ((self._tied, path[0]), *((self._anywhere, name) for name in names)):
            spend(index.cost)
            for pattern in index.near(text):
                spend(cost)
                yield pattern
