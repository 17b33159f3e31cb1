"""Reads one word: quotes, backslashes, `$` in all its forms, backticks."""

import re
from collections.abc import Callable

from ci_agent.policy.shell.ansi_c import decode_ansi_c
from ci_agent.policy.shell.arithmetic import read_arithmetic
from ci_agent.policy.shell.braces import may_expand
from ci_agent.policy.shell.reader import Mask, Reader, Unit
from ci_agent.policy.shell.syntax import Parameter, Part, Sequence, SourceWord, Substitution, Text

ReadProgram = Callable[[Reader], Sequence]
"""Reads commands up to the end or to a `)` that closes nothing; grammar.py has it."""

_BLANKS_BEYOND_ASCII = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_BEYOND_ASCII = "\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff\u3001-\U0010ffff"
ORDINARY = rf"A-Za-z0-9_./:=,@%+^\-{_BEYOND_ASCII}"
"""The characters that mean nothing to the shell wherever they stand, for use in a set."""
_PLAIN = re.compile(rf"[{ORDINARY}][{ORDINARY}#!]*(?=[ \t\n;|&()<>]|\Z)")
_UNQUOTED = re.compile(rf"[^ \t\n;|&()<>'\"\\$`{_BLANKS_BEYOND_ASCII}]+")
_IN_DOUBLE = re.compile(r"[^\"\\$`]*(?:\\.[^\"\\$`]*)*", re.DOTALL)
_ESCAPE_IN_DOUBLE = re.compile(r"\\(?:\n|([$`\"\\]))")
_IN_BODY = re.compile(r"[^\\$`]+")
_IN_REGEX = re.compile(r"[^ \t\n;|&()<>'\"\\$`]+")
_BRACES = frozenset("[]{}")
_BRACKETS = frozenset({"[", "]", "[[", "]]"})
_ENDS_WORD = frozenset(" \t\n;|&()<>")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!\-])")
_BRACED = re.compile(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$\-])((?:\[(?:[@*]|[0-9]+)\])?)")
_OPERATOR = re.compile(r":?[-+?]|##?|%%?|//?|\^\^?|,,?")
_SLICE = re.compile(r":(?:[0-9]+| -[0-9]+)(?::[0-9]+)?(?=\})")
_IN_OPERAND = re.compile(r"[^'\"\\$`{}<>\n]+")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_BACKTICK_ESCAPE = re.compile(r"\\([$`\\])")


def read_word(reader: Reader, read_program: ReadProgram) -> SourceWord:
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
    parts = _read_parts(reader, read_program)
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


def read_value(reader: Reader, read_program: ReadProgram) -> SourceWord:
    """Read what follows the `=` of an assignment: a word that may be empty."""
    here = reader.position
    process = reader.text.startswith(("<(", ">("), here, reader.end)
    if not process and not reader.at("\\\n") and (reader.peek() in _ENDS_WORD or here >= reader.end):
        return SourceWord("", (), reader.span(here, here))
    return read_word(reader, read_program)


def read_regex(reader: Reader, read_program: ReadProgram) -> SourceWord:
    """Read the right side of `=~`, where `(`, `)` and `|` are ordinary."""
    start, parts, depth = reader.position, list[Part](), 0
    while (character := reader.peek()) and (character not in _ENDS_WORD or character in "(|)"):
        if character == ")" and depth == 0:
            break
        if character in "(|)":
            depth += {"(": 1, "|": 0, ")": -1}[character]
            reader.position += 1
        elif character in "'\"" and depth:
            reader.fail("quotes inside the parentheses of a regular expression")
        else:
            _read_part(reader, read_program, parts, _IN_REGEX)
    if depth or start == reader.position:
        reader.fail("a regular expression that is not understood", start, reader.position)
    span = reader.span(start, reader.position)
    if all(isinstance(part, Text) for part in parts):
        return SourceWord(reader.text[start : reader.position], (), span)
    return SourceWord(None, tuple(parts), span)


def read_body(reader: Reader, read_program: ReadProgram) -> tuple[Part, ...]:
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
            _read_expansion(reader, read_program, parts, quoted=True)
    return tuple(parts)


def _read_parts(reader: Reader, read_program: ReadProgram) -> list[Part]:
    parts: list[Part] = []
    while (character := reader.peek()) and character not in _ENDS_WORD:
        if character == "\\" and reader.at("\\\n"):
            _end_before_continuation(reader, parts)
            break
        _read_part(reader, read_program, parts, _UNQUOTED)
    if reader.peek() in {"<", ">"} and reader.text.startswith("(", reader.position + 1, reader.end):
        if parts or reader.text[reader.position - 1 : reader.position] not in {"", " ", "\t", "\n", ";", "|", "&", "("}:
            reader.fail("a process substitution inside a word")
        parts.append(_read_process(reader, read_program))
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


def _read_part(reader: Reader, read_program: ReadProgram, parts: list[Part], unquoted: re.Pattern[str]) -> None:
    start = reader.position
    reader.notes.count_pieces(1)
    if match := unquoted.match(reader.text, start, reader.end):
        reader.position = match.end()
        parts.append(Text(match[0], quoted=False))
        if not _BRACES.isdisjoint(match[0]) and match[0] not in _BRACKETS:
            reader.masks.append(Mask(start, reader.position, "x"))
    elif reader.at("'"):
        parts.append(Text(_read_single(reader), quoted=True))
    elif reader.at('"'):
        _read_double(reader, read_program, parts)
    elif reader.at("\\"):
        parts.append(Text(_read_escaped(reader), quoted=True))
    elif reader.peek() not in {"$", "`"}:
        reader.fail("a blank that only looks like one, outside of quotes")
    else:
        _read_expansion(reader, read_program, parts, quoted=False)


def _read_single(reader: Reader) -> str:
    start = reader.position + 1
    stop = reader.text.find("'", start, reader.end)
    if stop < 0:
        reader.fail("a single quote that nothing closes")
    reader.position = stop + 1
    return reader.text[start:stop]


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


def _read_double(reader: Reader, read_program: ReadProgram, parts: list[Part]) -> None:
    opening = reader.position
    parts.append(Text("", quoted=True))
    reader.position += 1
    while not reader.at('"'):
        start = reader.position
        match = _IN_DOUBLE.match(reader.text, start, reader.end)
        if match and match[0]:
            reader.position = match.end()
            parts.append(Text(_unescape_in_double(match[0]), quoted=True))
        elif reader.peek() in {"", "\\"}:
            reader.fail("a double quote that nothing closes", opening)
        else:
            _read_expansion(reader, read_program, parts, quoted=True)
    reader.position += 1


def _unescape_in_double(text: str) -> str:
    return "".join(filter(None, _ESCAPE_IN_DOUBLE.split(text))) if "\\" in text else text


def _read_expansion(reader: Reader, read_program: ReadProgram, parts: list[Part], *, quoted: bool) -> None:
    """Read what begins with `$` or a backtick."""
    reader.notes.count_pieces(1)
    if reader.at("`"):
        parts.append(_read_backticks(reader, read_program, quoted))
    elif reader.at("$(("):
        reader.position += 3
        reader.enter()
        parts += read_arithmetic(reader, quoted=quoted)
        reader.leave()
    elif reader.at("$("):
        reader.position += 2
        parts.append(Substitution(_read_enclosed(reader, read_program), quoted))
    elif reader.at("${"):
        parts.append(_read_braced(reader, read_program, quoted))
    elif match := _VARIABLE.match(reader.text, reader.position, reader.end):
        reader.position = match.end()
        reader.bare_dollar = reader.bare_dollar or not quoted
        parts.append(Parameter(match[1], quoted))
    else:
        _read_lone_dollar(reader, read_program, parts, quoted)


def _read_lone_dollar(reader: Reader, read_program: ReadProgram, parts: list[Part], quoted: bool) -> None:
    start = reader.position
    if reader.at("$["):
        reader.fail("arithmetic in the old form $[...]")
    if reader.at("$\\\n"):
        reader.fail("a continuation line in the middle of a word")
    if not quoted and reader.text[start + 1 : start + 2] in {"'", '"'}:
        reader.require_bash("$'...' or $\"...\"")
    if not quoted and reader.at("$'"):
        parts.append(Text(_read_ansi_c(reader), quoted=True))
        return
    reader.position += 1
    if not quoted and reader.at('"'):
        reader.masks.append(Mask(start, start + 1, "x"))
        _read_double(reader, read_program, parts)
        return
    if not quoted:
        reader.bare_dollar = True
        reader.masks.append(Mask(start, start + 1, "x"))
    parts.append(Text("$", quoted=True))


def _read_ansi_c(reader: Reader) -> str:
    match = _ANSI_C.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a single quote that nothing closes")
    value = decode_ansi_c(match[1])
    if value is None:
        reader.fail("an escape in $'...' whose value is not certain", match.start(), match.end())
    if "\\" in match[1]:
        reader.masks.append(Mask(match.start(1), match.end(1), "x"))
    reader.position = match.end()
    return value


def _read_process(reader: Reader, read_program: ReadProgram) -> Substitution:
    reader.require_bash("a process substitution")
    reader.position += 2
    return Substitution(_read_enclosed(reader, read_program), quoted=False, process=True)


def _read_enclosed(reader: Reader, read_program: ReadProgram) -> Sequence:
    """Read a program up to its `)`. It is a line of its own: here-documents inside must end inside."""
    outside, reader.pending = reader.pending, []
    before = reader.notes.moves
    reader.enter()
    program = read_program(reader)
    if not reader.at(")"):
        reader.fail("a substitution that nothing closes")
    if reader.pending:
        reader.fail("a here-document that ends outside of its substitution")
    reader.leave()
    reader.notes.moves = before
    reader.pending = outside
    reader.position += 1
    return program


def _read_backticks(reader: Reader, read_program: ReadProgram, quoted: bool) -> Substitution:
    match = _BACKTICKS.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a backtick that nothing closes")
    source, (start, stop) = match[1], match.span(1)
    if "\\\n" in source or (quoted and '"' in source):
        reader.fail("backticks with quotes or continuation lines inside; write $(...)", match.start(), match.end())
    if "\\" in source:
        decoded = _BACKTICK_ESCAPE.sub(r"\1", source)
        inner = Reader(decoded, 0, len(decoded), reader.notes, reader.span(match.start(), match.end()))
    else:
        inner = Reader(reader.text, start, stop, reader.notes, reader.outer)
    begin, before = inner.position, reader.notes.moves
    inner.enter()
    program = read_program(inner)
    if inner.position < inner.end:
        inner.fail("unexpected ')'")
    inner.leave()
    reader.notes.moves = before
    reader.notes.units.append(Unit(inner.text, begin, inner.end, inner.roles, inner.masks, False, inner.outer))
    reader.masks.append(Mask(match.start(), match.end(), "x"))
    reader.position = match.end()
    return Substitution(program, quoted)


def _read_braced(reader: Reader, read_program: ReadProgram, quoted: bool) -> Parameter:
    start = reader.position
    match = _BRACED.match(reader.text, start, reader.end)
    if match is None:
        reader.fail("a parameter expansion that is not understood")
    length, name = bool(match[1]), match[2] + match[3]
    reader.position = match.end()
    if reader.at("}"):
        if length and name in {"#", "?", "$", "-"}:
            reader.fail("a parameter expansion that is not understood", start, reader.position)
        reader.position += 1
        return Parameter(name, quoted, plain=not length, length=length)
    if length or name in {"#", "?", "$", "-"}:
        reader.fail("a parameter expansion that is not understood", start, reader.position)
    operands = _read_operator(reader, read_program, quoted, start)
    reader.position += 1
    return Parameter(name, quoted, plain=False, operands=operands)


def _read_operator(reader: Reader, read_program: ReadProgram, quoted: bool, start: int) -> tuple[SourceWord, ...]:
    if piece := _SLICE.match(reader.text, reader.position, reader.end):
        reader.position = piece.end()
        return ()
    match = _OPERATOR.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a parameter expansion that is not understood", start, reader.position + 1)
    reader.position = match.end()
    reader.enter()
    operand = _read_operand(reader, read_program, quoted)
    reader.leave()
    return (operand,)


def _read_operand(reader: Reader, read_program: ReadProgram, quoted: bool) -> SourceWord:
    start, parts = reader.position, list[Part]()
    while not reader.at("}"):
        reader.notes.count_pieces(1)
        if match := _IN_OPERAND.match(reader.text, reader.position, reader.end):
            reader.position = match.end()
        elif reader.peek() in {"<", ">"} and not reader.text.startswith("(", reader.position + 1, reader.end):
            reader.position += 1
        elif reader.at("\\") and not reader.at("\\\n"):
            reader.position += 2
        elif reader.at("'") and not quoted:
            _read_single(reader)
        elif reader.at('"') and not quoted:
            _read_double(reader, read_program, parts)
        elif reader.peek() in {"$", "`"} and reader.text[reader.position + 1 : reader.position + 2] not in "'\"}/":
            _read_expansion(reader, read_program, parts, quoted=quoted)
        else:
            reader.fail("a parameter expansion that is not understood")
    return SourceWord(None, tuple(parts), reader.span(start, reader.position))
