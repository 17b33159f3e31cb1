"""Reads simple commands: assignments, words and redirections."""

import re
from dataclasses import dataclass, field
from typing import cast

from ci_agent.policy.shell.associative import read_element, read_pair
from ci_agent.policy.shell.builtins import BUILTINS, DECLARING, note_builtin
from ci_agent.policy.shell.declarations import MAKE_ASSOCIATIVE, note_assignments
from ci_agent.policy.shell.here_documents import read_delimiter
from ci_agent.policy.shell.reader import DESCRIPTOR, Mask, Reader, Role
from ci_agent.policy.shell.static_words import static_text, word_set
from ci_agent.policy.shell.syntax import RedirectOperator, Simple, SourceAssignment, SourceRedirect, SourceWord
from ci_agent.policy.shell.variables import check_assignable
from ci_agent.policy.shell.word_reader import PLAIN_WORD, read_value, read_word

RESERVED_WORDS = word_set(
    "if then elif else fi for while until do done case esac select function time coproc in { } ! [[ ]]"
)
ENDS_COMMAND = re.compile(r"[;|)\n]|&(?!>)|\Z")
"""What stands behind a command."""

_NOT_RESERVED = (
    r"(?!(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|in)[ \t\n;|&)])"
)
_PLAIN_COMMAND = re.compile(rf"{_NOT_RESERVED}{PLAIN_WORD}(?:[ \t]+{PLAIN_WORD})*(?=[ \t]*(?:[;|)\n]|&(?!>)|\Z))")
_REDIRECT = re.compile(
    r"(?:(?P<descriptor>[0-9]{1,3})|\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\})?"
    r"(?P<operator><<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|(?P<both>&>>|&>)"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_BEHIND_ARRAY = frozenset(("", *" \t\n;|&()<>"))
_ONE_ELEMENT = (
    "the assignment of one element of an array that is not understood; what is: `declare -A m`, then m[key]=value or "
    'm["$k"]=value on a line of its own'
)
_SAME_AGAIN = re.compile(r"[A-Za-z0-9_./:,@%+^-]+")
"""What another expansion leaves as it is."""


def read_plain(reader: Reader) -> Simple | None:
    """Read a command in which no character means anything to the shell, as most are; None: it is none."""
    match = _PLAIN_COMMAND.match(reader.text, reader.position, reader.end)
    if match is None:
        return None
    texts = match[0].split()
    name = texts[0]
    if name in RESERVED_WORDS or "=" in name or name in DECLARING:
        return None
    reader.notes.count_command()
    reader.notes.count_pieces(len(texts))
    start = end = reader.position
    reader.position = match.end()
    words: list[SourceWord] = []
    role: Role = "name"
    for text in texts:
        begin = reader.text.index(text, end)
        end = begin + len(text)
        words.append(SourceWord(text, (), reader.outer or (begin, end)))
        reader.roles.append((begin, end, role))
        role = "argument"
    builtin = note_builtin(reader, words, {}) if name in BUILTINS else None
    return Simple((), tuple(words), (), {}, builtin, reader.span(start, end))


@dataclass(slots=True)
class _Draft:
    """A simple command while it is read."""

    assignments: list[SourceAssignment] = field(default_factory=list)
    words: list[SourceWord] = field(default_factory=list)
    redirects: list[SourceRedirect] = field(default_factory=list)
    declared: dict[int, SourceAssignment] = field(default_factory=dict)
    roles: list[int] = field(default_factory=list)
    """Where among the roles those of the words stand."""


def read_simple(reader: Reader) -> Simple:
    start = end = reader.position
    draft = _Draft()
    while True:
        reader.skip_blanks()
        if redirect := read_redirect(reader):
            draft.redirects.append(redirect)
        elif ENDS_COMMAND.match(reader.text, reader.position, reader.end):
            break
        else:
            _read_next(reader, draft)
        end = reader.position
    if start == end:
        reader.fail_at_token()
    words = draft.words
    if reader.notes.posix:
        _refuse_brackets(reader, draft.roles)
    if words and words[0].plain is None and static_text(words[0]) == "[":
        _note_bracket(reader, draft.roles)
    reader.notes.count_command()
    note_assignments(reader, draft.assignments, words)
    builtin = note_builtin(reader, words, draft.declared)
    made = (tuple(draft.assignments), tuple(words), tuple(draft.redirects), draft.declared)
    return Simple(*made, builtin, reader.span(start, end))


def _read_next(reader: Reader, draft: _Draft) -> None:
    """Read an assignment, while there is no name yet, or a word."""
    if not draft.words and _ASSIGNMENT.match(reader.text, reader.position, reader.end):
        draft.assignments.append(_read_assignment(reader, "assignment"))
        return
    if not draft.words and _ELEMENT.match(reader.text, reader.position, reader.end):
        draft.assignments.append(_read_element(reader))
        return
    if not draft.words:
        word = _read_name(reader)
    elif draft.words[0].plain in DECLARING:
        word = _read_declared(reader, draft)
    else:
        word = read_role(reader, "argument")
    draft.words.append(word)
    draft.roles.append(len(reader.roles) - 1)


def _refuse_brackets(reader: Reader, words: list[int]) -> None:
    """Behind a word `[[`, wherever it stands, the ash of busybox takes `&&` and `||` for arguments."""
    for start, end, _ in (reader.roles[index] for index in words):
        if reader.text[start:end] == "[[":
            reader.require_bash("`[[`", start)


def _read_element(reader: Reader) -> SourceAssignment:
    start = reader.position
    reader.require_bash("the assignment of one element of an array")
    element = read_element(reader)
    reader.skip_blanks()
    if element is None or not ENDS_COMMAND.match(reader.text, reader.position, reader.end):
        reader.fail(_ONE_ELEMENT, start)
    return element


def _note_bracket(reader: Reader, words: list[int]) -> None:
    """`[ ... ]` is one stretch to the second reading."""
    start, end = reader.roles[words[0]][0], reader.roles[words[-1]][1]
    for index in reversed(words):
        del reader.roles[index]
    reader.roles.append((start, end, "test"))


def read_role(reader: Reader, role: Role) -> SourceWord:
    start = reader.position
    word = read_word(reader)
    reader.roles.append((start, reader.position, role))
    return word


def _read_name(reader: Reader) -> SourceWord:
    start = reader.position
    word = read_role(reader, "name")
    source = reader.text[start : reader.position]
    if source in RESERVED_WORDS:
        reader.fail(f"unexpected {source!r}", start, reader.position)
    return word


def _read_declared(reader: Reader, draft: _Draft) -> SourceWord:
    """An argument of `export` and its like, which may have the form of an assignment."""
    if _ELEMENT.match(reader.text, reader.position, reader.end):
        reader.fail(_ONE_ELEMENT)
    if not _ASSIGNMENT.match(reader.text, reader.position, reader.end):
        return read_role(reader, "argument")
    associative = len(draft.words) > 1 and draft.words[1].plain in MAKE_ASSOCIATIVE
    assignment = _read_assignment(reader, "argument", associative=associative)
    draft.declared[len(draft.words) - 1] = assignment
    return SourceWord(None, (), assignment.span)


def _read_assignment(reader: Reader, role: Role, *, associative: bool = False) -> SourceAssignment:
    start = reader.position
    match = cast("re.Match[str]", _ASSIGNMENT.match(reader.text, start, reader.end))
    reader.position = match.end()
    reader.notes.count_command()
    if match[2] == "+=":
        reader.require_bash("'+='", start)
    elements: tuple[SourceWord, ...] | None = None
    if reader.at("("):
        elements = _read_elements(reader, match[1] if associative else None)
        value = SourceWord(None, (), reader.span(match.end(), reader.position))
    else:
        value = read_value(reader)
    reader.roles.append((start, reader.position, role))
    return SourceAssignment(match[1], value, elements, match[2] == "+=", reader.span(start, reader.position))


def _read_elements(reader: Reader, associative: str | None) -> tuple[SourceWord, ...]:
    """The words of an array; what an associative one gets is noted by its name. In a substitution, bash loses their
    backslashes and runs what stands on the next line."""
    words: list[SourceWord] = []
    start = reader.position
    reader.require_bash("an array")
    if reader.enclosed is not None:
        reader.fail("an array in a substitution")
    reader.position += 1
    _skip_array_blanks(reader)
    while not reader.at(")"):
        if associative is not None:
            if not read_pair(reader, associative):
                reader.fail(_ONE_ELEMENT)
        elif reader.at("["):
            reader.fail(_ONE_ELEMENT)
        else:
            words.append(read_word(reader))
        _skip_array_blanks(reader)
    reader.position += 1
    if reader.peek() not in _BEHIND_ARRAY:
        reader.fail("an array that is not understood", start, reader.position)
    return tuple(words)


def _skip_array_blanks(reader: Reader) -> None:
    start = reader.position
    reader.skip_blanks()
    while reader.at("\n") and not reader.pending:
        reader.position += 1
        reader.skip_blanks()
    if "#" in reader.text[start : reader.position]:
        reader.fail("a comment in an array", start, reader.position)


def _check_copy(reader: Reader, operator: str, target: SourceWord, start: int) -> None:
    """Bash takes the `-` in `>&-x` for a target of its own, and expands the name of a file behind `>&` twice."""
    text = static_text(target) or ""
    if not (text == "-" or (text.isdecimal() and len(text) == 1)):
        reader.require_bash(f"'{operator}{text}'", start)
    if DESCRIPTOR.fullmatch(text):
        return
    if operator == "<&" or text.startswith("-") or not _SAME_AGAIN.fullmatch(text):
        reader.fail(f"{operator!r} with a target that is not certain; write '&>' for a file", start, reader.position)


def read_redirect(reader: Reader) -> SourceRedirect | None:
    match = _REDIRECT.match(reader.text, reader.position, reader.end)
    if match is None:
        return None
    reader.notes.count_pieces(2)
    start, variable = reader.position, match["variable"]
    operator = cast("RedirectOperator", match["operator"] or match["both"])
    reader.position = match.end()
    if reader.at("\\\n") or reader.peek() in {"(", "&", "|"}:
        reader.fail("a redirection that is not understood", start, reader.position)
    if variable:
        check_assignable(reader, variable)
        reader.notes.assign(variable, integer=True)
        reader.masks.append(Mask(match.start("variable") - 1, match.end("variable") + 1, "1"))
    if variable or operator in {"&>", "&>>", "<<<"} or len(match["descriptor"] or "") > 1:
        reader.require_bash("this redirection", start)
    if operator == "<<<":
        reader.masks.append(Mask(reader.position - 2, reader.position, " "))
    if operator == "<>":
        reader.masks.append(Mask(reader.position - 2, reader.position - 1, ">"))
    if operator in {"<<", "<<-"}:
        return read_delimiter(reader, start, operator)
    reader.skip_blanks()
    if reader.peek() in {"<", ">"} and not reader.text.startswith("(", reader.position + 1, reader.end):
        reader.fail("a redirection without a target", start, reader.position)
    target = read_role(reader, "target")
    if operator in {"<&", ">&"}:
        _check_copy(reader, operator, target, start)
    return SourceRedirect(operator, target, variable, [], reader.span(start, reader.position))
