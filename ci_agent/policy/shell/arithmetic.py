"""Reads arithmetic: numbers, operators and plain names, nothing that bash would evaluate a second time."""

import re

from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.syntax import Arithmetic
from ci_agent.policy.shell.variables import check_assignable

_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)"
    r"|(?P<number>(?:0[xX][0-9A-Fa-f]+|[0-9]+)(?![0-9A-Za-z_#@]))"
    r"|(?P<name>[A-Za-z_][0-9A-Za-z_]*)(?!\[)"
    r"|\$(?:(?P<value>[A-Za-z_][0-9A-Za-z_]*)(?!\[)|\{(?P<braced>[A-Za-z_][0-9A-Za-z_]*)\})"
    r"|(?P<digits>\$[#?]|\$\{#[A-Za-z_][0-9A-Za-z_]*\})"
    r"|(?P<assign>(?:<<|>>|[-+*/%&^|])=|=(?!=))"
    r"|(?P<step>\+\+|--)"
    r"|(?P<branch>&&|\|\||\?)"
    r"|(?P<operator><<|>>|<=|>=|==|!=|\*\*|[-+*/%<>!~&^|:,])"
    r"|(?P<separator>;)"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
)


def read_arithmetic(reader: Reader, *, quoted: bool, parts: int = 1) -> tuple[Arithmetic, ...]:
    """Read `parts` expressions with `;` between them and the `))` behind the last; the cursor stands after `((`."""
    expressions: list[Arithmetic] = []
    for _ in range(parts):
        if expressions:
            _expect(reader, ";")
        expressions.append(_read_expression(reader, quoted))
    _expect(reader, "))")
    return tuple(expressions)


def _expect(reader: Reader, text: str) -> None:
    if not reader.at(text):
        reader.fail("arithmetic that is not plain numbers, names and operators")
    reader.position += len(text)


def _read_expression(reader: Reader, quoted: bool) -> Arithmetic:
    start, tokens, depth = reader.position, list[tuple[str, str]](), 0
    while match := _TOKEN.match(reader.text, reader.position, reader.end):
        kind = match.lastgroup or ""
        if kind == "separator" or (kind == "close" and depth == 0):
            break
        depth += {"open": 1, "close": -1}.get(kind, 0)
        if kind != "blank":
            tokens.append((kind, match[kind]))
        reader.position = match.end()
        reader.notes.count_pieces(1)
    if depth:
        reader.fail("arithmetic that is not plain numbers, names and operators")
    return _summarise(reader, tokens, (start, reader.position), quoted)


def _summarise(reader: Reader, tokens: list[tuple[str, str]], span: tuple[int, int], quoted: bool) -> Arithmetic:
    """Which names are read and which get a value; one that gets it in a branch only counts as changed."""
    reads: list[str] = []
    assigns: list[str] = []
    branches = any(kind == "branch" for kind, _ in tokens)
    for index, (kind, text) in enumerate(tokens):
        if kind in {"value", "braced"}:
            reads.append(text)
        if kind != "name":
            continue
        before = tokens[index - 1][0] if index else ""
        after, operator = tokens[index + 1] if index + 1 < len(tokens) else ("", "")
        if after != "assign" or operator != "=":
            reads.append(text)
        if after in {"assign", "step"} or before == "step":
            check_assignable(reader, text)
            assigns.append(text)
            reader.notes.assign(text, integer=True)
    return Arithmetic(tuple(reads), () if branches else tuple(assigns), reader.span(*span), quoted)
