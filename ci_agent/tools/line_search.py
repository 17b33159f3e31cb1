"""Lines of a text that match a regular expression, with the lines around them, in bounded memory and linear time."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import re2

from ci_agent.errors import ToolError

LinePattern: TypeAlias = re2._Regexp
"""A compiled expression, for bytes; `compile_pattern` makes it."""

MAX_LINE_BYTES = 8 << 20
"""What follows in a longer line is not searched."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    number: int
    """Counted from 1."""
    text: bytes
    """Without its line end."""
    is_match: bool
    """False: it stands near one that is."""


def compile_pattern(pattern: str, *, literal: bool, ignore_case: bool) -> LinePattern:
    """An expression for single lines, matched on UTF-8 bytes; ToolError says what RE2 does not take.

    `^` and `$` mean the ends of a line, and nothing matches a line end.
    """
    if not literal:
        _refuse_text_anchors(pattern)
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.never_capture = True
    options.never_nl = True
    options.log_errors = False
    try:
        data = pattern.encode()
        re2.compile(re2.escape(data) if literal else data, options)  # alone first: the group must not complete it
        return re2.compile(b"(?m:%s)" % (re2.escape(data) if literal else data), options)
    except UnicodeEncodeError as error:
        raise ToolError("the pattern contains a lone surrogate, which no text file holds.") from error
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        raise ToolError(
            f"the pattern is not a regular expression that grep can use: {reason}. The syntax is RE2: no lookaround, "
            "no back-references. With literal it is taken as plain text."
        ) from error


def search_lines(chunks: Iterator[bytes], pattern: LinePattern, context: int) -> Iterator[FoundLine]:
    """Matching lines, and up to `context` lines before and after each, in order and each once. CRLF counts as LF."""
    before: deque[FoundLine] = deque(maxlen=context)
    after = 0
    passed = 0
    for block in _whole_lines(_bounded_lines(_lf_only(chunks))):
        matching = set(_matching_lines(pattern, block))
        if not matching and not after:
            before.extend(_last_lines(block, passed, context))
            passed += block.count(b"\n")
            continue
        for number, text in enumerate(block.removesuffix(b"\n").split(b"\n"), passed + 1):
            line = FoundLine(number, text, number - passed - 1 in matching)
            if line.is_match:
                yield from before
                before.clear()
                yield line
                after = context
            elif after:
                yield line
                after -= 1
            else:
                before.append(line)
        passed += block.count(b"\n")


def _last_lines(block: bytes, passed: int, count: int) -> Iterator[FoundLine]:
    """The last lines of a block in which nothing matches."""
    if count == 0:
        return
    texts = block.removesuffix(b"\n").rsplit(b"\n", count)[-count:]
    first = passed + block.removesuffix(b"\n").count(b"\n") + 2 - len(texts)
    for number, text in enumerate(texts, first):
        yield FoundLine(number, text, is_match=False)


def _matching_lines(pattern: LinePattern, block: bytes) -> Iterator[int]:
    """Indexes of the lines that match, from 0."""
    index = position = 0
    while position < len(block) and (match := pattern.search(block, position)):
        line_start = block.rfind(b"\n", 0, match.start()) + 1
        if line_start == len(block):
            return  # behind the last line end there is no line
        index += block.count(b"\n", position, line_start)
        yield index
        position = block.find(b"\n", match.start()) + 1
        if position == 0:
            return
        index += 1


def _lf_only(chunks: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for chunk in chunks:
        text = held + chunk
        held = b"\r" if text.endswith(b"\r") else b""
        text = text.removesuffix(held)
        yield text.replace(b"\r\n", b"\n") if b"\r" in text else text
    yield held


def _bounded_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    length = 0
    for chunk in chunks:
        first_end = chunk.find(b"\n")
        room = max(MAX_LINE_BYTES - length, 0)
        if first_end == -1:
            length += len(chunk)
            yield chunk[:room]
        else:
            length = len(chunk) - chunk.rfind(b"\n") - 1
            yield chunk if first_end <= room else chunk[:room] + chunk[first_end:]


def _whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same text in pieces that end where a line ends."""
    held: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, chunk[:end]])
            held = []
        held.append(chunk[end:])
    if rest := b"".join(held):
        yield rest


def _refuse_text_anchors(pattern: str) -> None:
    for escaped in re.findall(r"\\(.)", pattern, re.DOTALL):
        if escaped in "AzC":
            raise ToolError(f"\\{escaped} has no meaning where lines are searched one by one; use ^ and $.")
