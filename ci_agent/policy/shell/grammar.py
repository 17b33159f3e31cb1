"""Reads programs: lists of commands, pipelines, compound commands."""

import re
from collections.abc import Callable
from typing import cast

from ci_agent.policy.shell.arithmetic import read_arithmetic
from ci_agent.policy.shell.conditional import read_conditional
from ci_agent.policy.shell.here_documents import read_newline
from ci_agent.policy.shell.reader import Mask, Reader
from ci_agent.policy.shell.simple_commands import (
    ENDS_COMMAND,
    RESERVED_WORDS,
    read_plain,
    read_redirect,
    read_role,
    read_simple,
)
from ci_agent.policy.shell.static_words import is_integer, word_set
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
    Sequence,
    Simple,
    SourceRedirect,
    SourceWord,
    Stage,
)
from ci_agent.policy.shell.variables import check_assignable
from ci_agent.policy.shell.word_reader import read_word

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;|&()<>]|\Z)"
)
_CLOSERS = word_set("then elif else fi do done esac }")
_OPERATOR = re.compile(r"[ \t]*(;;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\||\)|\n|\Z)")
_EXTENDING = {";": ";&", "&": "&>", "|": "|&"}
"""The characters that make a longer operator of one."""
_FUNCTION = re.compile(r"([A-Za-z_][A-Za-z0-9_.:-]*)[ \t]*\([ \t]*\)")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*(?=[ \t\n(])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;])")
_EMPTY_LINES = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){1,100}")
_IN = re.compile(r"in(?=[ \t\n;])")
_TIME_OPTION = re.compile(r"-p(?=[ \t])")


def read_program(reader: Reader) -> Sequence:
    """Read a list of commands up to the end of the text, a `)`, a `;;` or a reserved word that closes something."""
    items: list[AndOr] = []
    while True:
        _skip_lines(reader)
        before = reader.notes.moves
        plain = read_plain(reader, read_program)
        if plain is None and _at_closer(reader):
            break
        pipelines, operators, terminator = _read_and_or(reader, plain)
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
    match = _OPERATOR.match(reader.text, reader.position, reader.end)
    if match is None:
        reader.skip_blanks()
        match = _OPERATOR.match(reader.text, reader.position, reader.end)
    if match is None:
        return ""
    reader.position = match.start(1)
    return match[1]


def _step(reader: Reader, operator: str) -> None:
    """Step over an operator; no continuation line may make another operator of it."""
    reader.position += len(operator)
    if not reader.at("\\\n"):
        return
    position = reader.position
    while reader.text.startswith("\\\n", position, reader.end):
        position += 2
    if reader.text[position : position + 1] in tuple(_EXTENDING.get(operator, "")):
        reader.fail("a continuation line in the middle of an operator")


def _skip_lines(reader: Reader) -> None:
    reader.skip_blanks()
    while reader.at("\n"):
        read_newline(reader, read_program)
        while match := _EMPTY_LINES.match(reader.text, reader.position, reader.end):
            reader.notes.count_pieces(match[0].count("\n"))
            reader.position = match.end()
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


def _read_and_or(reader: Reader, plain: Simple | None) -> tuple[tuple[Pipeline, ...], tuple[str, ...], str]:
    """`plain` is the first command where that has been read already. Also returns the operator behind it all."""
    pipeline, operator = _read_pipeline(reader, plain)
    if operator not in {"&&", "||"}:
        return (pipeline,), (), operator
    pipelines, operators = [pipeline], list[str]()
    while operator in {"&&", "||"}:
        _step(reader, operator)
        _skip_lines(reader)
        operators.append(operator)
        pipeline, operator = _read_pipeline(reader, read_plain(reader, read_program))
        pipelines.append(pipeline)
    return tuple(pipelines), tuple(operators), operator


def _read_pipeline(reader: Reader, plain: Simple | None) -> tuple[Pipeline, str]:
    """Also returns the operator behind it."""
    before, negated = reader.notes.moves, False
    while plain is None and (word := _peek_reserved(reader)) in {"!", "time"}:
        reader.notes.count_pieces(1)
        if word == "!":
            reader.position += 1
            negated = not negated
        else:
            _read_time(reader)
        reader.skip_blanks()
    stages: list[Stage] = [plain or _read_stage(reader)]
    while (operator := _peek_operator(reader)) in {"|", "|&"}:
        if operator == "|&":
            reader.require_bash("'|&'")
        _step(reader, operator)
        _skip_lines(reader)
        stages.append(read_plain(reader, read_program) or _read_stage(reader))
    if len(stages) > 1:
        reader.notes.moves = before
    return Pipeline(tuple(stages), negated), operator


def _read_time(reader: Reader) -> None:
    start = reader.position
    reader.require_bash("`time`")
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
    if word in {"[[", "function"} or reader.at("(("):
        reader.require_bash(f"{word or '((...))'!r}")
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
        reader.notes.count_command()
        command = Evaluation(read_arithmetic(reader, quoted=True)[0])
    elif reader.at("("):
        command = _read_subshell(reader)
    elif match := _FUNCTION.match(reader.text, start, reader.end):
        reader.position = match.end()
        return _read_function(reader, match[1], start)
    else:
        return read_simple(reader, read_program)
    redirects = _read_redirects(reader)
    return Redirected(command, redirects, reader.span(start, reader.position))


def _read_redirects(reader: Reader) -> tuple[SourceRedirect, ...]:
    redirects: list[SourceRedirect] = []
    reader.skip_blanks()
    while redirect := read_redirect(reader, read_program):
        redirects.append(redirect)
        reader.skip_blanks()
    if not ENDS_COMMAND.match(reader.text, reader.position, reader.end):
        reader.fail_at_token()
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
    start, before, all_before = reader.position - 3, reader.notes.moves, reader.notes.all_moves
    reader.skip_blanks()
    if reader.at("(("):
        reader.require_bash("for ((...))")
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
    assigned = reader.notes.assigned[name[0]]
    body = _read_do(reader)
    keeps = reader.notes.assigned[name[0]] == assigned
    moves, enters = reader.notes.moves != before, reader.notes.all_moves != all_before
    return ForEach(name[0], words, body, moves, enters, keeps, span)


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
        words.append(read_role(reader, read_program, "item"))
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
        if operator != ";;":
            reader.require_bash(f"{operator!r}")
        reader.position += len(operator)
        _skip_lines(reader)
    elif _peek_reserved(reader) != "esac":
        reader.fail("expected ';;' or 'esac'")


def _read_conditional(reader: Reader) -> Compound:
    start = reader.position - 2
    conditional = read_conditional(reader, read_program)
    reader.roles.append((start, reader.position, "test"))
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
    if name in RESERVED_WORDS or (_peek_reserved(reader) != "{" and not reader.at("(")) or reader.at("(("):
        reader.fail(f"the definition of function {name!r} is not understood", start)
    reader.notes.deferred += 1
    body = cast("Redirected", _read_stage(reader))
    reader.notes.deferred -= 1
    if reader.notes.moves != before:
        reader.notes.function_moves = True
    reader.notes.moves = before
    reader.notes.functions.add(name)
    return Function(name, body, reader.span(start, reader.position))
