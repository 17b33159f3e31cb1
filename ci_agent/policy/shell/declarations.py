"""What gives variables values: assignments, and `export` and its like."""

import re

from ci_agent.policy.shell.braces import may_expand
from ci_agent.policy.shell.builtin_call import NAME, BuiltinCall
from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.static_words import is_integer, is_single, only_part, static_text
from ci_agent.policy.shell.syntax import Parameter, SourceAssignment, SourceWord, Text
from ci_agent.policy.shell.variables import check_assignable, check_locale

MAKE_ASSOCIATIVE = frozenset({"-A", "-gA", "-Ag"})
"""Options of `declare` that make an associative array, and do nothing else to it."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?!\()")


def note_assignments(reader: Reader, assignments: list[SourceAssignment], words: list[SourceWord]) -> None:
    """Note the assignments before a command, or alone."""
    for assignment in assignments:
        name = assignment.name
        if assignment.key is not None:
            continue
        if not _is_understood(assignment, words):
            check_assignable(reader, name)
        check_locale(reader, name, static_text(assignment.value))
        note_value(reader, assignment, declared=False)


def _is_understood(assignment: SourceAssignment, words: list[SourceWord]) -> bool:
    """What a script may set: how `read` alone splits its line, where `getopts` begins again, and the clock."""
    if assignment.name == "IFS":
        return bool(words) and words[0].plain == "read"
    return assignment.name in ("OPTIND", "SECONDS") and not assignment.append and is_integer(assignment.value)


def note_value(reader: Reader, assignment: SourceAssignment, *, declared: bool) -> None:
    if assignment.elements is not None:
        reader.notes.arrays.add(assignment.name)
        reader.notes.fill(assignment.name, append=assignment.append)
        # What `declare` makes may be an array of another kind.
        reader.notes.assign(assignment.name, certain=not (declared or assignment.append))
        return
    part = only_part(assignment.value)
    if isinstance(part, Parameter) and part.name == "!":
        reader.notes.may_be_empty.add(assignment.name)
    reader.notes.assign(assignment.name, integer=is_integer(assignment.value), certain=not assignment.append)


def note_declaration(call: BuiltinCall) -> None:
    """Note the variables that `export`, `readonly`, `local` and `declare` change."""
    if call.name in {"declare", "typeset"} or not all(is_single(one.value) for one in call.declared.values()):
        call.reader.require_bash(f"`{call.name}` here")
    options = ""
    for index, word in enumerate(call.arguments):
        text = static_text(word)
        if index not in call.declared and text is not None and text[:1] in {"-", "+"}:
            if not set(text[1:]) <= set("aAgprx-" + ("n" if call.name == "export" else "")):
                call.reader.fail(f"`{call.name} {text}` is not understood", *word.span)
            options += text
            continue
        array = not set("aA").isdisjoint(options)
        readonly = call.name == "readonly" or "r" in options
        before = dict(call.reader.notes.assigned) if readonly else {}
        assignment = call.declared.get(index)
        name = _note_declared(call, assignment, array) if assignment else _note_named(call, word, array)
        if readonly:
            call.reader.notes.readonly[name] = call.reader.notes.assigned.get(name, 0) - before.get(name, 0)


def _note_declared(call: BuiltinCall, assignment: SourceAssignment, array: bool) -> str:
    name, value = assignment.name, static_text(assignment.value)
    check_assignable(call.reader, name)
    check_locale(call.reader, name, value)
    note_value(call.reader, assignment, declared=True)
    if may_expand(assignment.value):
        call.reader.fail("braces in a value", *assignment.span)
    if assignment.elements is None:
        call.reader.notes.declared.add(name)
        if array or (value or "").startswith("("):
            call.reader.fail("an array from a plain value", *assignment.span)
    return name


def _note_named(call: BuiltinCall, word: SourceWord, array: bool) -> str:
    """A name alone, or an assignment in quotes: `"NAME=$value"`."""
    text = static_text(word) or ""
    if call.name in {"export", "readonly"} and NAME.fullmatch(text):
        check_assignable(call.reader, text)
        return text
    match = None if array else _match_quoted(word)
    if match is None:
        return call.assign(word)
    check_assignable(call.reader, match[1])
    check_locale(call.reader, match[1], None)
    call.reader.notes.assign(match[1], certain=False)
    call.reader.notes.declared.add(match[1])
    return match[1]


def _match_quoted(word: SourceWord) -> re.Match[str] | None:
    first = next((part for part in word.parts if not isinstance(part, Text) or part.text), None)
    return _ASSIGNMENT.match(first.text) if isinstance(first, Text) and first.quoted and is_single(word) else None
