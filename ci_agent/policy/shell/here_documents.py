"""Here-documents: the delimiter behind `<<`, and the bodies that begin on the next line."""

import re

from ci_agent.policy.shell.program import UnparsableError
from ci_agent.policy.shell.reader import HereDocument, Mask, Reader, Unit
from ci_agent.policy.shell.syntax import SourceRedirect, SourceWord
from ci_agent.policy.shell.word_reader import read_body

_DELIMITER = re.compile(
    r"[ \t]*(?P<word>'[A-Za-z0-9_.!+-]+'|\"[A-Za-z0-9_.!+-]+\"|\\?[A-Za-z0-9_.+][A-Za-z0-9_.+-]*)"
    r"(?=[ \t\n;|&()<>]|\Z)"
)


def read_delimiter(reader: Reader, start: int, operator: str) -> SourceRedirect:
    """Read the delimiter behind the operator; the body is awaited from the next line break on."""
    match = _DELIMITER.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.fail("a here-document whose delimiter is not one plain or one quoted word", start)
    text = match["word"]
    document = HereDocument(text.strip("'\"\\"), text[0] in "'\"\\", operator == "<<-", [])
    reader.pending.append(document)
    reader.masks.append(Mask(reader.position - len(operator) + 1, reader.position, " "))
    if text[0] == "\\":
        reader.masks.append(Mask(match.start("word"), match.start("word") + 1, "x"))
    reader.roles.append((match.start("word"), match.end(), "target"))
    reader.position = match.end()
    span = reader.span(start, reader.position)
    return SourceRedirect("<<", SourceWord("", (), span), None, document.body, span)


def read_newline(reader: Reader) -> None:
    """Step over the line break at the cursor, and over the bodies of here-documents that begin behind it."""
    reader.position += 1
    for document in reader.pending:
        _read_document(reader, document)
    reader.pending.clear()


def _read_document(reader: Reader, document: HereDocument) -> None:
    reader.notes.count_command()
    start = reader.position
    last_line = _find(reader, document)
    if not document.quoted and reader.text.find("\\\n", start, last_line) >= 0:
        reader.position = start
        last_line = _find_joined(reader, document)
    reader.masks.append(Mask(start, reader.position, " "))
    if not document.quoted:
        body = reader.within(start, last_line)
        document.body.extend(read_body(body))
        if document.body:
            reader.notes.units.append(Unit(body.text, start, body.end, body.roles, body.masks, True, body.outer))
    if reader.position < reader.end:
        reader.position += 1


def _find(reader: Reader, document: HereDocument) -> int:
    """Where the line with the delimiter begins; the cursor ends behind that line."""
    text, start = reader.text, reader.position
    sought = document.delimiter if document.strips_tabs else "\n" + document.delimiter
    found = text.find(sought, start - 1, reader.end)
    while found >= 0:
        reader.notes.count_pieces(1)
        rest = found + len(sought)
        line_start = rest - len(document.delimiter)
        while document.strips_tabs and text[line_start - 1] == "\t":
            line_start -= 1
        if text[line_start - 1] == "\n":
            stop = text.find("\n", rest, reader.end)
            reader.position = reader.end if stop < 0 else stop
            if reader.position == rest:
                return line_start
            _check_last_line(reader, text[rest : reader.position], line_start, reader.position)
        found = text.find(sought, rest, reader.end)
    raise _without_end(reader, document, start)


def _find_joined(reader: Reader, document: HereDocument) -> int:
    """The same where backslashes at the ends of lines join lines, before bash looks for the delimiter."""
    start = reader.position
    while True:
        line_start = reader.position
        line, joined = _read_line(reader)
        line = line.lstrip("\t") if document.strips_tabs else line
        if line == document.delimiter and not joined:
            return line_start
        if line.startswith(document.delimiter):
            rest = ")" if joined else line.removeprefix(document.delimiter)
            _check_last_line(reader, rest, line_start, reader.position)
        if reader.position >= reader.end:
            raise _without_end(reader, document, start)
        reader.notes.count_pieces(1)
        reader.position += 1


def _without_end(reader: Reader, document: HereDocument, start: int) -> UnparsableError:
    reason = f"a here-document without its last line {document.delimiter!r}"
    return UnparsableError(reason, reader.span(start, reader.end))


def _check_last_line(reader: Reader, rest: str, start: int, end: int) -> None:
    """Inside a substitution bash takes a delimiter with a `)` somewhere behind it for the end of a here-document."""
    if ")" in rest:
        reader.fail("a line that only some shells take for the end of the here-document", start, end)


def _read_line(reader: Reader) -> tuple[str, bool]:
    """One line, with those that a backslash joins to it; the cursor ends behind it."""
    pieces: list[str] = []
    while True:
        stop = reader.text.find("\n", reader.position, reader.end)
        stop = reader.end if stop < 0 else stop
        piece = reader.text[reader.position : stop]
        reader.position = stop
        backslashes = len(piece) - len(piece.rstrip("\\"))
        if backslashes % 2 == 0 or stop >= reader.end:
            return "".join((*pieces, piece)), bool(pieces)
        pieces.append(piece[:-1])
        reader.notes.count_pieces(1)
        reader.position += 1
