"""The commands of the shell itself: which are understood, and what each does to the shell that runs it."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ci_agent.policy.shell.braces import may_expand
from ci_agent.policy.shell.program import UnparsableError
from ci_agent.policy.shell.reader import Reader, Unit
from ci_agent.policy.shell.static_words import is_integer, is_single, only_part, static_text, word_set
from ci_agent.policy.shell.syntax import Builtin, Parameter, Sequence, SourceAssignment, SourceWord, Span, Text
from ci_agent.policy.shell.variables import check_assignable, check_locale
from ci_agent.policy.shell.word_reader import ReadProgram
from ci_agent.policy.words import Word

DECLARING = frozenset({"declare", "export", "local", "readonly", "typeset"})
REFUSED = {
    "alias": "gives words another meaning",
    "bind": "installs commands to run",
    "compgen": "evaluates its arguments",
    "complete": "installs commands to run",
    "compopt": "changes completion",
    "enable": "loads or hides commands of the shell",
    "fc": "runs commands from the history",
    "history": "reads and writes the history file",
    "let": "evaluates its arguments; write $((...))",
    "logout": "leaves a login shell",
    "shopt": "changes how the shell reads and expands",
    "suspend": "stops the shell",
    "unalias": "gives words another meaning",
}
HARMLESS = word_set(
    ": bg break caller continue dirs disown echo exit false fg help jobs kill pwd return shift times true type "
    "ulimit umask"
)
FOLLOWED = word_set(
    ". [ builtin cd command eval exec getopts hash mapfile popd printf pushd read readarray set source test trap "
    "unset wait"
)
_ASSIGNING = frozenset({"getopts", "mapfile", "printf", "read", "readarray"})
BUILTINS = HARMLESS | FOLLOWED | DECLARING | REFUSED.keys()

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?!\()")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_FLAGS = re.compile(r"[-+][CETeuvx]*o?")
_SET_NAMES = word_set("errexit errtrace functrace noclobber nounset pipefail verbose xtrace")


def note_assignments(reader: Reader, assignments: list[SourceAssignment], words: list[SourceWord]) -> None:
    """Note the assignments before a command, or alone."""
    for assignment in assignments:
        name = assignment.name
        if not (name == "IFS" and words and words[0].plain == "read"):
            check_assignable(reader, name)
        if not words:
            check_locale(reader, name, static_text(assignment.value))
        _note_value(reader, assignment)


def _note_value(reader: Reader, assignment: SourceAssignment) -> None:
    if assignment.elements is not None:
        reader.notes.arrays.add(assignment.name)
        reader.notes.assign(assignment.name, certain=False)
        return
    part = only_part(assignment.value)
    if isinstance(part, Parameter) and part.name == "!":
        reader.notes.may_be_empty.add(assignment.name)
    reader.notes.assign(assignment.name, integer=is_integer(assignment.value), certain=not assignment.append)


def note_builtin(
    reader: Reader, words: list[SourceWord], declared: list[SourceAssignment], read_program: ReadProgram
) -> Builtin | None:
    """Note what the command does to the shell, when it is one of the shell's own; refuse what is not understood."""
    if not words or (name := static_text(words[0])) not in BUILTINS:
        return None
    index = 0
    while name in {"builtin", "command"}:
        index = _skip_wrapper(reader, words, index)
        if index < 0:
            return None
        name = static_text(words[index])
        if name is None or name in DECLARING:
            reader.fail("the name behind `command` or `builtin` is not understood", *words[index].span)
    if name not in BUILTINS:
        return None
    if name in REFUSED:
        reader.fail(f"`{name}` {REFUSED[name]}", *words[index].span)
    if name in DECLARING and words[0].plain is None:
        reader.fail(f"`{name}` in quotes", *words[0].span)
    call = _Call(reader, name, words[index + 1 :], declared, [])
    note = _NOTES.get(name)
    if note is not None:
        note(call)
    handler = _read_trap(call, read_program) if name == "trap" else None
    assigns = tuple(call.assigned) if name in _ASSIGNING else ()
    return Builtin(name, index, assigns, handler)


def _skip_wrapper(reader: Reader, words: list[SourceWord], index: int) -> int:
    """Where the name behind `command` stands; -1 when none is run."""
    for position in range(index + 1, len(words)):
        text = static_text(words[position])
        if text in {"-p", "--"}:
            continue
        if text in {"-v", "-V"}:
            return -1
        if text is None or text.startswith("-"):
            reader.fail("the options of `command` or `builtin` are not understood", *words[position].span)
        return position
    return -1


class _Call(NamedTuple):
    reader: Reader
    name: str
    arguments: list[SourceWord]
    declared: list[SourceAssignment]
    assigned: list[str]

    def assign(self, word: SourceWord | None) -> str:
        """Note that the command gives a value to the variable that `word` names; only a plain name is understood."""
        name = static_text(word) if word is not None else None
        if word is None or name is None or not _NAME.fullmatch(name):
            span = word.span if word is not None else None
            self.reader.fail(f"`{self.name}` on something that is not the name of a variable", *(span or ()))
        check_assignable(self.reader, name)
        self.reader.notes.assign(name, certain=False)
        self.assigned.append(name)
        return name


def _note_move(call: _Call) -> None:
    call.reader.notes.moves += 1
    call.reader.notes.all_moves += 1


def _note_eval(call: _Call) -> None:
    _note_move(call)
    call.reader.notes.evaluates = True


def _note_source(call: _Call) -> None:
    call.reader.notes.evaluates = True


def _note_read(call: _Call) -> None:
    options, names = _split(call, flags="ers", with_value="adinNptu")
    for array in options.get("a", []):
        call.reader.notes.arrays.add(call.assign(array))
    for name in names:
        call.assign(name)
    call.reader.notes.assign("REPLY", certain=False)


def _note_mapfile(call: _Call) -> None:
    _, names = _split(call, flags="t", with_value="dnOsu")
    for name in names:
        call.reader.notes.arrays.add(call.assign(name))
    call.reader.notes.assign("MAPFILE", certain=False)


def _note_getopts(call: _Call) -> None:
    if not call.arguments or not is_single(call.arguments[0]):
        call.reader.fail("`getopts` with arguments that are not understood")
    call.assign(call.arguments[1] if len(call.arguments) > 1 else None)
    for name in ("OPTARG", "OPTIND"):
        call.reader.notes.assign(name, certain=False)


def _note_printf(call: _Call) -> None:
    first = static_text(call.arguments[0]) if call.arguments else ""
    if first == "-v":
        call.assign(call.arguments[1] if len(call.arguments) > 1 else None)
    elif first is not None and first.startswith("-v"):
        call.reader.fail("`printf -v` on something that is not the name of a variable", *call.arguments[0].span)


def _note_unset(call: _Call) -> None:
    for word in call.arguments:
        if static_text(word) != "-v":
            call.reader.notes.unset.add(call.assign(word))


def _note_declare(call: _Call) -> None:
    if call.name in {"declare", "typeset"} or not all(is_single(assignment.value) for assignment in call.declared):
        call.reader.require_bash(f"`{call.name}` here")
    assignments = {assignment.span: assignment for assignment in call.declared}
    array = False
    for word in call.arguments:
        if assignment := assignments.get(word.span):
            _note_declared(call, assignment, array)
        elif (text := static_text(word)) is not None and text[:1] in {"-", "+"}:
            if not set(text[1:]) <= set("aAgprx-" + ("n" if call.name == "export" else "")):
                call.reader.fail(f"`{call.name} {text}` is not understood", *word.span)
            array = array or not set("aA").isdisjoint(text)
        elif call.name in {"export", "readonly"} and _NAME.fullmatch(text or ""):
            check_assignable(call.reader, text or "")
        elif not array and (match := _quoted_assignment(word)):
            check_assignable(call.reader, match[1])
            check_locale(call.reader, match[1], None)
            call.reader.notes.assign(match[1], certain=False)
            call.reader.notes.declared.add(match[1])
        else:
            call.assign(word)


def _quoted_assignment(word: SourceWord) -> re.Match[str] | None:
    """The name in `"name=$value"`."""
    first = next((part for part in word.parts if not isinstance(part, Text) or part.text), None)
    return _ASSIGNMENT.match(first.text) if isinstance(first, Text) and first.quoted and is_single(word) else None


def _note_declared(call: _Call, assignment: SourceAssignment, array: bool) -> None:
    check_assignable(call.reader, assignment.name)
    check_locale(call.reader, assignment.name, static_text(assignment.value))
    _note_value(call.reader, assignment)
    if may_expand(assignment.value):
        call.reader.fail("braces in a value", *assignment.span)
    if assignment.elements is None:
        call.reader.notes.declared.add(assignment.name)
        if array or (static_text(assignment.value) or "").startswith("("):
            call.reader.fail("an array from a plain value", *assignment.span)


def _note_set(call: _Call) -> None:
    words = iter(call.arguments)
    for word in words:
        text = static_text(word)
        if text == "--":
            break
        if text is None or len(text) < 2 or not _SET_FLAGS.fullmatch(text):
            call.reader.fail("`set` with options that change how the shell reads and expands", *word.span)
        option = text
        if text.endswith("o"):
            value = next(words, None)
            option = static_text(value) or "" if value is not None else ""
            if option not in _SET_NAMES:
                call.reader.fail("`set -o` with an option that changes how the shell reads and expands", *word.span)
        if text.startswith("+") and ("e" in text or option == "errexit"):
            call.reader.notes.errexit_ends = True


def _note_hash(call: _Call) -> None:
    if [static_text(word) for word in call.arguments] != ["-r"]:
        call.reader.fail("`hash` gives names to other programs")


_NOTES: dict[str, Callable[[_Call], None]] = {
    ".": _note_source,
    "cd": _note_move,
    "eval": _note_eval,
    "getopts": _note_getopts,
    "hash": _note_hash,
    "mapfile": _note_mapfile,
    "popd": _note_move,
    "printf": _note_printf,
    "pushd": _note_move,
    "read": _note_read,
    "readarray": _note_mapfile,
    "set": _note_set,
    "source": _note_source,
    "unset": _note_unset,
    **dict.fromkeys(DECLARING, _note_declare),
}


def _split(call: _Call, *, flags: str, with_value: str) -> tuple[dict[str, list[SourceWord]], list[SourceWord]]:
    """The options that take a value, each with its values, and the operands."""
    options: dict[str, list[SourceWord]] = {}
    words = iter(call.arguments)
    for word in words:
        text = static_text(word)
        if text is None or not text.startswith("-") or text == "-":
            return options, [word, *words]
        if text == "--":
            return options, list(words)
        for position, letter in enumerate(text[1:], 1):
            if letter in with_value:
                value = (
                    next(words, None) if text[position + 1 :] == "" else SourceWord(text[position + 1 :], (), word.span)
                )
                if value is None or not is_single(value):
                    call.reader.fail(f"`{call.name} -{letter}` with a value that is not one word", *word.span)
                options.setdefault(letter, []).append(value)
                break
            if letter not in flags:
                call.reader.fail(f"`{call.name} -{letter}` is not understood", *word.span)
    return options, []


def _read_trap(call: _Call, read_program: ReadProgram) -> Sequence | None:
    """The commands that `trap` installs; None when it only resets, ignores or lists."""
    reader, arguments = call.reader, call.arguments
    text = static_text(arguments[0]) if arguments else "-"
    if text in {"-", "", "-l", "-p"}:
        return None
    if text is None or text.startswith("-"):
        reader.fail("`trap` with commands that are not in single quotes", *arguments[0].span)
    before = reader.notes.moves
    reader.notes.deferred += 1
    inner = Reader(text, 0, len(text), reader.notes, arguments[0].span)
    inner.enter()
    program = read_program(inner)
    if inner.position < inner.end:
        inner.fail("commands of `trap` that are not understood")
    inner.leave()
    reader.notes.units.append(Unit(text, 0, len(text), inner.roles, inner.masks, False, inner.outer))
    reader.notes.deferred -= 1
    reader.notes.function_moves = reader.notes.function_moves or reader.notes.moves != before
    reader.notes.moves = before
    return program


# What must be known of the words once they are expanded.


def check_call(name: str, arguments: tuple[Word, ...], span: Span) -> None:
    """Refuse words that make one of the shell's own commands evaluate text."""
    if name in {"test", "["}:
        _check_test(arguments)
    elif name == "printf" and arguments and not _is_kept_apart(arguments[0]):
        raise UnparsableError("`printf` with a format that is not known; write printf '%s' ...", arguments[0].span)
    elif name == "wait" and not all(map(_is_kept_apart, arguments)):
        raise UnparsableError("`wait` with an argument that is not known", span)
    elif name == "wait" and any((word.literal or "").startswith("-p") for word in arguments):
        raise UnparsableError("`wait -p` gives a variable a value", span)


def _is_kept_apart(word: Word) -> bool:
    """Whether the word is certainly no option, and certainly one word or one and more that it begins."""
    return word.literal is not None or (word.prefix != "" and not word.prefix.startswith("-"))


def _check_test(arguments: tuple[Word, ...]) -> None:
    """`test -v NAME[TEXT]` runs what is substituted in TEXT. Whatever might be `-v` must not stand before a word that
    might be such a name."""
    for word in arguments:
        if word.splits or word.kind == "glob":
            raise UnparsableError("`test` on a value that may become several words; quote it", word.span)
    for word, following in pairwise(arguments):
        certain = word.literal is not None or (word.prefix != "" and not word.prefix.startswith("-"))
        if (not certain or word.literal in {"-v", "-R"}) and (
            following.literal is None or "[" in following.literal[1:]
        ):
            raise UnparsableError("`test` that might evaluate a word", following.span)


def ends_shell(arguments: tuple[Word, ...]) -> bool:
    """Whether `exit` with these arguments certainly ends the shell."""
    return not arguments or (len(arguments) == 1 and (arguments[0].literal or "").isdecimal())


def sets_errexit(arguments: tuple[Word, ...]) -> bool:
    texts = [word.literal or "" for word in arguments]
    options = texts[: texts.index("--")] if "--" in texts else texts
    return any(text.startswith("-") and "e" in text for text in options) or "errexit" in options
