"""The characters of a file before anybody parses it, and how text is quoted in a message."""

import json
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from ci_agent.errors import InvalidFileError

MAX_BYTES = 4 * 1024 * 1024

_JOINER = "\u200d"

_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0\ufffe\uffff")
"""Invisible although their category says letter, mark or symbol; and two code points that YAML parsers refuse."""


class Place(NamedTuple):
    """Both from 1, in characters."""

    line: int
    column: int


def quote(text: str, limit: int = 60) -> str:
    """The text in quotes, on one line, cut at `limit` characters, nothing in it invisible."""
    shown = text if len(text) <= limit else text[:limit] + "..."
    mark = "'" if '"' in shown and "'" not in shown else '"'
    return mark + "".join(_visible(char) for char in shown) + mark


def either(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def check_text(text: str, file: str) -> str:
    """The text as the parser shall get it: no byte order mark, lines ended by a newline.

    Raises InvalidFileError for text that is too long, or that holds characters which no reader sees. Tabs pass:
    whether one is content is known only after parsing.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidFileError(file, 1, 1, f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.endswith("\n"):
        text += "\n"
    for offset in _suspects(text):
        if not _joins_emoji(text, offset):
            raise InvalidFileError(file, *place_of(offset, find_line_starts(text)), _describe(text[offset]))
    return text


def find_line_starts(text: str) -> Sequence[int]:
    """The offset at which each line begins; four bytes for each, as a file may be nothing but line ends."""
    return array("I", accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def place_of(offset: int, line_starts: Sequence[int]) -> Place:
    line = bisect_right(line_starts, offset)
    return Place(line, offset - line_starts[line - 1] + 1)


def _suspects(text: str) -> list[int]:
    hidden = [char for char in set(text) if _is_hidden(char)]
    return sorted(offset for char in hidden for offset in _occurrences(text, char))


def _occurrences(text: str, char: str) -> list[int]:
    return [offset for offset, other in enumerate(text) if other == char]


def _is_hidden(char: str) -> bool:
    if char in "\t\n ":
        return False
    category = unicodedata.category(char)
    return category in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"} or char in _BLANK_LETTERS


def _joins_emoji(text: str, offset: int) -> bool:
    return (
        text[offset] == _JOINER
        and 0 < offset < len(text) - 1
        and _is_emoji_part(text[offset - 1])
        and _is_emoji_part(text[offset + 1])
    )


def _is_emoji_part(char: str) -> bool:
    return unicodedata.category(char) in {"So", "Sk"} or char == "\ufe0f"


def _describe(char: str) -> str:
    code = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "a control character").lower()
    if unicodedata.category(char) == "Cs":
        return f"half of a surrogate pair ({code}), which is no character: delete it"
    if unicodedata.category(char) == "Zs":
        return f"the blank {code} ({name}) looks like a space and is none: write a space"
    escape = f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
    return f'invisible character {code} ({name}): delete it, or write it as "{escape}" in double quotes'


def _visible(char: str) -> str:
    return json.dumps(char)[1:-1] if _is_hidden(char) or char in "\t\n" else char
