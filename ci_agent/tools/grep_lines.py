"""How grep shows the matches of one file: `path:line:text`, lines around them as `path-line-text`."""

from collections.abc import Iterable
from dataclasses import dataclass

from ci_agent.tools.line_search import FoundLine, LinePattern
from ci_agent.tools.truncate import count_of

GROUP_SEPARATOR = "--"

MAX_SHOWN_CHARS = 500
"""Of one line; in a longer one the part around the match is shown."""

_CHARS_BEFORE_MATCH = 100


@dataclass(frozen=True, slots=True)
class Limits:
    max_matches: int
    max_bytes: int
    context: int
    """Lines around each match."""


@dataclass(frozen=True, slots=True)
class ShownMatches:
    lines: tuple[str, ...] = ()
    matches: int = 0
    has_more: bool = False
    """A limit left something out."""

    @property
    def size_bytes(self) -> int:
        return sum(len(line.encode()) + 1 for line in self.lines)


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    text: str


def show_matches(path: str, found: Iterable[FoundLine], pattern: LinePattern, limits: Limits) -> ShownMatches:
    """As many matches as the limits allow, with the lines around them that were found."""
    taken: list[_Numbered] = []
    matches = last_match = size = 0
    has_more = False
    for line in found:
        mark = ":" if line.is_match else "-"
        text = f"{path}{mark}{line.number}{mark}{_shown_text(line, pattern)}"
        size += len(text.encode()) + len(GROUP_SEPARATOR) + 2
        has_more = size > limits.max_bytes or (line.is_match and matches == limits.max_matches)
        if has_more:
            break
        if line.is_match:
            matches, last_match = matches + 1, line.number
        taken.append(_Numbered(line.number, text))
    # Lines before a match that is not shown any more would stand there without reason.
    reach = last_match + limits.context if matches else 0
    shown = [line for line in taken if line.number <= reach]
    return ShownMatches(_grouped(shown) if limits.context else tuple(line.text for line in shown), matches, has_more)


def _grouped(lines: list[_Numbered]) -> tuple[str, ...]:
    grouped: list[str] = []
    previous = lines[0].number - 1 if lines else 0
    for line in lines:
        if line.number > previous + 1:
            grouped.append(GROUP_SEPARATOR)
        grouped.append(line.text)
        previous = line.number
    return tuple(grouped)


def _shown_text(line: FoundLine, pattern: LinePattern) -> str:
    text = line.text.decode("utf-8", "replace")
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    match = pattern.search(line.text) if line.is_match else None
    before = len(line.text[: match.start()].decode("utf-8", "replace")) if match else 0
    start = max(min(before - _CHARS_BEFORE_MATCH, len(text) - MAX_SHOWN_CHARS), 0)
    omitted = count_of(len(text) - MAX_SHOWN_CHARS, "character")
    return f"{'...' if start else ''}{text[start : start + MAX_SHOWN_CHARS]} [... {omitted} left out ...]"
