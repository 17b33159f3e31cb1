"""Reads arithmetic that cannot fail and holds nothing to be evaluated a second time: numbers, operators, plain names.

An error in arithmetic makes bash drop the rest of the line and go on with the next, so that what stands behind would
not have happened.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn

from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.syntax import Arithmetic
from ci_agent.policy.shell.variables import check_assignable

_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)"
    r"|(?P<number>(?:0[xX][0-9A-Fa-f]+|0|[1-9][0-9]*)(?![0-9A-Za-z_#@]))"
    r"|(?P<name>[A-Za-z_][0-9A-Za-z_]*)(?!\[)"
    r"|\$(?:(?P<value>[A-Za-z_][0-9A-Za-z_]*)(?!\[)|\{(?P<braced>[A-Za-z_][0-9A-Za-z_]*)\})"
    r"|(?P<digits>\$[#?]|\$\{#[A-Za-z_][0-9A-Za-z_]*(?:\[[@*]\])?\})"
    r"|(?P<assign>(?:<<|>>|[-+*/%&^|])=|=(?!=))"
    r"|(?P<step>\+\+|--)"
    r"|(?P<branch>&&|\|\||\?|:)"
    r"|(?P<sign>[-+])"
    r"|(?P<unary>!(?!=)|~)"
    r"|(?P<divide>\*\*|/|%)"
    r"|(?P<binary><<|>>|<=|>=|==|!=|[*<>&^|])"
    r"|(?P<comma>,)"
    r"|(?P<separator>;)"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
)
_NOT_ZERO = re.compile(r"[1-9][0-9]*")
_OPERANDS = frozenset({"number", "name", "value", "braced", "digits"})


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
        _refuse(reader)
    reader.position += len(text)


def _refuse(reader: Reader) -> NoReturn:
    reader.fail("arithmetic that is not plain numbers, names and operators, or might fail")


@dataclass(slots=True)
class _State:
    """Where the reading of an expression stands."""

    start: int
    operand: bool = False
    """The last token ends an operand; what follows must be an operator."""
    kind: str = "start"
    text: str = ""
    """The last token."""
    settable: bool = True
    """A name that comes now may be given a value."""
    target: str | None = None
    """The last token is a name that may be given a value."""
    branches: list[str] = field(default_factory=list)
    """The `(` and `?` that are open."""
    conditional: bool = False
    reads: list[str] = field(default_factory=list)
    inserts: list[str] = field(default_factory=list)
    assigns: list[str] = field(default_factory=list)


def _read_expression(reader: Reader, quoted: bool) -> Arithmetic:
    state = _State(reader.position)
    while match := _TOKEN.match(reader.text, reader.position, reader.end):
        kind = match.lastgroup or ""
        if kind == "separator" or (kind == "close" and "(" not in state.branches):
            break
        reader.notes.count_pieces(1)
        if kind != "blank":
            _take(reader, state, kind, match[kind])
            state.kind = "stepped" if state.kind == "step" and kind == "name" else kind
            state.text = match[kind]
        reader.position = match.end()
    if state.branches or (state.kind != "start" and not state.operand):
        _refuse(reader)
    span = reader.span(state.start, reader.position)
    return Arithmetic(
        tuple(state.reads), tuple(state.inserts), tuple(state.assigns), span, not state.conditional, quoted
    )


def _take(reader: Reader, state: _State, kind: str, text: str) -> None:
    if kind in _OPERANDS or (kind in {"sign", "unary", "open"} and not state.operand):
        _take_operand(reader, state, kind, text)
    elif kind == "step":
        _take_step(reader, state)
    elif not state.operand:
        _refuse(reader)
    elif kind == "assign":
        _take_assignment(reader, state, text)
    elif kind == "close":
        if state.branches.pop() != "(":
            _refuse(reader)
        state.target = None
    else:
        _take_operator(reader, state, kind, text)


def _take_operand(reader: Reader, state: _State, kind: str, text: str) -> None:
    divisor = state.kind == "divide" or (state.kind == "assign" and state.text in {"/=", "%="})
    if state.operand or (divisor and not (kind == "number" and _NOT_ZERO.fullmatch(text))):
        _refuse(reader)
    if state.kind == "step" and kind != "name":
        _refuse(reader)
    state.target = text if kind == "name" and (state.settable or state.kind == "step") else None
    if state.kind == "step":
        _assign(reader, state, text)
        state.target = None
    if kind == "name":
        state.reads.append(text)
    if kind in {"value", "braced"}:
        state.inserts.append(text)
    if kind == "open":
        state.branches.append("(")
    state.operand = kind in _OPERANDS
    state.settable = kind == "open"


def _take_step(reader: Reader, state: _State) -> None:
    """`++` and `--`, before or behind a name."""
    if not state.operand:
        return
    if state.kind != "name":
        _refuse(reader)
    _assign(reader, state, state.text)
    state.target = None


def _take_assignment(reader: Reader, state: _State, operator: str) -> None:
    if state.target is None or state.kind != "name":
        _refuse(reader)
    if operator == "=":
        state.reads.pop()
    _assign(reader, state, state.text)
    state.operand, state.settable = False, True


def _take_operator(reader: Reader, state: _State, kind: str, text: str) -> None:
    undecided = state.branches[-1:] == ["?"]
    if undecided != (text == ":") and text in {":", ","}:
        _refuse(reader)
    if text == "?":
        state.branches.append("?")
    elif text == ":":
        state.branches.pop()
    state.conditional = state.conditional or kind == "branch"
    state.operand, state.target = False, None
    state.settable = kind == "comma"


def _assign(reader: Reader, state: _State, name: str) -> None:
    check_assignable(reader, name)
    state.assigns.append(name)
    reader.notes.assign(name, integer=True)
