"""Text with `*` and `{a,b}`: the part that all patterns of a policy have in common. Matching takes linear time."""

import re
from dataclasses import dataclass
from typing import Final

STAR: Final = "\0"
"""Stands for a `*` that is meant as a wildcard, in the texts that `expand` returns."""

MAX_ALTERNATIVES: Final = 1_000

_OPEN, _CLOSE, _COMMA = "\1", "\2", "\3"
_MARKS = {"*": STAR, "{": _OPEN, "}": _CLOSE, ",": _COMMA}
_UNMARK = str.maketrans({_OPEN: "{", _CLOSE: "}", _COMMA: ","})
_SIMPLE = re.compile(r"[^{},\\\x00-\x03]*")
_ESCAPABLE = frozenset("*{},\\")
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Wildcard:
    """One alternative: literal chunks with any characters, also none, between them."""

    chunks: tuple[str, ...]

    @property
    def literal(self) -> str | None:
        """The one text that it matches; None when it has a `*`."""
        return self.chunks[0] if len(self.chunks) == 1 else None

    @property
    def prefix(self) -> str:
        """What every text that it matches begins with."""
        return self.chunks[0]

    @property
    def longest(self) -> str:
        """The longest of what every text that it matches contains."""
        return max(self.chunks, key=len)

    @property
    def is_star(self) -> bool:
        """Matches every text: the pattern is `*`, or several of them."""
        return len(self.chunks) > 1 and not any(self.chunks)

    def matches(self, text: str, gap: int = 0) -> bool:
        """Whether the whole text fits, with each `*` standing for at least `gap` characters."""
        first, last = self.chunks[0], self.chunks[-1]
        if len(self.chunks) == 1:
            return text == first
        at, end = len(first), len(text) - len(last)
        if at + gap > end or not text.startswith(first) or not text.endswith(last):
            return False
        for chunk in self.chunks[1:-1]:
            # The leftmost place is always as good as any other: what follows has the most room.
            at = text.find(chunk, at + gap, end - gap)
            if at < 0:
                return False
            at += len(chunk)
        return True


def wildcard(text: str) -> Wildcard:
    """Compile one of the texts that `expand` returns."""
    return Wildcard(tuple(text.split(STAR)))


def parse_wildcards(pattern: str) -> tuple[Wildcard, ...]:
    """A pattern's alternatives, each once; ValueError as for `expand`."""
    return tuple([wildcard(text) for text in dict.fromkeys(expand(pattern))])


def expand(pattern: str) -> tuple[str, ...]:
    """The texts that a pattern stands for, `{a,b}` multiplied out, with STAR for each wildcard.

    A backslash makes the next of `* { } , \\` literal and is itself literal before anything else; braces without a
    comma are literal. ValueError: too many alternatives or levels, or a NUL or its like, which no name can hold.
    """
    if _SIMPLE.fullmatch(pattern):
        return (pattern.replace("*", STAR),)
    if any(char in pattern for char in (STAR, _OPEN, _CLOSE, _COMMA)):
        raise ValueError("a pattern cannot contain control characters")
    return tuple(text.translate(_UNMARK) for text in _expand(_mark(pattern), 0))


def escape(text: str) -> str:
    """The pattern that matches this text alone."""
    return "".join("\\" + char if char in _ESCAPABLE else char for char in text)


def _mark(pattern: str) -> str:
    marked = []
    chars = iter(pattern)
    for char in chars:
        if char != "\\":
            marked.append(_MARKS.get(char, char))
            continue
        following = next(chars, "")
        marked.append(following if following and following in _ESCAPABLE else char + following)
    return "".join(marked)


def _expand(marked: str, depth: int) -> list[str]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"braces are nested more than {_MAX_DEPTH} levels deep")
    results = [""]
    for piece in _pieces(marked):
        options = _options(piece, depth)
        if len(results) * len(options) > MAX_ALTERNATIVES:
            raise ValueError(f"the braces multiply out to more than {MAX_ALTERNATIVES} alternatives")
        results = [head + tail for head in results for tail in options]
    return results


def _pieces(marked: str) -> list[str]:
    """Cut into runs of text and whole brace groups; a brace without its partner is text."""
    partner = _partners(marked)
    pieces, start, at = [], 0, 0
    while at < len(marked):
        if at in partner:
            pieces += [marked[start:at], marked[at : partner[at] + 1]]
            start = at = partner[at] + 1
        else:
            at += 1
    pieces.append(marked[start:])
    return [piece for piece in pieces if piece]


def _partners(marked: str) -> dict[int, int]:
    partners, opened = {}, []
    for at, char in enumerate(marked):
        if char == _OPEN:
            opened.append(at)
        elif char == _CLOSE and opened:
            partners[opened.pop()] = at
    return partners


def _options(piece: str, depth: int) -> list[str]:
    if piece[0] != _OPEN or piece[-1] != _CLOSE:
        return [piece]
    parts = _split_at_commas(piece[1:-1])
    if len(parts) == 1:
        return ["{" + inner + "}" for inner in _expand(parts[0], depth + 1)]
    return [option for part in parts for option in _expand(part, depth + 1)]


def _split_at_commas(inner: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(inner):
        if char == _OPEN:
            depth += 1
        elif char == _CLOSE:
            depth -= 1
        elif char == _COMMA and depth == 0:
            parts.append(inner[start:at])
            start = at + 1
    return [*parts, inner[start:]]
