"""Limits on the text that a tool gives a model, and the words that say what was left out."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_BYTES = 50_000
MAX_LINES = 2_000
MAX_LINE_CHARS = 2_000

_ENCODING_ERRORS = "surrogatepass"
_ROOM_FOR_NOTE = 80


@dataclass(frozen=True, slots=True)
class Truncated:
    text: str
    """What is shown, with a note where something is missing."""
    omitted_bytes: int = 0
    """Counted in UTF-8; 0 when the text is whole."""
    omitted_lines: int = 0
    """Line ends among what was left out: 0 when a part of one long line is missing."""


def keep_head_and_tail(text: str, max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> Truncated:
    """The text itself if it fits, else its beginning and its end with a line between that says what is missing.

    The answer, note included, stays within both limits (as long as `max_bytes` has room for a note). It is cut
    between lines where the lines are short enough, and never inside a character.
    """
    data = text.encode("utf-8", _ENCODING_ERRORS)
    if len(data) <= max_bytes and count_lines(text) <= max_lines:
        return Truncated(text)
    room = max(max_bytes - _ROOM_FOR_NOTE, 0)
    head = keep_head(data, room // 2, (max_lines - 1) // 2)
    tail = keep_tail(data[len(head) :], room - room // 2, max_lines // 2)
    omitted = data[len(head) : len(data) - len(tail)]
    return join_head_and_tail(_decode(head), _decode(tail), len(omitted), omitted.count(b"\n"))


def join_head_and_tail(head: str, tail: str, omitted_bytes: int, omitted_lines: int) -> Truncated:
    """Both ends of a text whose middle is missing, with the note in a line of its own."""
    line_end = "" if head.endswith("\n") or not head else "\n"
    note = omission_note(omitted_bytes, omitted_lines)
    return Truncated(f"{head}{line_end}{note}\n{tail}", omitted_bytes, omitted_lines)


def omission_note(omitted_bytes: int, omitted_lines: int) -> str:
    lines = f" in {count_of(omitted_lines, 'line')}" if omitted_lines else ""
    return f"[... {count_of(omitted_bytes, 'byte')}{lines} left out ...]"


def keep_head(data: bytes, max_bytes: int, max_lines: int) -> bytes:
    """The beginning of UTF-8 text: whole lines, unless that would waste more than half of `max_bytes`."""
    if len(data) > max_bytes:
        data = data[: _character_start(data, max_bytes)]
        line_end = data.rfind(b"\n") + 1
        data = data[:line_end] if line_end > max_bytes // 2 else data
    end = 0
    for _ in range(max_lines):
        end = data.find(b"\n", end) + 1
        if end == 0:
            return data
    return data[:end]


def keep_tail(data: bytes, max_bytes: int, max_lines: int) -> bytes:
    """The end of UTF-8 text: whole lines, unless that would waste more than half of `max_bytes`."""
    if len(data) > max_bytes:
        cut = _character_start(data, len(data) - max_bytes, step=1)
        line_start = data.find(b"\n", cut - 1) + 1
        data = data[line_start if 0 < line_start <= cut + max_bytes // 2 else cut :]
    start = len(data) - data.endswith(b"\n")
    for _ in range(max_lines):
        start = data.rfind(b"\n", 0, start)
        if start == -1:
            return data
    return data[start + 1 :]


def take_lines(lines: Iterable[str], max_lines: int, max_bytes: int) -> tuple[list[str], bool]:
    """The first lines (without line ends) that fit within both limits, and whether there were more."""
    taken: list[str] = []
    for line in lines:
        max_bytes -= len(line.encode("utf-8", _ENCODING_ERRORS)) + 1
        if len(taken) == max_lines or max_bytes < 0:
            return taken, True
        taken.append(line)
    return taken, False


def count_lines(text: str) -> int:
    """Lines as an editor counts them: the last one need not end."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 line`, `2,000 lines`; None: the noun takes an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def _character_start(data: bytes, index: int, *, step: int = -1) -> int:
    while 0 < index < len(data) and data[index] & 0xC0 == 0x80:
        index += step
    return index


def _decode(data: bytes) -> str:
    return data.decode("utf-8", _ENCODING_ERRORS)
