"""Operators, line breaks and reserved words: what stands between commands."""

import re

from ci_agent.policy.shell.here_documents import read_newline
from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.syntax import Sequence

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;|&()<>]|\Z)"
)
_OPERATOR = re.compile(r"[ \t]*(;;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\||\)|\n|\Z)")
_EXTENDING = {";": ";&", "&": "&>", "|": "|&"}
"""The characters that make a longer operator of one."""
_EMPTY_LINES = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){1,100}")


def peek_operator(reader: Reader) -> str:
    match = _OPERATOR.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.skip_blanks()
        match = _OPERATOR.match(reader.text, reader.position, reader.end)
    if match is None:
        return ""
    reader.position = match.start(1)
    return match[1]


def step(reader: Reader, operator: str) -> None:
    """Step over an operator; no continuation line may make another operator of it."""
    if reader.pending and reader.enclosed is not None and operator not in {"|", "|&"}:
        reader.fail("a here-document in a substitution with more commands behind it")
    reader.position += len(operator)
    if not reader.at("\\\n"):
        return
    position = reader.position
    while reader.text.startswith("\\\n", position, reader.end):
        position += 2
    if reader.text[position : position + 1] in tuple(_EXTENDING.get(operator, "")):
        reader.fail("a continuation line in the middle of an operator")


def skip_lines(reader: Reader, *, ends_command: bool = False) -> None:
    """Skip line breaks, and the here-documents and comments behind them. `ends_command`: between commands of a list."""
    reader.skip_blanks()
    if not reader.at("\n"):
        return
    in_substitution = bool(reader.pending) and reader.enclosed is not None
    if in_substitution and not (ends_command and reader.enclosed == reader.notes.depth):
        reader.fail("a here-document inside a compound command in a substitution")
    while reader.at("\n"):
        read_newline(reader)
        while match := _EMPTY_LINES.match(reader.text, reader.position, reader.end):
            reader.notes.count_pieces(match[0].count("\n"))
            reader.position = match.end()
        reader.skip_blanks()
    if in_substitution and not reader.at(")"):
        reader.fail("a here-document in a substitution with more commands behind it")


def peek_reserved(reader: Reader) -> str:
    match = _RESERVED.match(reader.text, reader.position, reader.end)
    return match[0] if match else ""


def expect(reader: Reader, word: str) -> None:
    """Step over a reserved word or a parenthesis that must stand here."""
    reader.skip_blanks()
    if not (reader.at(")") if word == ")" else peek_reserved(reader) == word):
        reader.fail(f"expected {word!r}")
    reader.position += len(word)


def read_body(reader: Reader) -> Sequence:
    """A list that must not be empty."""
    program = reader.read_program(reader)
    if not program.items:
        reader.fail("expected a command")
    return program
