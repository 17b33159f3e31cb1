"""The commands of the shell itself: which are understood, and what each does to the shell that runs it."""

import re
from collections.abc import Callable

from ci_agent.policy.shell.builtin_call import BuiltinCall
from ci_agent.policy.shell.declarations import note_declaration
from ci_agent.policy.shell.reader import CONTROL, Reader, Unit
from ci_agent.policy.shell.static_words import is_single, static_text, word_set
from ci_agent.policy.shell.syntax import Builtin, Sequence, SourceAssignment, SourceWord
from ci_agent.policy.shell.variables import POSITIONAL

DECLARING = frozenset({"declare", "export", "local", "readonly", "typeset"})
REFUSED = {
    "alias": "gives words another meaning",
    "bind": "installs commands to run",
    "chdir": "changes the folder in some shells; write cd",
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
_BASH_ALONE = word_set("caller declare dirs disown help mapfile popd pushd readarray source typeset")
"""What is no command of the shell itself in every other one, so that a program of this name would run."""
_ASSIGNING = frozenset({"getopts", "mapfile", "printf", "read", "readarray"})
BUILTINS = HARMLESS | FOLLOWED | DECLARING | REFUSED.keys()
CAREFUL = BUILTINS - HARMLESS
"""Those whose effects must be known while the text is read."""

_SET_FLAGS = re.compile(r"[-+][CETeuvx]*o?")
_SET_NAMES = word_set("errexit errtrace functrace noclobber nounset pipefail verbose xtrace")


def note_builtin(reader: Reader, words: list[SourceWord], declared: dict[int, SourceAssignment]) -> Builtin | None:
    """Note what the command does to the shell, when it is one of the shell's own; refuse what is not understood.

    `declared`: the arguments that have the form of an assignment, by their places behind the name.
    """
    if not words or static_text(words[0]) not in BUILTINS:
        return None
    name, index = _find_name(reader, words)
    if name not in BUILTINS:
        return None
    if name in _BASH_ALONE:
        reader.require_bash(f"`{name}`", words[index].span[0])
    if name in REFUSED:
        reader.fail(f"`{name}` {REFUSED[name]}", *words[index].span)
    if name in DECLARING and words[0].plain is None:
        reader.fail(f"`{name}` in quotes", *words[0].span)
    call = BuiltinCall(reader, name, words[index + 1 :], declared, [])
    note = _NOTES.get(name)
    if note is not None:
        note(call)
    handler = _read_trap(call) if name == "trap" else None
    assigns = tuple(call.assigned) if name in _ASSIGNING else ()
    return Builtin(name, index, assigns, handler)


def _find_name(reader: Reader, words: list[SourceWord]) -> tuple[str, int]:
    """The name behind `command` and `builtin`, and where it stands; an empty one when they run nothing."""
    name, index = static_text(words[0]) or "", 0
    while name in {"builtin", "command"}:
        if name == "builtin":
            reader.require_bash("`builtin`", words[index].span[0])
        index = _skip_wrapper(reader, words, index)
        if index < 0:
            return "", 0
        inner = static_text(words[index])
        if inner is None or inner in DECLARING:
            reader.fail("the name behind `command` or `builtin` is not understood", *words[index].span)
        name = inner
    return name, index


def _skip_wrapper(reader: Reader, words: list[SourceWord], index: int) -> int:
    """Where the name behind `command` stands; -1 when none is run."""
    for position in range(index + 1, len(words)):
        text = static_text(words[position])
        if text == "-p":
            continue
        if text == "--":
            return position + 1 if position + 1 < len(words) else -1
        if text in {"-v", "-V"}:
            return -1
        if text is None or text.startswith("-"):
            reader.fail("the options of `command` or `builtin` are not understood", *words[position].span)
        return position
    return -1


def _note_move(call: BuiltinCall) -> None:
    call.reader.notes.moves += 1
    call.reader.notes.all_moves += 1


def _note_eval(call: BuiltinCall) -> None:
    _check_options(call)
    _note_move(call)
    call.reader.notes.evaluates = True


def _check_options(call: BuiltinCall) -> None:
    """Some shells take the first word behind `eval` and `exec` for a command, even when it is `--`."""
    first = static_text(call.arguments[0]) if call.arguments else ""
    if first is None or first.startswith("-"):
        call.reader.require_bash(f"`{call.name}` with options", call.arguments[0].span[0])


def _note_source(call: BuiltinCall) -> None:
    call.reader.notes.evaluates = True


def _note_read(call: BuiltinCall) -> None:
    options, names = call.split(flags="ers", with_value="adinNptu")
    for array in options.get("a", []):
        call.reader.notes.arrays.add(call.assign(array))
    for name in names:
        call.assign(name)
    call.reader.notes.assign("REPLY", certain=False)


def _note_mapfile(call: BuiltinCall) -> None:
    options, names = call.split(flags="t", with_value="dnOsu")
    for name in names:
        call.reader.notes.arrays.add(call.assign(name, certain=len(names) == 1 and not options))
    call.reader.notes.assign("MAPFILE", certain=False)


def _note_getopts(call: BuiltinCall) -> None:
    if not call.arguments or not is_single(call.arguments[0]):
        call.reader.fail("`getopts` with arguments that are not understood")
    call.assign(call.arguments[1] if len(call.arguments) > 1 else None)
    for name in ("OPTARG", "OPTIND"):
        call.reader.notes.assign(name, certain=False)


def _note_printf(call: BuiltinCall) -> None:
    first = static_text(call.arguments[0]) if call.arguments else ""
    if first == "-v":
        call.assign(call.arguments[1] if len(call.arguments) > 1 else None)
    elif first is not None and first.startswith("-v"):
        call.reader.fail("`printf -v` on something that is not the name of a variable", *call.arguments[0].span)


def _note_unset(call: BuiltinCall) -> None:
    for word in call.arguments:
        if static_text(word) != "-v":
            call.reader.notes.unset.add(call.assign(word))


def _note_set(call: BuiltinCall) -> None:
    words = iter(call.arguments)
    for word in words:
        text = static_text(word)
        if text == "--":
            call.reader.notes.assign(POSITIONAL)
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


def _note_shift(call: BuiltinCall) -> None:
    call.reader.notes.assign(POSITIONAL, certain=False)


def _note_hash(call: BuiltinCall) -> None:
    if [static_text(word) for word in call.arguments] != ["-r"]:
        call.reader.fail("`hash` gives names to other programs")


_NOTES: dict[str, Callable[[BuiltinCall], None]] = {
    ".": _note_source,
    "cd": _note_move,
    "eval": _note_eval,
    "exec": _check_options,
    "getopts": _note_getopts,
    "hash": _note_hash,
    "mapfile": _note_mapfile,
    "popd": _note_move,
    "printf": _note_printf,
    "pushd": _note_move,
    "read": _note_read,
    "readarray": _note_mapfile,
    "set": _note_set,
    "shift": _note_shift,
    "source": _note_source,
    "unset": _note_unset,
    **dict.fromkeys(DECLARING, note_declaration),
}


def _read_trap(call: BuiltinCall) -> Sequence | None:
    """The commands that `trap` installs; None when it only resets, ignores or lists."""
    reader, arguments = call.reader, call.arguments
    text = static_text(arguments[0]) if arguments else "-"
    if text in {"-", "", "-l", "-p"}:
        return None
    if text is None or text.startswith("-"):
        reader.fail("`trap` with commands that are not in single quotes", *arguments[0].span)
    if match := CONTROL.search(text):
        reader.fail(f"the control character {match[0]!r}", *arguments[0].span)
    before = reader.notes.moves
    reader.notes.deferred += 1
    inner = reader.decoded(text, arguments[0].span)
    inner.enter()
    program = inner.read_program(inner)
    if inner.position < inner.end:
        inner.fail("commands of `trap` that are not understood")
    inner.leave()
    reader.notes.units.append(Unit(text, 0, len(text), inner.roles, inner.masks, False, inner.outer))
    reader.notes.deferred -= 1
    reader.notes.function_moves = reader.notes.function_moves or reader.notes.moves != before
    reader.notes.moves = before
    return program
