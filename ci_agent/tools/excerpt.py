"""Some lines out of a text of any size, in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from ci_agent.tools.truncate import MAX_LINE_CHARS, omission_note

MAX_SKIPPED_BYTES = 1 << 28
"""How far into a text its first wanted line is looked for."""

_MAX_TAKEN_BYTES = 1 << 26
"""How much of the text is looked at from there on: one line may be as long as the disk."""

_KEPT_BYTES = 4 * MAX_LINE_CHARS + 4


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    """With its line end, CRLF as LF; cut to MAX_LINE_CHARS with a note."""
    omitted_bytes: int
    has_crlf: bool
    has_wrong_bytes: bool
    """Some bytes were not UTF-8 and are shown as U+FFFD."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    first_line: int
    """As asked for, counted from 1."""
    lines: tuple[Line, ...]
    """Empty when the text has no such line."""
    total_lines: int | None
    """None: the text goes on, nobody counted how far."""

    @property
    def last_line(self) -> int:
        return self.first_line + len(self.lines) - 1


class TooFarError(Exception):
    """The first line wanted lies beyond MAX_SKIPPED_BYTES."""

    def __init__(self, passed_lines: int) -> None:
        super().__init__(f"more than {passed_lines} lines")
        self.passed_lines = passed_lines


def take_excerpt(
    chunks: Iterator[bytes], first_line: int, max_lines: int, max_bytes: int, *, count_all: bool
) -> Excerpt:
    """As many lines of UTF-8 text from `first_line` on as fit within both limits.

    `count_all` reads to the end, to know how many lines there are. Raises TooFarError.
    """
    beginning, passed = _skip_lines(chunks, first_line - 1)
    lines = _split_lines(_beginning_of(chain([beginning], chunks), _MAX_TAKEN_BYTES))
    taken, next_line = _take(lines, max_lines, max_bytes)
    if next_line is None:
        return Excerpt(first_line, taken, passed + len(taken))
    rest = sum(1 for _ in lines) if count_all else None
    return Excerpt(first_line, taken, None if rest is None else passed + len(taken) + 1 + rest)


def _beginning_of(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        max_bytes -= len(chunk)
        if max_bytes <= 0:
            return


def _skip_lines(chunks: Iterator[bytes], count: int) -> tuple[bytes, int]:
    """What is left of the piece in which line `count` ends, and how many lines were passed."""
    passed = scanned = 0
    last = b"\n"
    while passed < count:
        chunk = next(chunks, None)
        if chunk is None:
            return b"", passed + (last != b"\n")
        scanned += len(chunk)
        if scanned > MAX_SKIPPED_BYTES:
            raise TooFarError(passed)
        line_ends = chunk.count(b"\n")
        if passed + line_ends >= count:
            return chunk[_after_line_end(chunk, count - passed) :], count
        passed += line_ends
        last = chunk[-1:]
    return b"", passed


def _after_line_end(chunk: bytes, number: int) -> int:
    position = 0
    for _ in range(number):
        position = chunk.index(b"\n", position) + 1
    return position


def _split_lines(chunks: Iterator[bytes]) -> Iterator[Line]:
    kept = b""
    length = 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield _line(kept + piece[:_KEPT_BYTES], length + len(piece), "\n")
            kept, length = b"", 0
        kept = (kept + rest[:_KEPT_BYTES])[:_KEPT_BYTES]
        length += len(rest)
    if length:
        yield _line(kept, length, "")


def _line(kept: bytes, length: int, end: str) -> Line:
    """A line of `length` bytes of which the first are given."""
    has_crlf = end != "" and length == len(kept) and kept.endswith(b"\r")
    text = kept[: len(kept) - has_crlf].decode("utf-8", "surrogateescape")
    bytes_shown = text[:MAX_LINE_CHARS].encode("utf-8", "surrogateescape")
    shown = bytes_shown.decode("utf-8", "replace")
    omitted = length - has_crlf - len(bytes_shown)
    note = f" {omission_note(omitted, 0)}" if omitted else ""
    return Line(f"{shown}{note}{end}", omitted, has_crlf, has_wrong_bytes=not text.startswith(shown))


def _take(lines: Iterator[Line], max_lines: int, max_bytes: int) -> tuple[tuple[Line, ...], Line | None]:
    """As many lines as fit, and the first that does not; None where the text ends."""
    taken: list[Line] = []
    for line in lines:
        max_bytes -= len(line.text.encode())
        if len(taken) == max_lines or max_bytes < 0:
            return tuple(taken), line
        taken.append(line)
    return tuple(taken), None
