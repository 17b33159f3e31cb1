"""Reads compound commands: groups, branches, loops, `case` and `[[ ... ]]`."""

import re
from collections.abc import Callable

from ci_agent.policy.shell.arithmetic import read_arithmetic
from ci_agent.policy.shell.conditional import read_conditional
from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.simple_commands import read_role
from ci_agent.policy.shell.static_words import is_integer
from ci_agent.policy.shell.syntax import (
    Branches,
    Choice,
    Compound,
    ForEach,
    Group,
    Loop,
    Sequence,
    Simple,
    SourceWord,
)
from ci_agent.policy.shell.tokens import expect, peek_operator, peek_reserved, read_body, skip_lines, step
from ci_agent.policy.shell.variables import check_assignable
from ci_agent.policy.shell.word_reader import read_word

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;])")
_NAME_ALONE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN = re.compile(r"in(?=[ \t\n;])")


def read_subshell(reader: Reader) -> Group:
    before = reader.notes.moves
    reader.position += 1
    reader.enter()
    body = read_body(reader)
    reader.leave()
    expect(reader, ")")
    reader.notes.moves = before
    return Group(body, subshell=True)


def _read_group(reader: Reader) -> Group:
    body = read_body(reader)
    expect(reader, "}")
    return Group(body, subshell=False)


def _read_if(reader: Reader) -> Branches:
    arms: list[tuple[Sequence, Sequence]] = []
    otherwise: Sequence | None = None
    word = "if"
    while word in {"if", "elif"}:
        condition = read_body(reader)
        expect(reader, "then")
        arms.append((condition, read_body(reader)))
        word = peek_reserved(reader)
        reader.position += len(word)
    if word == "else":
        otherwise = read_body(reader)
        word = peek_reserved(reader)
        reader.position += len(word)
    if word != "fi":
        reader.fail("expected 'fi'")
    return Branches(tuple(arms), otherwise)


def _read_loop(reader: Reader) -> Loop:
    before, outer = reader.notes.moves, _enter_loop(reader)
    condition = read_body(reader)
    name, exactly = _variable_of_lines(condition)
    assigned = reader.notes.assigned.get(name or "")
    body = _read_do(reader)
    reader.notes.loop = outer
    keeps = reader.notes.assigned.get(name or "") == assigned
    return Loop(condition, (), body, reader.notes.moves != before, name if keeps else None, exactly)


def _variable_of_lines(condition: Sequence) -> tuple[str | None, bool]:
    """The variable that `read` gives the next line as a whole, when that is all that the condition does."""
    pipelines = [pipeline for item in condition.items for pipeline in item.pipelines]
    stage = pipelines[0].stages[0] if len(pipelines) == 1 and len(pipelines[0].stages) == 1 else None
    if not isinstance(stage, Simple) or stage.redirects or pipelines[0].negated or condition.items[0].background:
        return None, False
    if any(each.name != "IFS" or each.value.parts or each.value.plain for each in stage.assignments):
        return None, False
    match [word.plain for word in stage.words]:
        case ["read", "-r", str(name)] | ["read", str(name)] if _NAME_ALONE.fullmatch(name):
            return name, bool(stage.assignments)
    return None, False


def _enter_loop(reader: Reader) -> int:
    """Number the loop that begins here; return the number of the one around it."""
    outer = reader.notes.loop
    reader.notes.loops += 1
    reader.notes.loop = reader.notes.loops
    return outer


def _read_do(reader: Reader) -> Sequence:
    expect(reader, "do")
    body = read_body(reader)
    expect(reader, "done")
    return body


def _read_for(reader: Reader) -> Loop | ForEach:
    start, before, all_before = reader.position - 3, reader.notes.moves, reader.notes.all_moves
    outer = _enter_loop(reader)
    reader.skip_blanks()
    if reader.at("(("):
        reader.require_bash("for ((...))")
        reader.position += 2
        expressions = read_arithmetic(reader, quoted=True, parts=3)
        _skip_separator(reader)
        body = _read_do(reader)
        reader.notes.loop = outer
        return Loop(None, expressions, body, moves=reader.notes.moves != before)
    name = _NAME.match(reader.text, reader.position, reader.end)
    if name is None:
        reader.fail("expected the name of a variable")
    reader.position = name.end()
    check_assignable(reader, name[0])
    reader.skip_blanks()
    words = _read_items(reader)
    integers = words is not None and all(is_integer(word) for word in words)
    reader.notes.assign(name[0], integer=integers)
    span = reader.span(start, reader.position)
    _skip_separator(reader)
    assigned = reader.notes.assigned[name[0]]
    body = _read_do(reader)
    reader.notes.loop = outer
    keeps = reader.notes.assigned[name[0]] == assigned
    moves, enters = reader.notes.moves != before, reader.notes.all_moves != all_before
    return ForEach(name[0], words, body, moves, enters, keeps, span)


def _skip_separator(reader: Reader) -> None:
    reader.skip_blanks()
    if reader.at(";") and not reader.at(";;"):
        step(reader, ";")
    skip_lines(reader)


def _read_items(reader: Reader) -> tuple[SourceWord, ...] | None:
    """The words of `in words`; None when there is no `in`."""
    if not _IN.match(reader.text, reader.position, reader.end):
        return None
    reader.position += 2
    words: list[SourceWord] = []
    reader.skip_blanks()
    while reader.peek() not in {";", "\n", ""}:
        words.append(read_role(reader, "item"))
        reader.skip_blanks()
    return tuple(words)


def _read_case(reader: Reader) -> Choice:
    reader.skip_blanks()
    subject = read_word(reader)
    skip_lines(reader)
    if not _IN.match(reader.text, reader.position, reader.end):
        reader.fail("expected 'in'")
    reader.position += 2
    patterns: list[SourceWord] = []
    bodies: list[Sequence] = []
    skip_lines(reader)
    while peek_reserved(reader) != "esac":
        patterns += _read_patterns(reader)
        bodies.append(reader.read_program(reader))
        _skip_case_end(reader)
    reader.position += 4
    return Choice(subject, tuple(patterns), tuple(bodies))


def _read_patterns(reader: Reader) -> list[SourceWord]:
    if reader.at("("):
        reader.position += 1
        reader.skip_blanks()
    patterns = [read_word(reader)]
    reader.skip_blanks()
    while reader.at("|"):
        reader.position += 1
        reader.skip_blanks()
        patterns.append(read_word(reader))
        reader.skip_blanks()
    expect(reader, ")")
    return patterns


def _skip_case_end(reader: Reader) -> None:
    operator = peek_operator(reader)
    if operator in {";;", ";&", ";;&"}:
        if operator != ";;":
            reader.require_bash(f"{operator!r}")
        reader.position += len(operator)
        skip_lines(reader)
    elif peek_reserved(reader) != "esac":
        reader.fail("expected ';;' or 'esac'")


def _read_conditional(reader: Reader) -> Compound:
    start = reader.position - 2
    conditional = read_conditional(reader)
    reader.roles.append((start, reader.position, "test"))
    return conditional


def _read_unsupported(reader: Reader) -> Compound:
    reader.fail("`select` and `coproc` are not understood")


COMPOUND: dict[str, Callable[[Reader], Compound]] = {
    "{": _read_group,
    "if": _read_if,
    "while": _read_loop,
    "until": _read_loop,
    "for": _read_for,
    "case": _read_case,
    "[[": _read_conditional,
    "select": _read_unsupported,
    "coproc": _read_unsupported,
}
"""For each reserved word, what reads the rest of the command."""
