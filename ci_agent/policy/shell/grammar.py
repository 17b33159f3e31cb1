"""Reads programs: lists of commands, pipelines, functions."""

import re
from typing import cast

from ci_agent.policy.shell.arithmetic import read_arithmetic
from ci_agent.policy.shell.compound import COMPOUND, read_subshell
from ci_agent.policy.shell.reader import Mask, Reader
from ci_agent.policy.shell.simple_commands import (
    ENDS_COMMAND,
    RESERVED_WORDS,
    read_plain,
    read_redirect,
    read_simple,
)
from ci_agent.policy.shell.static_words import word_set
from ci_agent.policy.shell.syntax import (
    AndOr,
    Evaluation,
    Function,
    Pipeline,
    Redirected,
    Sequence,
    Simple,
    SourceRedirect,
    Stage,
)
from ci_agent.policy.shell.tokens import expect, peek_operator, peek_reserved, skip_lines, step

_CLOSERS = word_set("then elif else fi do done esac }")
_FUNCTION = re.compile(r"([A-Za-z_][A-Za-z0-9_.:-]*)[ \t]*\([ \t]*\)")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*(?=[ \t\n(])")
_TIME_OPTION = re.compile(r"-p(?=[ \t])")


def read_program(reader: Reader) -> Sequence:
    """Read a list of commands up to the end of the text, a `)`, a `;;` or a reserved word that closes something."""
    items: list[AndOr] = []
    while True:
        skip_lines(reader, ends_command=True)
        before = reader.notes.moves
        plain = read_plain(reader)
        if plain is None and _at_closer(reader):
            break
        pipelines, operators, terminator = _read_and_or(reader, plain)
        background = terminator == "&"
        if background:
            reader.notes.moves = before
        items.append(AndOr(pipelines, operators, background))
        if terminator in {";", "&"}:
            step(reader, terminator)
        elif terminator != "\n":
            break
    if reader.pending and reader.position >= reader.end:
        reader.fail("a here-document without a body")
    return Sequence(tuple(items))


def _at_closer(reader: Reader) -> bool:
    return reader.position >= reader.end or reader.peek() in {")", ";"} or peek_reserved(reader) in _CLOSERS


def _read_and_or(reader: Reader, plain: Simple | None) -> tuple[tuple[Pipeline, ...], tuple[str, ...], str]:
    """`plain` is the first command where that has been read already. Also returns the operator behind it all."""
    pipeline, operator = _read_pipeline(reader, plain)
    if operator not in {"&&", "||"}:
        return (pipeline,), (), operator
    pipelines, operators = [pipeline], list[str]()
    while operator in {"&&", "||"}:
        step(reader, operator)
        skip_lines(reader)
        operators.append(operator)
        pipeline, operator = _read_pipeline(reader, read_plain(reader))
        pipelines.append(pipeline)
    return tuple(pipelines), tuple(operators), operator


def _read_pipeline(reader: Reader, plain: Simple | None) -> tuple[Pipeline, str]:
    """Also returns the operator behind it."""
    before, negated = reader.notes.moves, False
    while plain is None and (word := peek_reserved(reader)) in {"!", "time"}:
        reader.notes.count_pieces(1)
        if word == "!":
            reader.position += 1
            negated = not negated
        else:
            _read_time(reader)
        reader.skip_blanks()
    stages: list[Stage] = [plain or _read_stage(reader)]
    while (operator := peek_operator(reader)) in {"|", "|&"}:
        if operator == "|&":
            reader.require_bash("'|&'")
        step(reader, operator)
        skip_lines(reader)
        stages.append(read_plain(reader) or _read_stage(reader))
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
    reader.skip_blanks()
    if reader.enclosed is not None and (peek_reserved(reader) or reader.at("(")):
        # At the beginning of a substitution bash takes `time` for a program, and what follows for its arguments.
        reader.fail("`time` before a compound command in a substitution", start)
    reader.masks.append(Mask(start, reader.position, " "))


def _read_stage(reader: Reader) -> Stage:
    start = reader.position
    word = peek_reserved(reader)
    if not word and not reader.at("("):
        return _read_function_or_simple(reader)
    if word in {"[[", "function"} or reader.at("(("):
        reader.require_bash(f"{word or '((...))'!r}")
    if word in COMPOUND:
        reader.position += len(word)
        reader.enter()
        command = COMPOUND[word](reader)
        reader.leave()
    elif word == "function":
        return _read_function_keyword(reader)
    elif word:
        reader.fail(f"unexpected {word!r}")
    elif reader.at("(("):
        reader.position += 2
        reader.notes.count_command()
        command = Evaluation(read_arithmetic(reader, quoted=True)[0])
    else:
        command = read_subshell(reader)
    redirects = _read_redirects(reader)
    return Redirected(command, redirects, reader.span(start, reader.position))


def _read_function_or_simple(reader: Reader) -> Stage:
    start = reader.position
    if match := _FUNCTION.match(reader.text, start, reader.end):
        reader.position = match.end()
        return _read_function(reader, match[1], start)
    return read_simple(reader)


def _read_redirects(reader: Reader) -> tuple[SourceRedirect, ...]:
    redirects: list[SourceRedirect] = []
    reader.skip_blanks()
    while redirect := read_redirect(reader):
        redirects.append(redirect)
        reader.skip_blanks()
    if not ENDS_COMMAND.match(reader.text, reader.position, reader.end):
        reader.fail_at_token()
    return tuple(redirects)


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
        expect(reader, ")")
    return _read_function(reader, name[0], start)


def _read_function(reader: Reader, name: str, start: int) -> Function:
    """Read the body. Nothing in it moves the shell now; if it ever may, the folder is unknown everywhere."""
    before = reader.notes.moves
    skip_lines(reader)
    if name in RESERVED_WORDS or (peek_reserved(reader) != "{" and not reader.at("(")) or reader.at("(("):
        reader.fail(f"the definition of function {name!r} is not understood", start)
    reader.notes.deferred += 1
    body = cast("Redirected", _read_stage(reader))
    reader.notes.deferred -= 1
    if reader.notes.moves != before:
        reader.notes.function_moves = True
    reader.notes.moves = before
    reader.notes.functions.add(name)
    return Function(name, body, reader.span(start, reader.position))
