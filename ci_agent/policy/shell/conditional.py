"""Reads `[[ ... ]]`, whose words are neither split nor matched, and some of which are evaluated."""

import re

from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.static_words import static_text
from ci_agent.policy.shell.syntax import Conditional, SourceWord
from ci_agent.policy.shell.word_reader import read_regex, read_word

_UNARY = re.compile(r"-[abcdefghknoprstuvwxzGLNOSR](?=[ \t])")
_BINARY = re.compile(r"(?:=~|==|!=|=|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))(?=[ \t])|<(?![(<&>])|>(?![(>&|])")
_NUMERIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_conditional(reader: Reader) -> Conditional:
    """Read from behind `[[` up to and with `]]`."""
    start = reader.position - 2
    words = [_fixed(reader, start)]
    numbers: list[SourceWord] = []
    _read_alternatives(reader, words, numbers)
    reader.notes.count_pieces(len(words))
    if not reader.at("]]"):
        reader.fail("a [[ ... ]] that is not understood", start, reader.position)
    closing = reader.position
    reader.position += 2
    words.append(_fixed(reader, closing))
    return Conditional(tuple(words), tuple(numbers), reader.span(start, reader.position))


def _fixed(reader: Reader, start: int) -> SourceWord:
    """The operator from `start` to the cursor, as a word."""
    return SourceWord(reader.text[start : reader.position], (), reader.span(start, reader.position))


def _read_alternatives(reader: Reader, words: list[SourceWord], numbers: list[SourceWord]) -> None:
    """Terms joined by `&&` and `||`; which binds tighter does not matter here."""
    reader.enter()
    _read_term(reader, words, numbers)
    while reader.at("&&") or reader.at("||"):
        start = reader.position
        reader.position += 2
        words.append(_fixed(reader, start))
        _skip_lines(reader)
        _read_term(reader, words, numbers)
    reader.leave()


def _skip_lines(reader: Reader) -> None:
    reader.skip_blanks()
    while reader.at("\n") and not reader.pending:
        reader.position += 1
        reader.skip_blanks()


def _read_term(reader: Reader, words: list[SourceWord], numbers: list[SourceWord]) -> None:
    reader.skip_blanks()
    start = reader.position
    while reader.at("! "):
        reader.position += 1
        words.append(_fixed(reader, start))
        reader.skip_blanks()
        start = reader.position
    if reader.at("("):
        reader.position += 1
        words.append(_fixed(reader, start))
        _read_alternatives(reader, words, numbers)
        if not reader.at(")"):
            reader.fail("a [[ ... ]] that is not understood", start, reader.position)
        start, reader.position = reader.position, reader.position + 1
        words.append(_fixed(reader, start))
    elif match := _UNARY.match(reader.text, reader.position, reader.end):
        reader.position = match.end()
        words.append(_fixed(reader, start))
        words.append(_read_operand(reader))
        if match[0] in {"-v", "-R"} and not _NAME.fullmatch(static_text(words[-1]) or ""):
            reader.fail(f"[[ {match[0]} ]] evaluates what is not a plain name", start, reader.position)
    else:
        _read_comparison(reader, words, numbers)
    reader.skip_blanks()


def _read_comparison(reader: Reader, words: list[SourceWord], numbers: list[SourceWord]) -> None:
    left = _read_operand(reader)
    words.append(left)
    reader.skip_blanks()
    match = _BINARY.match(reader.text, reader.position, reader.end)
    if match is None:
        return
    start, reader.position = reader.position, match.end()
    words.append(_fixed(reader, start))
    reader.skip_blanks()
    right = read_regex(reader) if match[0] == "=~" else _read_operand(reader)
    words.append(right)
    if match[0] in _NUMERIC:
        numbers += (left, right)


def _read_operand(reader: Reader) -> SourceWord:
    reader.skip_blanks()
    word = read_word(reader)
    if word.plain == "]]":
        reader.fail("a [[ ... ]] that is not understood", *word.span)
    return word
