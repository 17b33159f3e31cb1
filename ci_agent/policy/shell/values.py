"""What words, assignments and redirections become, and the commands that run while they do."""

import re
from collections.abc import Iterable

from ci_agent.policy.shell.braces import may_expand
from ci_agent.policy.shell.expansion import Surroundings, expand_value, expand_word
from ci_agent.policy.shell.folders import Folder
from ci_agent.policy.shell.program import Assignment, Redirect, RedirectMode, UnparsableError
from ci_agent.policy.shell.reader import DESCRIPTOR
from ci_agent.policy.shell.static_words import is_integer, only_part
from ci_agent.policy.shell.syntax import (
    Arithmetic,
    Builtin,
    Parameter,
    Part,
    RedirectOperator,
    Sequence,
    Simple,
    SourceAssignment,
    SourceRedirect,
    SourceWord,
    Substitution,
)
from ci_agent.policy.shell.trail import Trail
from ci_agent.policy.shell.variables import Known, held
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
    words: list[Word] = []
    for index, word in enumerate(simple.words, -1):
        if word.plain is not None:
            words.append(Word("literal", word.plain, word.span))
        elif assignment := simple.declared.get(index):
            made = assign(trail, assignment, folder, lasting=_declares_alone(trail, simple))
            words.append(_as_argument(made, assignment.append))
        else:
            words += expand(trail, word, folder)
    return tuple(words)


def _declares_alone(trail: Trail, simple: Simple) -> bool:
    """Whether all arguments have the form of assignments, and the command does nothing else, nor fails."""
    if len(simple.words) != len(simple.declared) + 1 or simple.redirects:
        return False
    # Outside of a function `local` fails.
    return trail.variables.in_function or simple.words[0].plain != "local"


def expand(trail: Trail, word: SourceWord, folder: Folder) -> list[Word]:
    if word.plain is not None:
        words = [Word("literal", word.plain, word.span)]
        trail.count_words(words)
        return words
    visit(trail, word.parts, folder)
    words = expand_word(word, _surroundings(trail, folder))
    if trail.notes.posix and any(made.kind == "glob" and _NOT_ALIKE.search(made.text) for made in words):
        raise UnparsableError(
            "`?` or `[` in a pattern, which not every sh matches alike; run it with bash -c", word.span
        )
    trail.count_words(words)
    return words


def value_of(trail: Trail, word: SourceWord, folder: Folder) -> Word:
    visit(trail, word.parts, folder)
    return expand_value(word, _surroundings(trail, folder))


def _surroundings(trail: Trail, folder: Folder) -> Surroundings:
    return Surroundings(trail.source, trail.variables, folder, trail.printers, trail.answers)


def visit(trail: Trail, parts: Iterable[Part], folder: Folder) -> None:
    """Run what is substituted in a word, and check what is evaluated."""
    for part in parts:
        if isinstance(part, Substitution):
            trail.run_apart(part.program, folder)
            note_printer(trail, part.program)
        elif isinstance(part, Arithmetic):
            evaluate(trail, part, folder)
        elif isinstance(part, Parameter) and (part.operands or part.key):
            if part.key is not None:
                trail.variables.check_key(part.name, part.key)
            scope = trail.open_scope()
            for operand in part.operands:
                visit(trail, operand.parts, folder)
            trail.close_scope(scope)
            if part.assigns:
                trail.add_value(part.name, part.operands[0].span, folder)


def note_printer(trail: Trail, program: Sequence) -> None:
    """Note which command prints what the program prints, when that is one alone, the last of a plain pipeline."""
    trail.printers.pop(id(program), None)
    pipelines = [pipeline for item in program.items for pipeline in item.pipelines if not item.background]
    if len(program.items) != 1 or len(pipelines) != 1 or not trail.commands:
        return
    last = pipelines[0].stages[-1]
    if trail.several or not isinstance(last, Simple) or last.span != trail.commands[-1].span:
        return
    if prints_alone(trail, last):
        trail.printers[id(program)] = len(trail.commands) - 1


def prints_alone(trail: Trail, command: Simple) -> bool:
    """Whether a program, and no function of its name, prints the output, and nothing else does."""
    if not command.words or trail.notes.evaluates or not _only_prints(command.builtin):
        return False
    name = command.words[0].plain
    if name is None or name in trail.notes.functions:
        return False
    return not command.redirects or all(redirect.target.plain == "/dev/null" for redirect in command.redirects)


def _only_prints(builtin: Builtin | None) -> bool:
    return builtin is None or (builtin.name in ("echo", "printf") and not (builtin.index or builtin.assigns))


def printer_read(trail: Trail, redirects: tuple[SourceRedirect, ...]) -> int | None:
    """The command whose output is read, and nothing else, where all that is redirected is `< <(command)`."""
    redirect = redirects[0] if len(redirects) == 1 else None
    part = redirect.target.parts[0] if redirect is not None and len(redirect.target.parts) == 1 else None
    if redirect is None or not isinstance(part, Substitution) or not part.process or redirect.operator != "<":
        return None
    is_input = trail.source.startswith("<", redirect.span[0]) and trail.source.startswith("<(", redirect.target.span[0])
    return trail.printers.get(id(part.program)) if is_input else None


def evaluate(trail: Trail, arithmetic: Arithmetic, folder: Folder) -> None:
    for name in (*arithmetic.reads, *arithmetic.inserts):
        if not (trail.variables.is_integer(name) or trail.variables.is_number_or_empty(name)):
            reason = (
                f"arithmetic evaluates the text of {name}, which is not known to be a number; "
                "let awk calculate, or write the number"
            )
            raise UnparsableError(reason, arithmetic.span)
    for name in arithmetic.inserts:
        if not trail.variables.is_integer(name):
            reason = f"the arithmetic fails if {name} is empty; write {name} without $ there"
            raise UnparsableError(reason, arithmetic.span)
    for name in arithmetic.assigns:
        trail.add_value(name, arithmetic.span, folder)
        if arithmetic.certain:
            trail.variables.define(name, Known((), integer=True))


def is_number(trail: Trail, word: SourceWord) -> bool:
    part = only_part(word)
    if isinstance(part, Parameter) and part.plain and trail.variables.is_integer_or_empty(part.name):
        return True
    return is_integer(word)


def _copies_integer(trail: Trail, word: SourceWord) -> bool:
    part = only_part(word)
    return isinstance(part, Parameter) and part.plain and trail.variables.is_integer(part.name)


def assign(trail: Trail, assignment: SourceAssignment, folder: Folder, *, lasting: bool) -> Assignment:
    if assignment.elements is not None:
        elements = _elements(trail, assignment.elements, folder)
        value = trail.unknown(assignment.value.span)
        if not assignment.elements:
            # Nothing, or keys with values that are spelled.
            value = value._replace(kind="literal")
        if assignment.append:
            trail.variables.grow(assignment.name, elements if lasting else None, folder)
        elif lasting and elements is not None:
            trail.variables.fill(assignment.name, elements, folder)
    else:
        if assignment.key is not None:
            trail.variables.check_key(assignment.name, assignment.key)
        value = value_of(trail, assignment.value, folder)
        if lasting and assignment.key is None:
            _define(trail, assignment, value, folder)
    if assignment.append:
        value = trail.unknown(assignment.value.span)
    return Assignment(assignment.name, value, assignment.span)


def _elements(trail: Trail, sources: tuple[SourceWord, ...], folder: Folder) -> tuple[Word, ...] | None:
    """The elements of an array; None: they are not known, or one may get a number (`[2]=x`)."""
    elements: list[Word] = []
    certain = True
    for source in sources:
        made = expand(trail, source, folder)
        certain = certain and all(_is_element(word, source) for word in made)
        elements += made
    return tuple(elements) if certain else None


def _is_element(word: Word, source: SourceWord) -> bool:
    if word.kind in ("literal", "glob"):
        return not word.text.startswith("[")
    return not (word.pipe or word.contents or may_expand(source)) and not any(
        each.text.startswith("[") for each in word.choices
    )


def _define(trail: Trail, assignment: SourceAssignment, value: Word, folder: Folder) -> None:
    known = held(value, folder)
    if value.kind == "unknown" and (is_integer(assignment.value) or _copies_integer(trail, assignment.value)):
        known = Known((), integer=True)
    if known is not None:
        trail.variables.define(assignment.name, known)


def redirect_all(trail: Trail, redirects: tuple[SourceRedirect, ...], folder: Folder) -> tuple[Redirect, ...]:
    made = [_redirect(trail, redirect, folder) for redirect in redirects]
    return tuple([redirect for redirect in made if redirect is not None])


def _redirect(trail: Trail, redirect: SourceRedirect, folder: Folder) -> Redirect | None:
    """The file that is opened; None when there is none."""
    if redirect.variable is not None:
        trail.add_value(redirect.variable, redirect.span, folder)
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
    is_input = redirect.operator == "<" and trail.source.startswith("<", redirect.span[0])
    return Redirect(_MODES[redirect.operator], words[0], redirect.span, is_input)


def _as_argument(assignment: Assignment, append: bool) -> Word:
    """An argument of `export` that has the form of an assignment."""
    head = assignment.name + ("+=" if append else "=")
    value = assignment.value
    if value.literal is not None:
        return Word("literal", head + value.literal, assignment.span)
    return Word("unknown", value.text, assignment.span, prefix=head + value.prefix)
