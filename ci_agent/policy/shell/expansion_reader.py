"""Reads what begins with `$` or a backtick, and double quotes, inside of which they mean the same."""

import re

from ci_agent.policy.shell.ansi_c import decode_ansi_c
from ci_agent.policy.shell.arithmetic import read_arithmetic
from ci_agent.policy.shell.array_keys import read_key
from ci_agent.policy.shell.reader import Mask, Reader, Unit
from ci_agent.policy.shell.syntax import Parameter, Part, Sequence, SourceWord, Substitution, Text
from ci_agent.policy.shell.variables import check_assignable, check_locale
from ci_agent.policy.words import Edit

_IN_DOUBLE = re.compile(r"[^\"\\$`]*(?:\\.[^\"\\$`]*)*", re.DOTALL)
_ESCAPE_IN_DOUBLE = re.compile(r"\\(?:\n|([$`\"\\]))")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!\-])")
_BRACED = re.compile(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$\-])((?:\[(?:[@*]|0|[1-9][0-9]*)\])?)")
_OPERATOR = re.compile(r":?[-+?=]|##?|%%?|//?|\^\^?|,,?")
_KEYS = re.compile(r"\$\{(![A-Za-z_][A-Za-z0-9_]*\[@\])\}")
_ASSIGNS = re.compile(r":?=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SLICE = re.compile(r":(?: -)?(?:0|[1-9][0-9]*)(?::(?:0|[1-9][0-9]*))?(?=\})")
_IN_EVERY_SH = re.compile(r":?[-+?=]|##?|%%?")
_CUTS_PREFIX = re.compile(r"(##?)(\*?)([A-Za-z0-9._/-]+)(?=\})")
_CUTS_SUFFIX = re.compile(r"(%%?)([A-Za-z0-9._/-]+)(\*?)(?=\})")
_REPLACES = re.compile(r"(//?)((?:[A-Za-z0-9._-]|\\/)(?:[A-Za-z0-9._ -]|\\/)*)(?:/([A-Za-z0-9._/-]*))?(?=\})")
_CHANGES_CASE = re.compile(r"(\^\^?|,,?)(?=\})")
_IN_OPERAND = re.compile(r"[^'\"\\$`{}<>\n]+")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_BACKTICK_ESCAPE = re.compile(r"\\([$`\\])")


def read_expansion(reader: Reader, parts: list[Part], *, quoted: bool) -> None:
    """Read what begins with `$` or a backtick."""
    reader.notes.count_pieces(1)
    if reader.at("`"):
        parts.append(_read_backticks(reader, quoted))
    elif reader.at("$(("):
        reader.position += 3
        reader.enter()
        parts += read_arithmetic(reader, quoted=quoted)
        reader.leave()
    elif reader.at("$("):
        reader.position += 2
        parts.append(Substitution(_read_enclosed(reader), quoted))
    elif reader.at("${"):
        parts.append(_read_braced(reader, quoted))
    elif match := _VARIABLE.match(reader.text, reader.position, reader.end):
        reader.position = match.end()
        reader.bare_dollar = reader.bare_dollar or not quoted
        parts.append(Parameter(match[1], quoted))
    else:
        _read_lone_dollar(reader, parts, quoted)


def _read_lone_dollar(reader: Reader, parts: list[Part], quoted: bool) -> None:
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
        read_double(reader, parts)
        return
    if not quoted:
        reader.bare_dollar = True
        reader.masks.append(Mask(start, start + 1, "x"))
    parts.append(Text("$", quoted=True))


def read_double(reader: Reader, parts: list[Part]) -> None:
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
            read_expansion(reader, parts, quoted=True)
    reader.position += 1


def _unescape_in_double(text: str) -> str:
    return "".join(filter(None, _ESCAPE_IN_DOUBLE.split(text))) if "\\" in text else text


def _read_ansi_c(reader: Reader) -> str:
    match = _ANSI_C.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a single quote that nothing closes")
    reader.notes.count_pieces(match[1].count("\\"))
    value = decode_ansi_c(match[1])
    if value is None:
        reader.fail("an escape in $'...' whose value is not certain", match.start(), match.end())
    if "\\" in match[1]:
        reader.masks.append(Mask(match.start(1), match.end(1), "x"))
    reader.position = match.end()
    return value


def read_process(reader: Reader) -> Substitution:
    reader.require_bash("a process substitution")
    reader.position += 2
    return Substitution(_read_enclosed(reader), quoted=False, process=True)


def _read_enclosed(reader: Reader) -> Sequence:
    """Read a program up to its `)`. It is a line of its own: here-documents inside must end inside."""
    outside, reader.pending = (reader.pending, reader.enclosed), []
    before = reader.notes.moves
    reader.enter()
    reader.enclosed = reader.notes.depth
    program = reader.read_program(reader)
    if not reader.at(")"):
        reader.fail("a substitution that nothing closes")
    if reader.pending:
        reader.fail("a here-document that ends outside of its substitution")
    reader.leave()
    reader.notes.moves = before
    reader.pending, reader.enclosed = outside
    reader.position += 1
    return program


def _read_backticks(reader: Reader, quoted: bool) -> Substitution:
    match = _BACKTICKS.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a backtick that nothing closes")
    source, (start, stop) = match[1], match.span(1)
    if "\\\n" in source or (quoted and '"' in source):
        reader.fail("backticks with quotes or continuation lines inside; write $(...)", match.start(), match.end())
    reader.notes.count_pieces(source.count("\\"))
    if "\\" in source:
        decoded = _BACKTICK_ESCAPE.sub(r"\1", source)
        inner = reader.decoded(decoded, reader.span(match.start(), match.end()))
    else:
        inner = reader.within(start, stop)
    begin, before = inner.position, reader.notes.moves
    inner.enter()
    program = inner.read_program(inner)
    if inner.position < inner.end:
        inner.fail("unexpected ')'")
    inner.leave()
    reader.notes.moves = before
    reader.notes.units.append(Unit(inner.text, begin, inner.end, inner.roles, inner.masks, False, inner.outer))
    reader.masks.append(Mask(match.start(), match.end(), "x"))
    reader.position = match.end()
    return Substitution(program, quoted)


def _read_braced(reader: Reader, quoted: bool) -> Parameter:
    start = reader.position
    if keys := _KEYS.match(reader.text, start, reader.end):
        reader.require_bash("the keys of an array", start)
        reader.position = keys.end()
        return Parameter(keys[1], quoted)
    match = _BRACED.match(reader.text, start, reader.end)
    if match is None:
        reader.fail("a parameter expansion that is not understood")
    length, name = bool(match[1]), match[2] + match[3]
    reader.position = match.end()
    key = read_key(reader) if reader.at("[") else None
    if match[3] or key or not (reader.at("}") or _IN_EVERY_SH.match(reader.text, reader.position, reader.end)):
        reader.require_bash(f"the expansion {match[0]}...}}", start)
    if reader.at("}"):
        if length and name in {"#", "?", "$", "-"}:
            reader.fail("a parameter expansion that is not understood", start, reader.position)
        reader.position += 1
        return Parameter(name, quoted, plain=not length, length=length, key=key)
    if length or name in {"#", "?", "$", "-"}:
        reader.fail("a parameter expansion that is not understood", start, reader.position)
    edit, assigns = _edit_at(reader), _ASSIGNS.match(reader.text, reader.position, reader.end) is not None
    if assigns:
        _note_default(reader, "" if key else name, start)
    operands = _read_operator(reader, quoted, start)
    reader.position += 1
    return Parameter(name, quoted, plain=False, operands=operands, edit=edit, assigns=assigns, key=key)


def _note_default(reader: Reader, name: str, start: int) -> None:
    """`${name:=value}` gives the variable a value."""
    if not _NAME.fullmatch(name):
        reader.fail("a parameter expansion that is not understood", start, reader.position + 1)
    check_assignable(reader, name)
    check_locale(reader, name, None)
    reader.notes.assign(name, certain=False)


def _edit_at(reader: Reader) -> Edit | None:
    if cut := _CUTS_PREFIX.match(reader.text, reader.position, reader.end):
        return Edit("prefix", cut[2], cut[3], longest=len(cut[1]) == 2)
    if cut := _CUTS_SUFFIX.match(reader.text, reader.position, reader.end):
        return Edit("suffix", cut[2], cut[3], longest=len(cut[1]) == 2)
    if replaced := _REPLACES.match(reader.text, reader.position, reader.end):
        pattern = replaced[2].replace("\\/", "/")
        return Edit("replace", pattern, replaced[3] or "", longest=len(replaced[1]) == 2)
    if changed := _CHANGES_CASE.match(reader.text, reader.position, reader.end):
        return Edit("case", changed[1][0], longest=len(changed[1]) == 2)
    return None


def _read_operator(reader: Reader, quoted: bool, start: int) -> tuple[SourceWord, ...]:
    if piece := _SLICE.match(reader.text, reader.position, reader.end):
        reader.position = piece.end()
        return ()
    match = _OPERATOR.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a parameter expansion that is not understood", start, reader.position + 1)
    reader.position = match.end()
    reader.enter()
    operand = _read_operand(reader, quoted)
    reader.leave()
    return (operand,)


def _read_operand(reader: Reader, quoted: bool) -> SourceWord:
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
            read_single(reader)
        elif reader.at('"') and not quoted:
            read_double(reader, parts)
        elif reader.peek() in {"$", "`"} and reader.text[reader.position + 1 : reader.position + 2] not in "'\"}/":
            read_expansion(reader, parts, quoted=quoted)
        else:
            reader.fail("a parameter expansion that is not understood")
    return SourceWord(None, tuple(parts), reader.span(start, reader.position))


def read_single(reader: Reader) -> str:
    start = reader.position + 1
    stop = reader.text.find("'", start, reader.end)
    if stop < 0:
        reader.fail("a single quote that nothing closes")
    reader.position = stop + 1
    return reader.text[start:stop]
