"""Exact replacements in one text: all of them or none, each against the original."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.nearest import describe_nearest
from ci_agent.tools.text_document import presentable

_MAX_OCCURRENCES = 100
_LISTED_LINES = 10
_LISTED_PROBLEMS = 20
_EXPLAINED_PROBLEMS = 3
"""Looking for the nearest place is the dear part."""


@dataclass(frozen=True, slots=True)
class Replacement:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Replaced:
    text: str
    first_changed_line: int
    """Counted from 1, in the original."""


@dataclass(frozen=True, slots=True)
class _Original:
    """A text with LF for every line end, and the way back to where each character stood."""

    text: str
    lf_text: str
    crlf_ends: tuple[int, ...]
    """Positions in `lf_text` of the line feeds that stood for CRLF."""

    def position(self, index: int) -> int:
        return index + bisect_left(self.crlf_ends, index)

    def line_number(self, index: int) -> int:
        return self.lf_text.count("\n", 0, index) + 1

    def line_end_at(self, index: int) -> str:
        """How the line ends in which the index lies; the last line takes after the one before."""
        line_end = self.lf_text.find("\n", index)
        if line_end == -1:
            line_end = self.lf_text.rfind("\n")
        after = bisect_left(self.crlf_ends, line_end)
        return "\r\n" if line_end != -1 and self.crlf_ends[after : after + 1] == (line_end,) else "\n"


@dataclass(frozen=True, slots=True)
class _Place:
    number: int
    """Which replacement, counted from 0 as in the arguments."""
    start: int
    end: int
    new: str
    first_change: int
    """Where old and new begin to differ."""


def replace_exactly(
    text: str, replacements: Sequence[Replacement], cancel: CancelToken, *, may_quote: bool
) -> Replaced:
    """The text with every `old` replaced by its `new`; ToolError, naming each problem, when one cannot be.

    Line ends do not count: LF matches CRLF, and what is put in takes the ends of the line where it goes.
    `may_quote` lets an error show the place in the text that comes nearest.
    """
    original = _original(text)
    places: list[_Place] = []
    problems: list[str] = []
    for number, replacement in enumerate(replacements):
        cancel.raise_if_cancelled()
        explain = may_quote and len(problems) < _EXPLAINED_PROBLEMS
        try:
            places.append(_place(original, number, replacement, explain=explain))
        except ToolError as error:
            problems.append(f"edits[{number}]: {error}")
    places.sort(key=lambda place: place.start)
    problems += _overlaps(original, places)
    if problems:
        raise ToolError(_listed(problems))
    return Replaced(_rebuilt(original, places), original.line_number(places[0].first_change))


def _original(text: str) -> _Original:
    pieces = text.split("\r\n")
    ends: list[int] = []
    position = -1
    for piece in pieces[:-1]:
        position += len(piece) + 1
        ends.append(position)
    return _Original(text, "\n".join(pieces), tuple(ends))


def _place(original: _Original, number: int, replacement: Replacement, *, explain: bool) -> _Place:
    old = replacement.old.replace("\r\n", "\n")
    new = replacement.new.replace("\r\n", "\n")
    if not old:
        raise ToolError("old is empty; to add text, replace a line by itself and the addition.")
    if old == new:
        raise ToolError("old and new are the same; leave out this edit.")
    occurrences = _occurrences(original.lf_text, old)
    if not occurrences:
        nearest = f" {describe_nearest(presentable(original.lf_text), old)}" if explain else ""
        raise ToolError(f"old does not occur in the file.{nearest}")
    if len(occurrences) > 1:
        raise ToolError(_ambiguity(original, occurrences))
    (start,) = occurrences
    return _Place(number, start, start + len(old), new, start + _common_length(old, new))


def _common_length(old: str, new: str) -> int:
    different = (index for index, (before, after) in enumerate(zip(old, new, strict=False)) if before != after)
    return next(different, min(len(old), len(new)))


def _occurrences(text: str, wanted: str) -> list[int]:
    """Where it begins, overlapping occurrences included; no more than a handful past what a message can list."""
    found: list[int] = []
    start = text.find(wanted)
    while start != -1 and len(found) <= _MAX_OCCURRENCES:
        found.append(start)
        start = text.find(wanted, start + 1)
    return found


def _ambiguity(original: _Original, occurrences: list[int]) -> str:
    count = f"more than {_MAX_OCCURRENCES}" if len(occurrences) > _MAX_OCCURRENCES else str(len(occurrences))
    lines = ", ".join(str(original.line_number(start)) for start in occurrences[:_LISTED_LINES])
    more = ", ..." if len(occurrences) > _LISTED_LINES else ""
    return f"old occurs {count} times, beginning in lines {lines}{more}; add lines around it until it is unique."


def _overlaps(original: _Original, places: list[_Place]) -> list[str]:
    return [
        f"edits[{first.number}] and edits[{second.number}] overlap in line {original.line_number(second.start)}; "
        "make them one edit."
        for first, second in pairwise(places)
        if second.start < first.end
    ]


def _listed(problems: list[str]) -> str:
    rest = len(problems) - _LISTED_PROBLEMS
    return "\n".join([*problems[:_LISTED_PROBLEMS], *([f"and {rest} more"] if rest > 0 else [])])


def _rebuilt(original: _Original, places: list[_Place]) -> str:
    pieces: list[str] = []
    done = 0
    for place in places:
        pieces.append(original.text[done : original.position(place.start)])
        pieces.append(place.new.replace("\n", original.line_end_at(place.start)))
        done = original.position(place.end)
    return "".join(pieces) + original.text[done:]
