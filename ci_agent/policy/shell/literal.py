"""The most cautious reading of bash text: one simple command whose words are literal, or nothing."""

import re
from collections.abc import Iterator
from typing import Final

from ci_agent.policy.shell.program import BoundExceededError, Command, ShellProgram, UnparsableError
from ci_agent.policy.words import Word, literal_word

MAX_BYTES: Final = 256 * 1024

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_RESERVED = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "in"}
    | {"function", "coproc", "time", "[[", "]]", "{", "}", "!"}
)


def analyse(text: str) -> ShellProgram:
    """Read one simple command; UnparsableError for all else, BoundExceededError for text past MAX_BYTES."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BoundExceededError(f"the command is longer than {MAX_BYTES // 1024} kB")
    words = tuple(_words(text))
    if not words:
        return ShellProgram(())
    _refuse_name(words[0])
    return ShellProgram((Command(words, (), (), "", (words[0].span[0], words[-1].span[1])),))


def _refuse_name(word: Word) -> None:
    if word.text in _RESERVED:
        raise UnparsableError(f"{word.text!r} is a reserved word", word.span)
    if _ASSIGNMENT.match(word.text):
        raise UnparsableError("assignments are not read", word.span)


def _words(text: str) -> Iterator[Word]:
    at = 0
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        start, pieces = at, []
        while at < len(text) and text[at] not in " \t":
            piece, at = _piece(text, at)
            pieces.append(piece)
        yield literal_word("".join(pieces), (start, at))


def _piece(text: str, at: int) -> tuple[str, int]:
    if text[at] == "'":
        return _quoted(text, at, forbidden="")
    if text[at] == '"':
        return _quoted(text, at, forbidden="$`\\!")
    if text[at] not in _PLAIN and text[at].isascii():
        raise UnparsableError(f"{text[at]!r} is more than literal text; put it in single quotes", (at, at + 1))
    return text[at], at + 1


def _quoted(text: str, at: int, forbidden: str) -> tuple[str, int]:
    end = text.find(text[at], at + 1)
    if end < 0:
        raise UnparsableError("the quote is not closed", (at, len(text)))
    inner = text[at + 1 : end]
    for offset, char in enumerate(inner):
        if char in forbidden or (char < " " and char not in "\t\n") or char == "\x7f":
            raise UnparsableError(f"{char!r} in quotes is not read", (at + 1 + offset, at + 2 + offset))
    return inner, end + 1
