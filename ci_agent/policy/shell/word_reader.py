"""Reads one word: plain text, quotes, backslashes, and what the shell puts in their place."""

import re

from ci_agent.policy.shell.braces import may_expand
from ci_agent.policy.shell.expansion_reader import read_double, read_expansion, read_process, read_single
from ci_agent.policy.shell.reader import Mask, Reader
from ci_agent.policy.shell.syntax import Part, SourceWord, Text

_BLANKS_BEYOND_ASCII = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPECIAL = rf"\x00- \"$&'()*;<>?[\\\]`{{|}}~\x7f-\x9f{_BLANKS_BEYOND_ASCII}"
PLAIN_WORD = rf"[^{_SPECIAL}#!][^{_SPECIAL}]*"
"""Characters that mean nothing to the shell where they stand. Sets of what is left out compile fast."""
_PLAIN = re.compile(rf"{PLAIN_WORD}(?=[ \t\n;|&()<>]|\Z)")
_UNQUOTED = re.compile(rf"[^ \t\n;|&()<>'\"\\$`{_BLANKS_BEYOND_ASCII}]+")
_IN_BODY = re.compile(r"[^\\$`]+")
_IN_REGEX = re.compile(r"[^ \t\n;|&()<>'\"\\$`]+")
_BRACES = frozenset("[]{}")
_BRACKETS = frozenset({"[", "]", "[[", "]]"})
_ENDS_WORD = frozenset(" \t\n;|&()<>")


def read_word(reader: Reader) -> SourceWord:
    """Read the word at the cursor; it must not stand on a blank or an operator."""
    start = reader.position
    plain = _PLAIN.match(reader.text, start, reader.end)
    if plain is not None:
        reader.position = plain.end()
        reader.notes.count_pieces(1)
        if plain[0].isdecimal() and reader.peek() in {"<", ">"}:
            reader.fail("a number of a descriptor that is too large", start, reader.position)
        return SourceWord(plain[0], (), reader.span(start, reader.position))
    outside, reader.bare_dollar = reader.bare_dollar, False
    parts = _read_parts(reader)
    if not parts:
        reader.fail_at_token()
    if reader.peek() in {"<", ">"} and reader.text[start] + reader.text[reader.position - 1] == "{}":
        reader.fail("a word in braces right before a redirection", start, reader.position)
    word = SourceWord(None, tuple(parts), reader.span(start, reader.position))
    if reader.bare_dollar and may_expand(word):
        reader.fail("a `$` without braces in a word that braces make several of", start, reader.position)
    if reader.notes.posix and may_expand(word):
        reader.require_bash("a brace expansion", start)
    reader.bare_dollar = outside
    reader.notes.count_pieces(1)
    if reader.pending and "\n" in reader.text[start : reader.position]:
        reader.fail("a line break inside a word while a here-document waits for its body", start, reader.position)
    return word


def read_value(reader: Reader) -> SourceWord:
    """Read what follows the `=` of an assignment: a word that may be empty."""
    here = reader.position
    process = reader.text.startswith(("<(", ">("), here, reader.end)
    if not process and not reader.at("\\\n") and (reader.peek() in _ENDS_WORD or here >= reader.end):
        return SourceWord("", (), reader.span(here, here))
    return read_word(reader)


def read_regex(reader: Reader) -> SourceWord:
    """Read the right side of `=~`, where `(`, `)` and `|` are ordinary."""
    start, parts, depth = reader.position, list[Part](), 0
    while (character := reader.peek()) and (character not in _ENDS_WORD or character in "(|)"):
        if character == ")" and depth == 0:
            break
        if character in "(|)":
            reader.notes.count_pieces(1)
            depth += {"(": 1, "|": 0, ")": -1}[character]
            reader.position += 1
        elif character in "'\"" and depth:
            reader.fail("quotes inside the parentheses of a regular expression")
        else:
            _read_part(reader, parts, _IN_REGEX)
    if depth or start == reader.position:
        reader.fail("a regular expression that is not understood", start, reader.position)
    span = reader.span(start, reader.position)
    if all(isinstance(part, Text) for part in parts):
        return SourceWord(reader.text[start : reader.position], (), span)
    return SourceWord(None, tuple(parts), span)


def read_body(reader: Reader) -> tuple[Part, ...]:
    """Read the body of a here-document whose delimiter is not quoted: the whole range of the reader."""
    parts: list[Part] = []
    while reader.position < reader.end:
        reader.notes.count_pieces(1)
        start = reader.position
        if match := _IN_BODY.match(reader.text, start, reader.end):
            reader.position = match.end()
            reader.masks.append(Mask(start, reader.position, "x"))
        elif reader.at("\\"):
            reader.position = min(start + 2, reader.end)
            reader.masks.append(Mask(start, reader.position, "x"))
        else:
            read_expansion(reader, parts, quoted=True)
    return tuple(parts)


def _read_parts(reader: Reader) -> list[Part]:
    parts: list[Part] = []
    while (character := reader.peek()) and character not in _ENDS_WORD:
        if character == "\\" and reader.at("\\\n"):
            _end_before_continuation(reader, parts)
            break
        _read_part(reader, parts, _UNQUOTED)
    if reader.peek() in {"<", ">"} and reader.text.startswith("(", reader.position + 1, reader.end):
        if parts or reader.text[reader.position - 1 : reader.position] not in {"", " ", "\t", "\n", ";", "|", "&", "("}:
            reader.fail("a process substitution inside a word")
        parts.append(read_process(reader))
        if reader.peek() not in _ENDS_WORD and reader.peek():
            reader.fail("a process substitution inside a word")
    return parts


def _end_before_continuation(reader: Reader, parts: list[Part]) -> None:
    """A word may end in a continuation line only where the next line does not go on with it."""
    position = reader.position
    while reader.text.startswith("\\\n", position, reader.end):
        position += 2
    if not parts or (position < reader.end and reader.text[position] not in " \t\n"):
        reader.fail("a continuation line in the middle of a word")


def _read_part(reader: Reader, parts: list[Part], unquoted: re.Pattern[str]) -> None:
    start = reader.position
    reader.notes.count_pieces(1)
    if match := unquoted.match(reader.text, start, reader.end):
        reader.position = match.end()
        parts.append(Text(match[0], quoted=False))
        if not _BRACES.isdisjoint(match[0]) and match[0] not in _BRACKETS:
            reader.masks.append(Mask(start, reader.position, "x"))
    elif reader.at("'"):
        parts.append(Text(read_single(reader), quoted=True))
    elif reader.at('"'):
        read_double(reader, parts)
    elif reader.at("\\"):
        parts.append(Text(_read_escaped(reader), quoted=True))
    elif reader.peek() not in {"$", "`"}:
        reader.fail("a blank that only looks like one, outside of quotes")
    else:
        read_expansion(reader, parts, quoted=False)


def _read_escaped(reader: Reader) -> str:
    start = reader.position
    if start + 1 >= reader.end:
        reader.fail("a backslash at the end")
    if reader.at("\\\n"):
        reader.fail("a continuation line in the middle of a word")
    character = reader.text[start + 1]
    if character.isalnum():
        reader.masks.append(Mask(start, start + 1, "x"))
    reader.position += 2
    return character
