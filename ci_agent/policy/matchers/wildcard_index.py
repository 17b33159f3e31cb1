"""Finds the wildcards that may match a text without trying all of them."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, Generic, TypeVar

from ci_agent.policy.matchers.wildcards import Wildcard

Payload = TypeVar("Payload")

_FEW: Final = 8
"""So many are tried one by one; arranging them would cost more."""
_LOOK: Final = 2
_SIZES: Final = 4
_MIDDLES: Final = 8
"""So many of them are tried in the time that it takes to see an entry of a folder."""


class WildcardIndex(Generic[Payload]):
    """Payloads by the longest text that their wildcard wants: as a whole, as a beginning, as an end, or anywhere."""

    def __init__(self, entries: Iterable[tuple[Wildcard | None, Payload]]) -> None:
        """None stands for a wildcard that matches everything."""
        self._others: list[Payload] = []
        self._texts: dict[str, list[Payload]] = {}
        self._prefixes: dict[str, list[Payload]] = {}
        self._suffixes: dict[str, list[Payload]] = {}
        self._middles: dict[str, list[Payload]] = {}
        entries = list(entries)
        if len(entries) <= _FEW:
            self._others = [payload for _, payload in entries]
        else:
            for wild, payload in entries:
                self._place(wild).append(payload)
        self._prefix_sizes = {len(prefix) for prefix in self._prefixes}
        self._suffix_sizes = {len(suffix) for suffix in self._suffixes}
        self._has_wildcards = bool(self._prefixes or self._suffixes or self._middles)
        sizes = len(self._prefix_sizes) + len(self._suffix_sizes)
        self.cost = _LOOK + sizes // _SIZES + len(self._middles) // _MIDDLES
        """Of `near` itself, as many entries of a folder could be seen."""

    def near(self, text: str) -> Iterable[Payload]:
        """Every payload whose wildcard may match the text, and perhaps others."""
        if not self._has_wildcards:
            return (*self._others, *self._texts[text]) if text in self._texts else self._others
        found: list[Sequence[Payload]] = [self._others, self._texts.get(text, ())]
        found += [self._prefixes.get(text[:size], ()) for size in self._prefix_sizes if size <= len(text)]
        found += [self._suffixes.get(text[-size:], ()) for size in self._suffix_sizes if size <= len(text)]
        found += [payloads for middle, payloads in self._middles.items() if middle in text]
        return chain.from_iterable(found)

    def _place(self, wild: Wildcard | None) -> list[Payload]:
        if wild is None:
            return self._others
        if wild.literal is not None:
            return self._texts.setdefault(wild.literal, [])
        longest = wild.longest
        if not longest:
            return self._others
        if longest == wild.prefix:
            return self._prefixes.setdefault(longest, [])
        places = self._suffixes if longest == wild.chunks[-1] else self._middles
        return places.setdefault(longest, [])
