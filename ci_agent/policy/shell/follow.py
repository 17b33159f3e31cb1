"""Follows a program the way bash runs it, taking every branch, and collects what it would run and open."""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import assert_never

from ci_agent.policy.shell.builtins import BUILTINS
from ci_agent.policy.shell.folders import UNREACHABLE, Folder, Outcome, join
from ci_agent.policy.shell.printed_words import stand_in_for_each
from ci_agent.policy.shell.program import (
    Assignment,
    BoundExceededError,
    Disk,
    LineLoop,
    ShellProgram,
    UnparsableError,
)
from ci_agent.policy.shell.reader import Notes
from ci_agent.policy.shell.simple_outcome import run_simple
from ci_agent.policy.shell.static_words import only_part
from ci_agent.policy.shell.syntax import (
    AndOr,
    Branches,
    Choice,
    Conditional,
    Evaluation,
    ForEach,
    Function,
    Group,
    Loop,
    Parameter,
    Pipeline,
    Redirected,
    Sequence,
    Simple,
    SourceWord,
    Stage,
    Substitution,
)
from ci_agent.policy.shell.trail import Calls, OutOfOrderError, Trail, shown
from ci_agent.policy.shell.values import (
    evaluate,
    expand,
    is_number,
    printer_read,
    prints_alone,
    redirect_all,
    value_of,
    visit,
)
from ci_agent.policy.shell.variables import Known, Variables
from ci_agent.policy.words import Word, literal_word

_MAX_ROUNDS = 16
_CALLED_BY_BASH = "command_not_found_handle"
"""A function that bash calls with the words of a command that it does not find."""


def follow_program(
    program: Sequence, source: str, notes: Notes, environment: Mapping[str, str], disk: Disk
) -> ShellProgram:
    """Every command of the program, in the order in which they stand in the source."""
    in_order = notes.functions and not (notes.evaluates or _CALLED_BY_BASH in notes.functions)
    for calls in (Calls(), None) if in_order else (None,):
        run = partial(_run_sequence, tested=True)
        trail = Trail(source, notes, Variables(notes, environment), run, disk, calls=calls)
        try:
            _run_sequence(trail, program, None if notes.function_moves else "", tested=False)
            trail.follow_uncalled()
        except OutOfOrderError:
            continue
        except BoundExceededError:
            if calls is None:
                raise
            continue
        break
    return ShellProgram(tuple(trail.commands), tuple(trail.loops))


def _run_sequence(trail: Trail, sequence: Sequence, folder: Folder, *, tested: bool) -> Outcome:
    """`tested`: the status is looked at, so that `set -e` has no effect inside."""
    outcome = Outcome(folder, UNREACHABLE)
    for item in sequence.items:
        folder = outcome.either
        outcome = _run_and_or(trail, item, folder, tested)
    return outcome


def _run_and_or(trail: Trail, item: AndOr, folder: Folder, tested: bool) -> Outcome:
    if item.background:
        scope = trail.open_scope()
        _run_pipelines(trail, item, folder, True)
        trail.close_scope(scope)
        return Outcome(folder, UNREACHABLE)
    outcome = _run_pipelines(trail, item, folder, tested)
    if trail.errexit and not (tested or item.operators) and _is_simple(item.pipelines[0]):
        return Outcome(outcome.success, UNREACHABLE)
    return outcome


def _is_simple(pipeline: Pipeline) -> bool:
    """Whether its failure ends the shell under `set -e`; that of a compound command may come from what was tested."""
    return not pipeline.negated and len(pipeline.stages) == 1 and isinstance(pipeline.stages[0], Simple)


def _run_pipelines(trail: Trail, item: AndOr, folder: Folder, tested: bool) -> Outcome:
    outcome = _run_pipeline(trail, item.pipelines[0], folder, tested or bool(item.operators))
    if not item.operators:
        return outcome
    scope = trail.open_scope()
    last = len(item.operators) - 1
    for index, operator in enumerate(item.operators):
        if operator == "||":
            trail.close_scope(scope)
        start = outcome.success if operator == "&&" else outcome.failure
        success, failure = _run_pipeline(trail, item.pipelines[index + 1], start, tested or index < last)
        if operator == "||":
            trail.close_scope(scope)
        if operator == "&&":
            outcome = Outcome(success, join(outcome.failure, failure))
        else:
            outcome = Outcome(join(outcome.success, success), failure)
    trail.close_scope(scope)
    return outcome


def _run_pipeline(trail: Trail, pipeline: Pipeline, folder: Folder, tested: bool) -> Outcome:
    if len(pipeline.stages) > 1:
        scope = trail.open_scope()
        for index, stage in enumerate(pipeline.stages):
            trail.feeding = _fed_by(trail, pipeline.stages, index)
            _run_stage(trail, stage, folder, True)
            trail.close_scope(scope)
        trail.feeding = None
        return Outcome(folder, folder)
    outcome = _run_stage(trail, pipeline.stages[0], folder, tested or pipeline.negated)
    return Outcome(outcome.failure, outcome.success) if pipeline.negated else outcome


def _fed_by(trail: Trail, stages: tuple[Stage, ...], index: int) -> int | None:
    """The command before the pipe, when it stands last among the commands and prints there what it finds alone."""
    if index == 0:
        return None
    before, stage = stages[index - 1], stages[index]
    if not isinstance(before, Simple) or not prints_alone(trail, before) or not _takes_input(stage):
        return None
    joint = trail.source[before.span[1] : stage.span[0]].strip()
    return len(trail.commands) - 1 if joint == "|" and not trail.several else None


def _takes_input(stage: Stage) -> bool:
    """A command, or a loop that reads lines and gets no other input."""
    if isinstance(stage, Redirected):
        reads = isinstance(stage.command, Loop) and stage.command.reads is not None
        return reads and not any(redirect.operator.startswith("<") for redirect in stage.redirects)
    return isinstance(stage, Simple)


def _run_stage(trail: Trail, stage: Stage, folder: Folder, tested: bool) -> Outcome:
    if isinstance(stage, Simple):
        return run_simple(trail, stage, folder)
    if isinstance(stage, Function):
        return _define_function(trail, stage, folder)
    if not stage.redirects:
        return _run_compound(trail, stage, folder, tested)
    if redirects := redirect_all(trail, stage.redirects, folder):
        trail.add(folder, stage.span, redirects=redirects)
    trail.feeding = _fed_by_process(trail, stage)
    # When a file cannot be opened, nothing inside runs.
    scope = trail.open_scope()
    success, failure = _run_compound(trail, stage, folder, tested)
    trail.close_scope(scope)
    return Outcome(success, join(failure, folder))


def _fed_by_process(trail: Trail, stage: Redirected) -> int | None:
    """The command whose output a loop reads, as in `while read -r x; do ...; done < <(command)`."""
    reads = isinstance(stage.command, Loop) and stage.command.reads is not None
    return printer_read(trail, stage.redirects) if reads else None


def _run_compound(trail: Trail, stage: Redirected, folder: Folder, tested: bool) -> Outcome:
    command = stage.command
    if isinstance(command, Group):
        return _run_group(trail, command, folder, tested)
    if isinstance(command, Branches):
        return _run_branches(trail, command, folder, tested)
    if isinstance(command, Loop):
        return _run_loop(trail, command, folder, tested)
    if isinstance(command, ForEach):
        return _run_for_each(trail, command, folder, tested)
    if isinstance(command, Choice):
        return _run_choice(trail, command, folder, tested)
    if isinstance(command, Conditional):
        return _run_conditional(trail, command, folder)
    if isinstance(command, Evaluation):
        evaluate(trail, command.arithmetic, folder)
        return Outcome(folder, folder)
    assert_never(command)


def _run_group(trail: Trail, group: Group, folder: Folder, tested: bool) -> Outcome:
    if not group.subshell:
        return _run_sequence(trail, group.body, folder, tested=tested)
    scope = trail.open_scope()
    _run_sequence(trail, group.body, folder, tested=tested)
    trail.close_scope(scope)
    return Outcome(folder, folder)


def _run_branches(trail: Trail, branches: Branches, folder: Folder, tested: bool) -> Outcome:
    success: Folder = UNREACHABLE
    failure: Folder = UNREACHABLE
    scope = trail.open_scope()
    for condition, body in branches.arms:
        taken, folder = _run_sequence(trail, condition, folder, tested=True)
        outcome = _run_scoped(trail, body, taken, tested)
        success, failure = join(success, outcome.success), join(failure, outcome.failure)
    if branches.otherwise is None:
        outcome = Outcome(folder, UNREACHABLE)
    else:
        outcome = _run_scoped(trail, branches.otherwise, folder, tested)
    trail.close_scope(scope)
    return Outcome(join(success, outcome.success), join(failure, outcome.failure))


def _run_choice(trail: Trail, choice: Choice, folder: Folder, tested: bool) -> Outcome:
    for word in (choice.subject, *choice.patterns):
        visit(trail, word.parts, folder)
    success: Folder = folder
    failure: Folder = UNREACHABLE
    for body in choice.bodies:
        outcome = _run_scoped(trail, body, folder, tested)
        success, failure = join(success, outcome.success), join(failure, outcome.failure)
    return Outcome(success, failure)


def _run_loop(trail: Trail, loop: Loop, folder: Folder, tested: bool) -> Outcome:
    folder = None if loop.moves else folder
    fed_by, trail.feeding = trail.feeding, None
    for arithmetic in loop.arithmetic:
        evaluate(trail, arithmetic, folder)
    scope = trail.open_scope()
    if loop.condition is not None:
        _run_sequence(trail, loop.condition, folder, tested=True)
    start = len(trail.commands)
    if loop.reads is not None and fed_by is not None:
        trail.variables.bind(loop.reads, Known((), printed_by=fed_by, line=loop.exactly))
    _run_sequence(trail, loop.body, folder, tested=tested)
    if fed_by is not None:
        trail.loops.append(LineLoop(fed_by, start, len(trail.commands)))
    trail.close_scope(scope)
    return Outcome(folder, folder)


def _run_for_each(trail: Trail, loop: ForEach, folder: Folder, tested: bool) -> Outcome:
    made = [each for word in loop.words or () for each in _keys(trail, word) or expand(trail, word, folder)]
    items = tuple(item for each in made for item in (chain(*each.contents) if each.contents else (each,)))
    known = bool(items) and all(word.kind in {"literal", "glob"} for word in items)
    printer = items[0].printed_by if len(items) == 1 and not items[0].whole else None
    each = _stand_in_for_each(trail, loop)
    value = trail.unknown(loop.span)._replace(kind="choice", choices=items) if known else trail.unknown(loop.span)
    trail.add(folder, loop.span, assignments=(Assignment(loop.name, value, loop.span),))
    folder = None if loop.moves else folder
    outside = trail.unrolled
    for values in _divide(trail, loop, items, folder) if known else [()]:
        scope = trail.open_scope()
        if values and loop.keeps:
            trail.variables.bind(loop.name, Known(values, folder))
        elif each and loop.keeps:
            trail.variables.bind(loop.name, Known((), stand_ins=each))
        elif printer is not None and loop.keeps:
            trail.variables.bind(loop.name, Known((), printed_by=printer))
        _run_sequence(trail, loop.body, folder, tested=tested)
        trail.close_scope(scope)
    trail.unrolled = outside
    return Outcome(folder, folder)


def _keys(trail: Trail, word: SourceWord) -> list[Word]:
    """The keys of `"${!m[@]}"`, when all of them are spelled."""
    part = only_part(word) if trail.notes.keyed else None
    if not isinstance(part, Parameter) or not part.name.startswith("!") or not part.quoted:
        return []
    return [literal_word(key, word.span) for key in trail.variables.keys(part.name[1:-3])]


def _stand_in_for_each(trail: Trail, loop: ForEach) -> tuple[str, ...]:
    words = loop.words or ()
    part = words[0].parts[0] if len(words) == 1 and len(words[0].parts) == 1 else None
    if not isinstance(part, Substitution) or part.quoted or part.process or trail.notes.evaluates:
        return ()
    return stand_in_for_each(part.program, trail.notes.functions)


def _divide(trail: Trail, loop: ForEach, items: tuple[Word, ...], folder: Folder) -> list[tuple[Word, ...]]:
    """The values of the variable to follow the body with: each by itself where they name the folder of a `cd`."""
    if trail.unrolled or not loop.enters or loop.moves:
        return [items]
    words: list[Word] = []
    for word in items:
        texts = [word.text] if word.literal is not None else trail.disk.list_names(word, shown(folder) or "")
        if texts is None or folder is None or len(words) + len(texts) > _MAX_ROUNDS:
            return [items]
        words += [literal_word(text, word.span) for text in texts]
    trail.unrolled = True
    return [(word,) for word in words]


def _run_scoped(trail: Trail, sequence: Sequence, folder: Folder, tested: bool) -> Outcome:
    scope = trail.open_scope()
    outcome = _run_sequence(trail, sequence, folder, tested=tested)
    trail.close_scope(scope)
    return outcome


def _define_function(trail: Trail, function: Function, folder: Folder) -> Outcome:
    if function.name in BUILTINS:
        raise UnparsableError(f"a function named like the shell's own `{function.name}`", function.span)
    body = Sequence((AndOr((Pipeline((function.body,), negated=False),), (), background=False),))
    trail.define_function(function.name, body)
    return Outcome(folder, folder)


def _run_conditional(trail: Trail, conditional: Conditional, folder: Folder) -> Outcome:
    for word in conditional.numbers:
        if not is_number(trail, word):
            raise UnparsableError("[[ ]] evaluates what is compared as a number; use [ ] for it", word.span)
    words = tuple(value_of(trail, word, folder) for word in conditional.words)
    trail.add(folder, conditional.span, words=words)
    return Outcome(folder, folder)
