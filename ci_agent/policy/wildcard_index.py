"""Finds the wildcards that may match a text without trying all of them."""

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

from ci_agent.policy.wildcards import Wildcard

Payload = TypeVar("Payload")

_FEW: Final = 8
"""So many are tried one by one; arranging them would cost more."""


class WildcardIndex(Generic[Payload]):
    """Payloads by their wildcard: by its text, by what it begins with, or by what it ends in."""

    def __init__(self, entries: Iterable[tuple[Wildcard | None, Payload]]) -> None:
        """None stands for a wildcard that matches everything."""
        self._others: list[Payload] = []
        self._texts: dict[str, list[Payload]] = {}
        self._prefixes: dict[str, list[Payload]] = {}
        self._suffixes: dict[str, list[Payload]] = {}
        entries = list(entries)
        if len(entries) <= _FEW:
            self._others = [payload for _, payload in entries]
        else:
            for wild, payload in entries:
                self._place(wild).append(payload)
        self._prefix_sizes = {len(prefix) for prefix in self._prefixes}
        self._suffix_sizes = {len(suffix) for suffix in self._suffixes}

    def near(self, text: str) -> Iterator[Payload]:
        """Every payload whose wildcard may match the text, and perhaps others."""
        yield from self._others
        yield from self._texts.get(text, ())
        for size in self._prefix_sizes:
            yield from self._prefixes.get(text[:size], ()) if size <= len(text) else ()
        for size in self._suffix_sizes:
            yield from self._suffixes.get(text[-size:], ()) if size <= len(text) else ()

    def _place(self, wild: Wildcard | None) -> list[Payload]:
        if wild is None:
            return self._others
        if wild.literal is not None:
            return self._texts.setdefault(wild.literal, [])
        if wild.prefix:
            return self._prefixes.setdefault(wild.prefix, [])
        return self._suffixes.setdefault(wild.chunks[-1], []) if wild.chunks[-1] else self._others
