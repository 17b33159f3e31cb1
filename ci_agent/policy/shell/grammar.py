"""Reads commands: lists, pipelines, compound commands, simple commands and their redirections."""

import re
from collections.abc import Callable
from typing import cast

from ci_agent.policy.shell.arithmetic import read_arithmetic
from ci_agent.policy.shell.builtins import DECLARING, note_assignments, note_builtin
from ci_agent.policy.shell.conditional import read_conditional
from ci_agent.policy.shell.here_documents import read_delimiter, read_newline
from ci_agent.policy.shell.reader import DESCRIPTOR, Mask, Reader, Role
from ci_agent.policy.shell.static_words import is_integer, static_text, word_set
from ci_agent.policy.shell.syntax import (
    AndOr,
    Branches,
    Choice,
    Compound,
    Evaluation,
    ForEach,
    Function,
    Group,
    Loop,
    Pipeline,
    Redirected,
    RedirectOperator,
    Sequence,
    Simple,
    SourceAssignment,
    SourceRedirect,
    SourceWord,
    Stage,
)
from ci_agent.policy.shell.variables import check_assignable
from ci_agent.policy.shell.word_reader import read_value, read_word

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;|&()<>]|\Z)"
)
_RESERVED_WORDS = word_set(
    "if then elif else fi for while until do done case esac select function time coproc in { } ! [[ ]]"
)
_CLOSERS = word_set("then elif else fi do done esac }")
_ENDS_ITEM = re.compile(r";;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\||\)|\n|\Z")
_REDIRECT = re.compile(
    r"(?:(?P<descriptor>[0-9]{1,3})|\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\})?"
    r"(?P<operator><<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|(?P<both>&>>|&>)"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_FUNCTION = re.compile(r"([A-Za-z_][A-Za-z0-9_.:-]*)[ \t]*\([ \t]*\)")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*(?=[ \t\n(])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;])")
_BEHIND_ARRAY = frozenset(("", *" \t\n;|&()<>"))
_IN = re.compile(r"in(?=[ \t\n;])")
_TIME_OPTION = re.compile(r"-p(?=[ \t])")


def read_program(reader: Reader) -> Sequence:
    """Read a list of commands up to the end of the text, a `)`, a `;;` or a reserved word that closes something."""
    items: list[AndOr] = []
    while True:
        _skip_lines(reader)
        if _at_closer(reader):
            break
        before = reader.notes.moves
        pipelines, operators = _read_and_or(reader)
        terminator = _peek_operator(reader)
        background = terminator == "&"
        if background:
            reader.notes.moves = before
        items.append(AndOr(pipelines, operators, background))
        if terminator in {";", "&"}:
            _step(reader, terminator)
        elif terminator != "\n":
            break
    if reader.pending and reader.position >= reader.end:
        reader.fail("a here-document without a body")
    return Sequence(tuple(items))


def _peek_operator(reader: Reader) -> str:
    reader.skip_blanks()
    match = _ENDS_ITEM.match(reader.text, reader.position, reader.end)
    return match[0] if match else ""


def _step(reader: Reader, operator: str) -> None:
    """Step over an operator; no continuation line may make another operator of it."""
    reader.position += len(operator)
    position = reader.position
    while reader.text.startswith("\\\n", position, reader.end):
        position += 2
    if position > reader.position and reader.text[position : position + 1] in tuple("|&;<>()-"):
        reader.fail("a continuation line in the middle of an operator")


def _skip_lines(reader: Reader) -> None:
    reader.skip_blanks()
    while reader.at("\n"):
        read_newline(reader, read_program)
        reader.skip_blanks()


def _peek_reserved(reader: Reader) -> str:
    match = _RESERVED.match(reader.text, reader.position, reader.end)
    return match[0] if match else ""


def _at_closer(reader: Reader) -> bool:
    return reader.position >= reader.end or reader.peek() in {")", ";"} or _peek_reserved(reader) in _CLOSERS


def _expect(reader: Reader, word: str) -> None:
    """Step over a reserved word or a parenthesis that must stand here."""
    reader.skip_blanks()
    if not (reader.at(")") if word == ")" else _peek_reserved(reader) == word):
        reader.fail(f"expected {word!r}")
    reader.position += len(word)


def _read_body(reader: Reader) -> Sequence:
    """A list that must not be empty."""
    program = read_program(reader)
    if not program.items:
        reader.fail("expected a command")
    return program


def _read_and_or(reader: Reader) -> tuple[tuple[Pipeline, ...], tuple[str, ...]]:
    pipelines, operators = [_read_pipeline(reader)], list[str]()
    while (operator := _peek_operator(reader)) in {"&&", "||"}:
        _step(reader, operator)
        _skip_lines(reader)
        operators.append(operator)
        pipelines.append(_read_pipeline(reader))
    return tuple(pipelines), tuple(operators)


def _read_pipeline(reader: Reader) -> Pipeline:
    before, negated = reader.notes.moves, False
    while (word := _peek_reserved(reader)) in {"!", "time"}:
        if word == "!":
            reader.position += 1
            negated = not negated
        else:
            _read_time(reader)
        reader.skip_blanks()
    stages = [_read_stage(reader)]
    while (operator := _peek_operator(reader)) in {"|", "|&"}:
        _step(reader, operator)
        _skip_lines(reader)
        stages.append(_read_stage(reader))
    if len(stages) > 1:
        reader.notes.moves = before
    return Pipeline(tuple(stages), negated)


def _read_time(reader: Reader) -> None:
    start = reader.position
    reader.position += 4
    reader.skip_blanks()
    if option := _TIME_OPTION.match(reader.text, reader.position, reader.end):
        reader.position = option.end()
    elif reader.peek() in {"-", ""} or reader.peek() in "\n;|&)<>":
        reader.fail("`time` without a command")
    reader.masks.append(Mask(start, reader.position, " "))


def _read_stage(reader: Reader) -> Stage:
    start = reader.position
    word = _peek_reserved(reader)
    if word in _COMPOUND:
        reader.position += len(word)
        reader.enter()
        command = _COMPOUND[word](reader)
        reader.leave()
    elif word == "function":
        return _read_function_keyword(reader)
    elif word:
        reader.fail(f"unexpected {word!r}")
    elif reader.at("(("):
        reader.position += 2
        command = Evaluation(read_arithmetic(reader, quoted=True)[0])
    elif reader.at("("):
        command = _read_subshell(reader)
    elif match := _FUNCTION.match(reader.text, start, reader.end):
        reader.position = match.end()
        return _read_function(reader, match[1], start)
    else:
        return _read_simple(reader)
    redirects = _read_redirects(reader)
    return Redirected(command, redirects, reader.span(start, reader.position))


def _read_redirects(reader: Reader) -> tuple[SourceRedirect, ...]:
    redirects: list[SourceRedirect] = []
    while True:
        reader.skip_blanks()
        redirect = _read_redirect(reader)
        if redirect is None:
            break
        redirects.append(redirect)
    if not _ENDS_ITEM.match(reader.text, reader.position, reader.end):
        reader.fail("unexpected text behind a compound command")
    return tuple(redirects)


# Compound commands: each reader starts behind the opening word.


def _read_subshell(reader: Reader) -> Group:
    before = reader.notes.moves
    reader.position += 1
    reader.enter()
    body = _read_body(reader)
    reader.leave()
    _expect(reader, ")")
    reader.notes.moves = before
    return Group(body, subshell=True)


def _read_group(reader: Reader) -> Group:
    body = _read_body(reader)
    _expect(reader, "}")
    return Group(body, subshell=False)


def _read_if(reader: Reader) -> Branches:
    arms: list[tuple[Sequence, Sequence]] = []
    otherwise: Sequence | None = None
    word = "if"
    while word in {"if", "elif"}:
        condition = _read_body(reader)
        _expect(reader, "then")
        arms.append((condition, _read_body(reader)))
        word = _peek_reserved(reader)
        reader.position += len(word)
    if word == "else":
        otherwise = _read_body(reader)
        word = _peek_reserved(reader)
        reader.position += len(word)
    if word != "fi":
        reader.fail("expected 'fi'")
    return Branches(tuple(arms), otherwise)


def _read_loop(reader: Reader) -> Loop:
    before = reader.notes.moves
    condition = _read_body(reader)
    body = _read_do(reader)
    return Loop(condition, (), body, moves=reader.notes.moves != before)


def _read_do(reader: Reader) -> Sequence:
    _expect(reader, "do")
    body = _read_body(reader)
    _expect(reader, "done")
    return body


def _read_for(reader: Reader) -> Loop | ForEach:
    start, before = reader.position - 3, reader.notes.moves
    reader.skip_blanks()
    if reader.at("(("):
        reader.position += 2
        expressions = read_arithmetic(reader, quoted=True, parts=3)
        _skip_separator(reader)
        body = _read_do(reader)
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
    body = _read_do(reader)
    return ForEach(name[0], words, body, reader.notes.moves != before, span)


def _skip_separator(reader: Reader) -> None:
    reader.skip_blanks()
    if reader.at(";") and not reader.at(";;"):
        _step(reader, ";")
    _skip_lines(reader)


def _read_items(reader: Reader) -> tuple[SourceWord, ...] | None:
    """The words of `in words`; None when there is no `in`."""
    if not _IN.match(reader.text, reader.position, reader.end):
        return None
    reader.position += 2
    words: list[SourceWord] = []
    reader.skip_blanks()
    while reader.peek() not in {";", "\n", ""}:
        words.append(_read_role(reader, "item"))
        reader.skip_blanks()
    return tuple(words)


def _read_case(reader: Reader) -> Choice:
    reader.skip_blanks()
    subject = read_word(reader, read_program)
    _skip_lines(reader)
    if not _IN.match(reader.text, reader.position, reader.end):
        reader.fail("expected 'in'")
    reader.position += 2
    patterns: list[SourceWord] = []
    bodies: list[Sequence] = []
    _skip_lines(reader)
    while _peek_reserved(reader) != "esac":
        patterns += _read_patterns(reader)
        bodies.append(read_program(reader))
        _skip_case_end(reader)
    reader.position += 4
    return Choice(subject, tuple(patterns), tuple(bodies))


def _read_patterns(reader: Reader) -> list[SourceWord]:
    if reader.at("("):
        reader.position += 1
        reader.skip_blanks()
    patterns = [read_word(reader, read_program)]
    reader.skip_blanks()
    while reader.at("|"):
        reader.position += 1
        reader.skip_blanks()
        patterns.append(read_word(reader, read_program))
        reader.skip_blanks()
    _expect(reader, ")")
    return patterns


def _skip_case_end(reader: Reader) -> None:
    operator = _peek_operator(reader)
    if operator in {";;", ";&", ";;&"}:
        reader.position += len(operator)
        _skip_lines(reader)
    elif _peek_reserved(reader) != "esac":
        reader.fail("expected ';;' or 'esac'")


def _read_conditional(reader: Reader) -> Compound:
    start = reader.position - 2
    conditional = read_conditional(reader, read_program)
    reader.roles.append((start, reader.position, "test"))
    reader.notes.count_command(conditional.span)
    return conditional


def _read_unsupported(reader: Reader) -> Compound:
    reader.fail("`select` and `coproc` are not understood")


_COMPOUND: dict[str, Callable[[Reader], Compound]] = {
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


def _read_function_keyword(reader: Reader) -> Function:
    start = reader.position
    reader.position += len("function")
    reader.skip_blanks()
    name = _FUNCTION_NAME.match(reader.text, reader.position, reader.end)
    if name is None:
        reader.fail("expected the name of a function")
    reader.position = name.end()
    reader.skip_blanks()
    if reader.at("("):
        reader.position += 1
        _expect(reader, ")")
    return _read_function(reader, name[0], start)


def _read_function(reader: Reader, name: str, start: int) -> Function:
    """Read the body. Nothing in it moves the shell now; if it ever may, the folder is unknown everywhere."""
    before = reader.notes.moves
    _skip_lines(reader)
    if name in _RESERVED_WORDS or (_peek_reserved(reader) != "{" and not reader.at("(")) or reader.at("(("):
        reader.fail(f"the definition of function {name!r} is not understood", start)
    body = cast("Redirected", _read_stage(reader))
    if reader.notes.moves != before:
        reader.notes.function_moves = True
    reader.notes.moves = before
    reader.notes.functions.add(name)
    return Function(name, body, reader.span(start, reader.position))


# Simple commands.


def _read_simple(reader: Reader) -> Simple:
    start = end = reader.position
    assignments: list[SourceAssignment] = []
    words: list[SourceWord] = []
    redirects: list[SourceRedirect] = []
    declared: list[SourceAssignment] = []
    while True:
        reader.skip_blanks()
        if redirect := _read_redirect(reader):
            redirects.append(redirect)
        elif _ENDS_ITEM.match(reader.text, reader.position, reader.end):
            break
        elif words and words[0].plain in DECLARING:
            words.append(_read_declared(reader, declared))
        elif words:
            words.append(_read_role(reader, "argument"))
        elif _ASSIGNMENT.match(reader.text, reader.position, reader.end):
            assignments.append(_read_assignment(reader, "assignment"))
        else:
            words.append(_read_name(reader))
        end = reader.position
    if start == end:
        reader.fail(f"unexpected {reader.peek() or 'end'!r}")
    if words and words[0].plain is None and static_text(words[0]) == "[":
        _note_bracket(reader, start)
    span = reader.span(start, end)
    reader.notes.count_command(span)
    note_assignments(reader, assignments, words)
    builtin = note_builtin(reader, words, declared, read_program)
    return Simple(tuple(assignments), tuple(words), tuple(redirects), tuple(declared), builtin, span)


def _note_bracket(reader: Reader, start: int) -> None:
    """`[ ... ]` is one stretch to the second reading."""
    words = [role for role in reader.roles if role[0] >= start and role[2] in {"name", "argument"}]
    reader.roles[:] = [role for role in reader.roles if role not in words]
    reader.roles.append((words[0][0], words[-1][1], "test"))


def _read_role(reader: Reader, role: Role) -> SourceWord:
    start = reader.position
    word = read_word(reader, read_program)
    reader.roles.append((start, reader.position, role))
    return word


def _read_name(reader: Reader) -> SourceWord:
    start = reader.position
    if _ELEMENT.match(reader.text, start, reader.end):
        reader.fail("the assignment of one element of an array")
    word = _read_role(reader, "name")
    source = reader.text[start : reader.position]
    if source in _RESERVED_WORDS:
        reader.fail(f"unexpected {source!r}", start, reader.position)
    return word


def _read_declared(reader: Reader, declared: list[SourceAssignment]) -> SourceWord:
    """An argument of `export` and its like, which may have the form of an assignment."""
    if _ELEMENT.match(reader.text, reader.position, reader.end):
        reader.fail("the assignment of one element of an array")
    if not _ASSIGNMENT.match(reader.text, reader.position, reader.end):
        return _read_role(reader, "argument")
    assignment = _read_assignment(reader, "argument")
    declared.append(assignment)
    return SourceWord(None, (), assignment.span)


def _read_assignment(reader: Reader, role: Role) -> SourceAssignment:
    start = reader.position
    match = cast("re.Match[str]", _ASSIGNMENT.match(reader.text, start, reader.end))
    reader.position = match.end()
    elements: tuple[SourceWord, ...] | None = None
    if reader.at("("):
        elements = _read_elements(reader)
        value = SourceWord(None, (), reader.span(match.end(), reader.position))
    else:
        value = read_value(reader, read_program)
    reader.roles.append((start, reader.position, role))
    return SourceAssignment(match[1], value, elements, match[2] == "+=", reader.span(start, reader.position))


def _read_elements(reader: Reader) -> tuple[SourceWord, ...]:
    words: list[SourceWord] = []
    start = reader.position
    reader.position += 1
    _skip_array_blanks(reader)
    while not reader.at(")"):
        if reader.at("["):
            reader.fail("the assignment of one element of an array")
        words.append(read_word(reader, read_program))
        _skip_array_blanks(reader)
    reader.position += 1
    if reader.peek() not in _BEHIND_ARRAY:
        reader.fail("an array that is not understood", start, reader.position)
    return tuple(words)


def _skip_array_blanks(reader: Reader) -> None:
    reader.skip_blanks()
    while reader.at("\n") and not reader.pending:
        reader.position += 1
        reader.skip_blanks()


def _read_redirect(reader: Reader) -> SourceRedirect | None:
    match = _REDIRECT.match(reader.text, reader.position, reader.end)
    if match is None:
        return None
    start, variable = reader.position, match["variable"]
    operator = cast("RedirectOperator", match["operator"] or match["both"])
    reader.position = match.end()
    if reader.at("\\\n") or reader.peek() in {"(", "&", "|"}:
        reader.fail("a redirection that is not understood", start, reader.position)
    if variable:
        check_assignable(reader, variable)
        reader.notes.assign(variable, integer=True)
        reader.masks.append(Mask(match.start("variable") - 1, match.end("variable") + 1, "1"))
    if operator in {"<<", "<<-"}:
        return read_delimiter(reader, start, operator)
    reader.skip_blanks()
    if reader.peek() in {"<", ">"} and not reader.text.startswith("(", reader.position + 1, reader.end):
        reader.fail("a redirection without a target", start, reader.position)
    target = _read_role(reader, "target")
    if operator == "<&" and not DESCRIPTOR.fullmatch(static_text(target) or ""):
        reader.fail("a copy of a descriptor whose number is not certain", start, reader.position)
    return SourceRedirect(operator, target, variable, [], reader.span(start, reader.position))
