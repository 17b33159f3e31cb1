"""What words, assignments and redirections become, and the commands that run while they do."""

import re
from collections.abc import Iterable

from ci_agent.policy.shell.expansion import Surroundings, expand_value, expand_word
from ci_agent.policy.shell.folders import Folder
from ci_agent.policy.shell.program import Assignment, Redirect, RedirectMode, UnparsableError
from ci_agent.policy.shell.reader import DESCRIPTOR
from ci_agent.policy.shell.static_words import is_integer, only_part
from ci_agent.policy.shell.syntax import (
    Arithmetic,
    Parameter,
    Part,
    RedirectOperator,
    Simple,
    SourceAssignment,
    SourceRedirect,
    SourceWord,
    Substitution,
)
from ci_agent.policy.shell.trail import Trail
from ci_agent.policy.shell.variables import Known
from ci_agent.policy.words import Word

_MODES: dict[RedirectOperator, RedirectMode] = {
    "<": "read",
    ">": "write",
    ">|": "write",
    "&>": "write",
    ">&": "write",
    ">>": "append",
    "&>>": "append",
    "<>": "read_write",
}


_NOT_ALIKE = re.compile(r"[?\[]")


def expand_words(trail: Trail, simple: Simple, folder: Folder) -> tuple[Word, ...]:
    declared = simple.declared
    lasting = len(simple.words) == len(declared) + 1 and simple.words[0].plain != "local" and not simple.redirects
    words: list[Word] = []
    for index, word in enumerate(simple.words, -1):
        if word.plain is not None:
            words.append(Word("literal", word.plain, word.span))
        elif assignment := declared.get(index):
            words.append(_as_argument(assign(trail, assignment, folder, lasting=lasting), assignment.append))
        else:
            words += expand(trail, word, folder)
    return tuple(words)


def expand(trail: Trail, word: SourceWord, folder: Folder) -> list[Word]:
    visit(trail, word.parts, folder)
    words = expand_word(word, Surroundings(trail.source, trail.variables, folder))
    if trail.notes.posix and any(made.kind == "glob" and _NOT_ALIKE.search(made.text) for made in words):
        raise UnparsableError(
            "`?` or `[` in a pattern, which not every sh matches alike; run it with bash -c", word.span
        )
    trail.count_words(words)
    return words


def value_of(trail: Trail, word: SourceWord, folder: Folder) -> Word:
    visit(trail, word.parts, folder)
    return expand_value(word, Surroundings(trail.source, trail.variables, folder))


def visit(trail: Trail, parts: Iterable[Part], folder: Folder) -> None:
    """Run what is substituted in a word, and check what is evaluated."""
    for part in parts:
        if isinstance(part, Substitution):
            trail.run_apart(part.program, folder)
        elif isinstance(part, Arithmetic):
            evaluate(trail, part)
        elif isinstance(part, Parameter) and part.operands:
            scope = trail.open_scope()
            for operand in part.operands:
                visit(trail, operand.parts, folder)
            trail.close_scope(scope)


def evaluate(trail: Trail, arithmetic: Arithmetic) -> None:
    for name in arithmetic.reads:
        if not trail.variables.is_integer(name):
            reason = f"arithmetic evaluates the text of {name}, which is not known to be a number"
            raise UnparsableError(reason, arithmetic.span)
    for name in arithmetic.assigns:
        trail.variables.define(name, Known((), integer=True))


def is_number(trail: Trail, word: SourceWord) -> bool:
    part = only_part(word)
    if isinstance(part, Parameter) and part.plain and trail.variables.is_integer_or_empty(part.name):
        return True
    return is_integer(word)


def assign(trail: Trail, assignment: SourceAssignment, folder: Folder, *, lasting: bool) -> Assignment:
    if assignment.elements is not None:
        for element in assignment.elements:
            visit(trail, element.parts, folder)
        value = trail.unknown(assignment.value.span)
    else:
        value = value_of(trail, assignment.value, folder)
        if lasting:
            _define(trail, assignment, value, folder)
    if assignment.append:
        value = trail.unknown(assignment.value.span)
    return Assignment(assignment.name, value, assignment.span)


def _define(trail: Trail, assignment: SourceAssignment, value: Word, folder: Folder) -> None:
    if value.kind == "literal":
        known = Known((value,))
    elif value.kind == "choice":
        known = Known(value.choices, folder)
    elif is_integer(assignment.value):
        known = Known((), integer=True)
    elif value.stand_ins:
        known = Known((), stand_ins=value.stand_ins)
    else:
        return
    trail.variables.define(assignment.name, known)


def redirect_all(trail: Trail, redirects: tuple[SourceRedirect, ...], folder: Folder) -> tuple[Redirect, ...]:
    made = (_redirect(trail, redirect, folder) for redirect in redirects)
    return tuple(redirect for redirect in made if redirect is not None)


def _redirect(trail: Trail, redirect: SourceRedirect, folder: Folder) -> Redirect | None:
    """The file that is opened; None when there is none."""
    if redirect.operator == "<<":
        visit(trail, redirect.body, folder)
        return None
    if redirect.operator == "<<<":
        value_of(trail, redirect.target, folder)
        return None
    words = expand(trail, redirect.target, folder)
    if len(words) != 1:
        raise UnparsableError("a redirection to more or less than one file", redirect.span)
    text = words[0].literal
    if trail.notes.posix and (words[0].kind in {"glob", "choice"} or words[0].splits):
        raise UnparsableError("a redirection whose target not every sh expands alike", redirect.span)
    if words[0].pipe:
        return None
    if redirect.operator == "<&" or (redirect.operator == ">&" and text is not None and DESCRIPTOR.fullmatch(text)):
        return None
    return Redirect(_MODES[redirect.operator], words[0], redirect.span)


def _as_argument(assignment: Assignment, append: bool) -> Word:
    """An argument of `export` that has the form of an assignment."""
    head = assignment.name + ("+=" if append else "=")
    value = assignment.value
    if value.literal is not None:
        return Word("literal", head + value.literal, assignment.span)
    return Word("unknown", value.text, assignment.span, prefix=head + value.prefix)
