"""What simple commands do to the shell that runs them."""

from itertools import chain, product
from math import prod

from ci_agent.policy.shell.builtin_checks import check_call, ends_shell, sets_errexit
from ci_agent.policy.shell.builtins import CAREFUL
from ci_agent.policy.shell.declarations import MAKE_ASSOCIATIVE
from ci_agent.policy.shell.folders import UNREACHABLE, Folder, Outcome, change_folder
from ci_agent.policy.shell.program import Assignment, Command, UnparsableError
from ci_agent.policy.shell.static_words import static_text
from ci_agent.policy.shell.syntax import Builtin, Simple, SourceWord
from ci_agent.policy.shell.trail import Trail, shown
from ci_agent.policy.shell.values import assign, expand_words, is_number, printer_read, redirect_all
from ci_agent.policy.shell.variables import POSITIONAL, Known
from ci_agent.policy.words import Word

_MAX_ALTERNATIVES = 16
"""How many lists of words one command may have."""
_MAY_VARY = frozenset({"[", "echo", "printf", "test"})
"""Commands of the shell that leave it as it is, whatever their words are."""


def run_simple(trail: Trail, simple: Simple, folder: Folder) -> Outcome:
    trail.count_command()
    fed_by, trail.feeding = trail.feeding, None
    if simple.redirects and any(redirect.operator.startswith("<") for redirect in simple.redirects):
        fed_by = None
    words = expand_words(trail, simple, folder)
    assignments = _assign_all(trail, simple, folder) if simple.assignments else ()
    redirects = redirect_all(trail, simple.redirects, folder) if simple.redirects else ()
    builtin = simple.builtin
    alternatives = _alternatives(trail, words) if trail.notes.appended else [words]
    for each in alternatives:
        function = builtin is None and bool(trail.functions) and _is_function(trail, each)
        trail.commands.append(Command(each, assignments, redirects, shown(folder), simple.span, function, fed_by))
    trail.several = len(alternatives) > 1
    if builtin is not None:
        for each in alternatives if builtin.name in _MAY_VARY else [words]:
            outcome = _run_builtin(trail, builtin, each[builtin.index + 1 :], simple, folder)
        return outcome
    for each in alternatives:
        if each and each[0].text != simple.words[0].plain:
            _check_name(each[0], simple.words[0])
        if each and trail.notes.functions:
            _call(trail, each, folder)
    return Outcome(folder, folder)


def _assign_all(trail: Trail, simple: Simple, folder: Folder) -> tuple[Assignment, ...]:
    lasting = not (simple.words or simple.redirects)
    return tuple([assign(trail, assignment, folder, lasting=lasting) for assignment in simple.assignments])


def _is_function(trail: Trail, words: tuple[Word, ...]) -> bool:
    """Whether the name is certainly that of a function of the same text."""
    return bool(words) and words[0].literal in trail.functions and not trail.notes.evaluates


def _call(trail: Trail, words: tuple[Word, ...], folder: Folder) -> None:
    trail.check_name(words[0].literal)
    if words[0].literal in trail.functions:
        trail.call_function(words[0].text, words[1:], folder)


def _alternatives(trail: Trail, words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    """What the words may be, where they have the elements of arrays that were added to or not."""
    if not any(word.contents for word in words):
        return [words]
    contents = [word.contents or ((word,),) for word in words]
    if prod(map(len, contents)) > _MAX_ALTERNATIVES:
        return [words]
    made = [tuple(chain.from_iterable(each)) for each in product(*contents)]
    for each in made:
        trail.count_command()
        trail.count_words(list(each))
    return made


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
        trail.run_trap(builtin.handler)
    if name == "cd":
        return Outcome(change_folder(folder, arguments, trail.variables, trail.disk.is_absent), folder)
    if name in {"pushd", "popd", "eval"}:
        return Outcome(None, None)
    if name == "exit" and not simple.redirects and not simple.assignments and ends_shell(arguments):
        return Outcome(UNREACHABLE, UNREACHABLE)
    if name in ("declare", "typeset", "local") and not simple.redirects:
        _declare(trail, simple)
    if name == "set" and not simple.redirects:
        _set(trail, arguments, folder)
    return Outcome(folder, folder)


def _declare(trail: Trail, simple: Simple) -> None:
    """`declare -A NAME...`, and nothing else."""
    options, names = simple.words[1:2], simple.words[2:]
    if not options or options[0].plain not in MAKE_ASSOCIATIVE:
        return
    if simple.words[0].plain == "local" and not trail.variables.in_function:
        return
    for at, word in enumerate(names, 1):
        assignment = simple.declared.get(at)
        name = word.plain if assignment is None else assignment.name
        if name is not None:
            trail.variables.make_associative(name, fresh=assignment is not None)


def _set(trail: Trail, arguments: tuple[Word, ...], folder: Folder) -> None:
    if sets_errexit(arguments):
        trail.errexit = not (trail.notes.errexit_ends or trail.notes.evaluates)
    texts = [word.literal for word in arguments]
    if "--" in texts:
        trail.variables.fill(POSITIONAL, arguments[texts.index("--") + 1 :], folder)


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
