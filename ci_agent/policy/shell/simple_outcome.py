"""What simple commands do to the shell that runs them."""

from ci_agent.policy.shell.builtin_checks import check_call, ends_shell, sets_errexit
from ci_agent.policy.shell.builtins import CAREFUL
from ci_agent.policy.shell.folders import UNREACHABLE, Folder, Outcome, change_folder
from ci_agent.policy.shell.program import Command, UnparsableError
from ci_agent.policy.shell.static_words import static_text
from ci_agent.policy.shell.syntax import Builtin, Simple, SourceWord
from ci_agent.policy.shell.trail import Trail, shown
from ci_agent.policy.shell.values import assign, expand_words, is_number, printer_read, redirect_all
from ci_agent.policy.shell.variables import Known
from ci_agent.policy.words import Word


def run_simple(trail: Trail, simple: Simple, folder: Folder) -> Outcome:
    trail.count_command()
    fed_by, trail.feeding = trail.feeding, None
    if any(redirect.operator.startswith("<") for redirect in simple.redirects):
        fed_by = None
    words = expand_words(trail, simple, folder)
    assignments = tuple(
        assign(trail, assignment, folder, lasting=not (simple.words or simple.redirects))
        for assignment in simple.assignments
    )
    redirects = redirect_all(trail, simple.redirects, folder) if simple.redirects else ()
    name = words[0].literal if words else None
    builtin = simple.builtin
    function = builtin is None and name in trail.functions and not trail.notes.evaluates
    trail.commands.append(Command(words, assignments, redirects, shown(folder), simple.span, function, fed_by))
    if builtin is not None:
        return _run_builtin(trail, builtin, words[builtin.index + 1 :], simple, folder)
    if words and words[0].text != simple.words[0].plain:
        _check_name(words[0], simple.words[0])
    return Outcome(folder, folder)


def _run_builtin(
    trail: Trail, builtin: Builtin, arguments: tuple[Word, ...], simple: Simple, folder: Folder
) -> Outcome:
    """What one of the shell's own commands does to the shell."""
    name = builtin.name
    if name != "wait" or not all(is_number(trail, word) for word in simple.words[builtin.index + 1 :]):
        check_call(name, arguments, simple.span)
    for variable in builtin.assigns:
        trail.add_value(variable, simple.span, folder)
    if name in ("mapfile", "readarray"):
        _fill_array(trail, builtin, arguments, simple)
    if builtin.handler is not None:
        trail.run_later(builtin.handler)
    if name == "cd":
        return Outcome(change_folder(folder, arguments, trail.variables, trail.disk.is_absent), folder)
    if name in {"pushd", "popd", "eval"}:
        return Outcome(None, None)
    if name == "exit" and not simple.redirects and not simple.assignments and ends_shell(arguments):
        return Outcome(UNREACHABLE, UNREACHABLE)
    if name == "set" and not simple.redirects and sets_errexit(arguments):
        trail.errexit = not (trail.notes.errexit_ends or trail.notes.evaluates)
    return Outcome(folder, folder)


def _fill_array(trail: Trail, builtin: Builtin, arguments: tuple[Word, ...], simple: Simple) -> None:
    """`mapfile -t NAME < <(COMMAND)` makes each line that the command prints an element."""
    printer = printer_read(trail, simple.redirects)
    if printer is not None and [word.literal for word in arguments] == ["-t", *builtin.assigns]:
        trail.variables.define(builtin.assigns[0], Known((), printed_by=printer, array=True))


def _check_name(word: Word, source: SourceWord) -> None:
    """A name that only expansion yields must not be one whose effects on the shell had to be known before."""
    if word.kind == "glob" or any(choice.kind == "glob" for choice in word.choices):
        raise UnparsableError("the name of a command that is a pattern for names of files", word.span)
    names = {word.literal, *(choice.literal for choice in word.choices)} - {static_text(source)}
    if not names.isdisjoint(CAREFUL):
        raise UnparsableError("a command of the shell itself whose name is not spelled out", word.span)
