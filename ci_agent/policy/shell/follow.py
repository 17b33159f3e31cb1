"""Follows a program the way bash runs it, taking every branch, and collects what it would run and open."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from ci_agent.policy.shell.builtin_checks import check_call, ends_shell, sets_errexit
from ci_agent.policy.shell.builtins import BUILTINS, HARMLESS
from ci_agent.policy.shell.expansion import Surroundings, expand_value, expand_word
from ci_agent.policy.shell.folders import UNREACHABLE, Folder, change_folder, join
from ci_agent.policy.shell.program import (
    Assignment,
    BoundExceededError,
    Command,
    Redirect,
    RedirectMode,
    UnparsableError,
)
from ci_agent.policy.shell.reader import DESCRIPTOR, Notes
from ci_agent.policy.shell.static_words import is_integer, only_part, static_text
from ci_agent.policy.shell.syntax import (
    AndOr,
    Arithmetic,
    Branches,
    Builtin,
    Choice,
    Conditional,
    Evaluation,
    ForEach,
    Function,
    Group,
    Loop,
    Parameter,
    Part,
    Pipeline,
    Redirected,
    RedirectOperator,
    Sequence,
    Simple,
    SourceAssignment,
    SourceRedirect,
    SourceWord,
    Stage,
    Substitution,
)
from ci_agent.policy.shell.variables import Known, Variables
from ci_agent.policy.words import Word

MAX_WORDS = 5_000
"""The words of all commands, once they are expanded."""

_MAX_ROUNDS = 16

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


class Scope(NamedTuple):
    """What held before a part of the program that may not run, or runs in a shell of its own."""

    variables: int
    functions: int
    errexit: bool


class Outcome(NamedTuple):
    """The folder that the shell is in after success, and after failure."""

    success: Folder
    failure: Folder

    @property
    def either(self) -> Folder:
        return join(self.success, self.failure)


@dataclass(slots=True)
class Follower:
    """Where the following stands: what it found, and what holds at the place that it has reached."""

    source: str
    notes: Notes
    variables: Variables
    commands: list[Command] = field(default_factory=list)
    functions: dict[str, None] = field(default_factory=dict)
    """Those certainly defined here, in order."""
    errexit: bool = False
    """A failing command certainly ends the shell here."""
    unrolled: bool = False
    """The body of a loop is being followed once for each value."""
    words: int = 0
    feeding: int | None = None
    """Index of the command that feeds the pipe at whose end the following stands."""

    def run_sequence(self, sequence: Sequence, folder: Folder, *, tested: bool = False) -> Outcome:
        """`tested`: the status is looked at, so that `set -e` has no effect inside."""
        outcome = Outcome(folder, UNREACHABLE)
        for item in sequence.items:
            folder = outcome.either
            outcome = self._run_and_or(item, folder, tested)
        return outcome

    def _run_and_or(self, item: AndOr, folder: Folder, tested: bool) -> Outcome:
        if item.background:
            scope = self._open_scope()
            self._run_pipelines(item, folder, True)
            self._close_scope(scope)
            return Outcome(folder, UNREACHABLE)
        outcome = self._run_pipelines(item, folder, tested)
        first = item.pipelines[0]
        if self.errexit and not (tested or item.operators or first.negated or len(first.stages) > 1):
            return Outcome(outcome.success, UNREACHABLE)
        return outcome

    def _run_pipelines(self, item: AndOr, folder: Folder, tested: bool) -> Outcome:
        outcome = self._run_pipeline(item.pipelines[0], folder, tested or bool(item.operators))
        if not item.operators:
            return outcome
        scope = self._open_scope()
        last = len(item.operators) - 1
        for index, operator in enumerate(item.operators):
            if operator == "||":
                self._close_scope(scope)
            start = outcome.success if operator == "&&" else outcome.failure
            success, failure = self._run_pipeline(item.pipelines[index + 1], start, tested or index < last)
            if operator == "||":
                self._close_scope(scope)
            if operator == "&&":
                outcome = Outcome(success, join(outcome.failure, failure))
            else:
                outcome = Outcome(join(outcome.success, success), failure)
        self._close_scope(scope)
        return outcome

    def _run_pipeline(self, pipeline: Pipeline, folder: Folder, tested: bool) -> Outcome:
        if len(pipeline.stages) > 1:
            for index, stage in enumerate(pipeline.stages):
                self.feeding = self._fed_by(pipeline.stages, index)
                scope = self._open_scope()
                self._run_stage(stage, folder, True)
                self._close_scope(scope)
            self.feeding = None
            return Outcome(folder, folder)
        outcome = self._run_stage(pipeline.stages[0], folder, tested or pipeline.negated)
        return Outcome(outcome.failure, outcome.success) if pipeline.negated else outcome

    def _fed_by(self, stages: tuple[Stage, ...], index: int) -> int | None:
        """The command before the pipe, when it stands last among the commands and prints there what it finds alone."""
        before = stages[index - 1] if index > 0 else None
        if not isinstance(before, Simple) or not isinstance(stages[index], Simple) or before.builtin is not None:
            return None
        joint = self.source[before.span[1] : stages[index].span[0]].strip()
        silenced = all(redirect.target.plain == "/dev/null" for redirect in before.redirects)
        return len(self.commands) - 1 if joint == "|" and silenced and before.words else None

    def _run_stage(self, stage: Stage, folder: Folder, tested: bool) -> Outcome:
        if isinstance(stage, Simple):
            return self._run_simple(stage, folder)
        if isinstance(stage, Function):
            return self._define_function(stage, folder)
        if not stage.redirects:
            return self._run_compound(stage, folder, tested)
        if redirects := self._redirect_all(stage.redirects, folder):
            self.commands.append(Command((), (), redirects, _shown(folder), stage.span))
        # When a file cannot be opened, nothing inside runs.
        scope = self._open_scope()
        success, failure = self._run_compound(stage, folder, tested)
        self._close_scope(scope)
        return Outcome(success, join(failure, folder))

    def _run_compound(self, stage: Redirected, folder: Folder, tested: bool) -> Outcome:
        command = stage.command
        if isinstance(command, Group):
            return self._run_group(command, folder, tested)
        if isinstance(command, Branches):
            return self._run_branches(command, folder, tested)
        if isinstance(command, Loop):
            return self._run_loop(command, folder, tested)
        if isinstance(command, ForEach):
            return self._run_for_each(command, folder, tested)
        if isinstance(command, Choice):
            return self._run_choice(command, folder, tested)
        if isinstance(command, Conditional):
            return self._run_conditional(command, folder)
        if isinstance(command, Evaluation):
            self._evaluate(command.arithmetic)
            return Outcome(folder, folder)
        assert_never(command)

    def _run_group(self, group: Group, folder: Folder, tested: bool) -> Outcome:
        if not group.subshell:
            return self.run_sequence(group.body, folder, tested=tested)
        scope = self._open_scope()
        self.run_sequence(group.body, folder, tested=tested)
        self._close_scope(scope)
        return Outcome(folder, folder)

    def _run_branches(self, branches: Branches, folder: Folder, tested: bool) -> Outcome:
        success: Folder = UNREACHABLE
        failure: Folder = UNREACHABLE
        scope = self._open_scope()
        for condition, body in branches.arms:
            taken, folder = self.run_sequence(condition, folder, tested=True)
            outcome = self._run_scoped(body, taken, tested)
            success, failure = join(success, outcome.success), join(failure, outcome.failure)
        if branches.otherwise is None:
            outcome = Outcome(folder, UNREACHABLE)
        else:
            outcome = self._run_scoped(branches.otherwise, folder, tested)
        self._close_scope(scope)
        return Outcome(join(success, outcome.success), join(failure, outcome.failure))

    def _run_choice(self, choice: Choice, folder: Folder, tested: bool) -> Outcome:
        for word in (choice.subject, *choice.patterns):
            self._visit(word.parts, folder)
        success: Folder = folder
        failure: Folder = UNREACHABLE
        for body in choice.bodies:
            outcome = self._run_scoped(body, folder, tested)
            success, failure = join(success, outcome.success), join(failure, outcome.failure)
        return Outcome(success, failure)

    def _run_loop(self, loop: Loop, folder: Folder, tested: bool) -> Outcome:
        folder = None if loop.moves else folder
        for arithmetic in loop.arithmetic:
            self._evaluate(arithmetic)
        scope = self._open_scope()
        if loop.condition is not None:
            self.run_sequence(loop.condition, folder, tested=True)
        self.run_sequence(loop.body, folder, tested=tested)
        self._close_scope(scope)
        return Outcome(folder, folder)

    def _run_for_each(self, loop: ForEach, folder: Folder, tested: bool) -> Outcome:
        items = tuple(made for word in loop.words or () for made in self._expand(word, folder))
        known = bool(items) and all(word.kind in {"literal", "glob"} for word in items)
        text = self.source[loop.span[0] : loop.span[1]]
        value = Word("choice", text, loop.span, items) if known else Word("unknown", text, loop.span)
        self.commands.append(Command((), (Assignment(loop.name, value, loop.span),), (), _shown(folder), loop.span))
        folder = None if loop.moves else folder
        outside = self.unrolled
        for values in self._divide(loop, items) if known else [()]:
            scope = self._open_scope()
            if values and loop.keeps:
                self.variables.bind(loop.name, Known(values, folder))
            self.run_sequence(loop.body, folder, tested=tested)
            self._close_scope(scope)
        self.unrolled = outside
        return Outcome(folder, folder)

    def _divide(self, loop: ForEach, items: tuple[Word, ...]) -> list[tuple[Word, ...]]:
        """The values of the variable to follow the body with: each by itself where they name the folder of a `cd`."""
        certain = loop.enters and not loop.moves and len(items) <= _MAX_ROUNDS
        if self.unrolled or not certain or any(word.literal is None for word in items):
            return [items]
        self.unrolled = True
        return [(word,) for word in items]

    def _run_scoped(self, sequence: Sequence, folder: Folder, tested: bool) -> Outcome:
        scope = self._open_scope()
        outcome = self.run_sequence(sequence, folder, tested=tested)
        self._close_scope(scope)
        return outcome

    def _define_function(self, function: Function, folder: Folder) -> Outcome:
        if function.name in BUILTINS:
            raise UnparsableError(f"a function named like the shell's own `{function.name}`", function.span)
        self.functions.setdefault(function.name)
        self._run_later(Sequence((AndOr((Pipeline((function.body,), negated=False),), (), background=False),)))
        return Outcome(folder, folder)

    def _run_later(self, sequence: Sequence) -> None:
        """Follow what runs at an unknown time: the body of a function, what `trap` installs."""
        scope = self._open_scope()
        self.run_sequence(sequence, None if self.notes.all_moves else "", tested=True)
        self._close_scope(scope)

    def _run_conditional(self, conditional: Conditional, folder: Folder) -> Outcome:
        for word in conditional.numbers:
            if not self._is_number(word):
                raise UnparsableError("[[ ]] evaluates what is compared as a number; use [ ] for it", word.span)
        words = tuple(self._value(word, folder) for word in conditional.words)
        self.commands.append(Command(words, (), (), _shown(folder), conditional.span))
        return Outcome(folder, folder)

    def _run_simple(self, simple: Simple, folder: Folder) -> Outcome:
        fed_by, self.feeding = self.feeding, None
        if any(redirect.operator.startswith("<") for redirect in simple.redirects):
            fed_by = None
        words = self._expand_words(simple, folder)
        assignments = tuple(
            self._assign(assignment, folder, lasting=not (simple.words or simple.redirects))
            for assignment in simple.assignments
        )
        redirects = self._redirect_all(simple.redirects, folder)
        name = words[0].literal if words else None
        builtin = simple.builtin
        function = builtin is None and name in self.functions and not self.notes.evaluates
        self.commands.append(Command(words, assignments, redirects, _shown(folder), simple.span, function, fed_by))
        if builtin is not None:
            return self._run_builtin(builtin, words[builtin.index + 1 :], simple, folder)
        if words:
            _check_name(words[0], simple.words[0])
        return Outcome(folder, folder)

    def _run_builtin(self, builtin: Builtin, arguments: tuple[Word, ...], simple: Simple, folder: Folder) -> Outcome:
        """What one of the shell's own commands does to the shell."""
        name = builtin.name
        if name != "wait" or not all(map(self._is_number, simple.words[builtin.index + 1 :])):
            check_call(name, arguments, simple.span)
        for variable in builtin.assigns:
            value = Word("unknown", self.source[simple.span[0] : simple.span[1]], simple.span)
            assignment = Assignment(variable, value, simple.span)
            self.commands.append(Command((), (assignment,), (), _shown(folder), simple.span))
        if builtin.handler is not None:
            self._run_later(builtin.handler)
        if name == "cd":
            return Outcome(change_folder(folder, arguments, self.variables), folder)
        if name in {"pushd", "popd", "eval"}:
            return Outcome(None, None)
        if name == "exit" and not simple.redirects and not simple.assignments and ends_shell(arguments):
            return Outcome(UNREACHABLE, UNREACHABLE)
        if name == "set" and not simple.redirects and sets_errexit(arguments):
            self.errexit = not (self.notes.errexit_ends or self.notes.evaluates)
        return Outcome(folder, folder)

    # Words, assignments and redirections.

    def _expand_words(self, simple: Simple, folder: Folder) -> tuple[Word, ...]:
        declared = simple.declared
        lasting = len(simple.words) == len(declared) + 1 and simple.words[0].plain != "local" and not simple.redirects
        words: list[Word] = []
        for index, word in enumerate(simple.words, -1):
            if word.plain is not None:
                words.append(Word("literal", word.plain, word.span))
            elif assignment := declared.get(index):
                words.append(_as_argument(self._assign(assignment, folder, lasting=lasting), assignment.append))
            else:
                words += self._expand(word, folder)
        return tuple(words)

    def _expand(self, word: SourceWord, folder: Folder) -> list[Word]:
        self._visit(word.parts, folder)
        words = expand_word(word, Surroundings(self.source, self.variables, folder))
        self.words += 2 * len(words) + sum(len(made.choices) for made in words)
        if self.words > MAX_WORDS:
            raise BoundExceededError(f"more than {MAX_WORDS} words")
        return words

    def _value(self, word: SourceWord, folder: Folder) -> Word:
        self._visit(word.parts, folder)
        return expand_value(word, Surroundings(self.source, self.variables, folder))

    def _visit(self, parts: Iterable[Part], folder: Folder) -> None:
        """Run what is substituted in a word, and check what is evaluated."""
        for part in parts:
            if isinstance(part, Substitution):
                scope = self._open_scope()
                self.errexit = False
                self.run_sequence(part.program, folder, tested=True)
                self._close_scope(scope)
            elif isinstance(part, Arithmetic):
                self._evaluate(part)
            elif isinstance(part, Parameter) and part.operands:
                scope = self._open_scope()
                for operand in part.operands:
                    self._visit(operand.parts, folder)
                self._close_scope(scope)

    def _evaluate(self, arithmetic: Arithmetic) -> None:
        for name in arithmetic.reads:
            if not self.variables.is_integer(name):
                reason = f"arithmetic evaluates the text of {name}, which is not known to be a number"
                raise UnparsableError(reason, arithmetic.span)
        for name in arithmetic.assigns:
            self.variables.define(name, Known((), integer=True))

    def _is_number(self, word: SourceWord) -> bool:
        part = only_part(word)
        if isinstance(part, Parameter) and part.plain and self.variables.is_integer_or_empty(part.name):
            return True
        return is_integer(word)

    def _assign(self, assignment: SourceAssignment, folder: Folder, *, lasting: bool) -> Assignment:
        if assignment.elements is not None:
            for element in assignment.elements:
                self._visit(element.parts, folder)
            value = Word("unknown", self.source[slice(*assignment.value.span)], assignment.value.span)
        else:
            value = self._value(assignment.value, folder)
            if lasting:
                self._define(assignment, value, folder)
        if assignment.append:
            value = Word("unknown", self.source[slice(*assignment.value.span)], assignment.value.span)
        return Assignment(assignment.name, value, assignment.span)

    def _define(self, assignment: SourceAssignment, value: Word, folder: Folder) -> None:
        if value.kind == "literal":
            known = Known((value,))
        elif value.kind == "choice":
            known = Known(value.choices, folder)
        elif is_integer(assignment.value):
            known = Known((), integer=True)
        else:
            return
        self.variables.define(assignment.name, known)

    def _redirect_all(self, redirects: tuple[SourceRedirect, ...], folder: Folder) -> tuple[Redirect, ...]:
        made = (self._redirect(redirect, folder) for redirect in redirects)
        return tuple(redirect for redirect in made if redirect is not None)

    def _redirect(self, redirect: SourceRedirect, folder: Folder) -> Redirect | None:
        """The file that is opened; None when there is none."""
        if redirect.operator == "<<":
            self._visit(redirect.body, folder)
            return None
        if redirect.operator == "<<<":
            self._value(redirect.target, folder)
            return None
        words = self._expand(redirect.target, folder)
        if len(words) != 1:
            raise UnparsableError("a redirection to more or less than one file", redirect.span)
        text = words[0].literal
        if self.notes.posix and (words[0].kind in {"glob", "choice"} or words[0].splits):
            raise UnparsableError("a redirection whose target not every sh expands alike", redirect.span)
        if words[0].pipe:
            return None
        if redirect.operator == "<&" or (redirect.operator == ">&" and text is not None and DESCRIPTOR.fullmatch(text)):
            return None
        return Redirect(_MODES[redirect.operator], words[0], redirect.span)

    def _open_scope(self) -> Scope:
        return Scope(self.variables.mark(), len(self.functions), self.errexit)

    def _close_scope(self, scope: Scope) -> None:
        self.variables.forget(scope.variables)
        while len(self.functions) > scope.functions:
            self.functions.popitem()
        self.errexit = scope.errexit


def _shown(folder: Folder) -> str | None:
    return None if folder == UNREACHABLE else folder


def _as_argument(assignment: Assignment, append: bool) -> Word:
    """An argument of `export` that has the form of an assignment."""
    head = assignment.name + ("+=" if append else "=")
    value = assignment.value
    if value.literal is not None:
        return Word("literal", head + value.literal, assignment.span)
    return Word("unknown", value.text, assignment.span, prefix=head + value.prefix)


def _check_name(word: Word, source: SourceWord) -> None:
    """A name that only expansion yields must not be one whose effects on the shell had to be known before."""
    if word.kind == "glob" or any(choice.kind == "glob" for choice in word.choices):
        raise UnparsableError("the name of a command that is a pattern for names of files", word.span)
    names = {word.literal, *(choice.literal for choice in word.choices)} - {static_text(source)}
    if not names.isdisjoint(BUILTINS - HARMLESS):
        raise UnparsableError("a command of the shell itself whose name is not spelled out", word.span)
