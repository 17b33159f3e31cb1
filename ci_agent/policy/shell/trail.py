"""What the following of a program has found so far, and what holds at the place that it has reached."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ci_agent.policy.shell.folders import UNREACHABLE, Folder
from ci_agent.policy.shell.program import Assignment, BoundExceededError, Command, Disk, LineLoop, Question, Redirect
from ci_agent.policy.shell.questions import new_branch
from ci_agent.policy.shell.reader import MAX_COMMANDS, Notes
from ci_agent.policy.shell.syntax import Sequence, Span
from ci_agent.policy.shell.variables import Variables
from ci_agent.policy.words import Word
from ci_agent.steering_names import matters_to_shell_alone

MAX_WORDS = 2_000
"""The words of all commands, once they are expanded; what had to be expanded counts twice."""


_MAX_CALLS_WITHIN = 8
"""How deep functions that call others are followed call by call."""


class Scope(NamedTuple):
    """What held before a part of the program that may not run, or runs in a shell of its own."""

    variables: int
    functions: int
    errexit: bool


class OutOfOrderError(Exception):
    """A function may be called where the following does not get to, or with variables that it did not see."""


@dataclass(slots=True)
class Calls:
    """The calls of functions, each followed where it stands, with its own arguments."""

    bodies: dict[str, Sequence] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    called_by_trap: set[str] = field(default_factory=set)
    in_trap: bool = False


@dataclass(slots=True)
class Trail:
    source: str
    notes: Notes
    variables: Variables
    run: Callable[["Trail", Sequence, Folder], object]
    """Follows a sequence whose status is looked at; follow.py has it, which stands on everything else."""
    disk: Disk
    commands: list[Command] = field(default_factory=list)
    functions: dict[str, None] = field(default_factory=dict)
    """Those certainly defined here, in order."""
    calls: Calls | None = None
    """None: nobody knows which calls there are, so that each function is followed where it is defined."""
    errexit: bool = False
    """A failing command certainly ends the shell here."""
    unrolled: bool = False
    """The body of a loop is being followed once for each value."""
    words: int = 0
    runs: int = 0
    printers: dict[int, int] = field(default_factory=dict)
    """For the program of a substitution, by its id, the index of the command that prints what is substituted."""
    loops: list[LineLoop] = field(default_factory=list)
    several: bool = False
    """The command that was followed last may have had one list of words or another."""
    feeding: int | None = None
    """Index of the command that feeds the pipe at whose end the following stands."""

    def add(
        self,
        folder: Folder,
        span: Span,
        *,
        words: tuple[Word, ...] = (),
        assignments: tuple[Assignment, ...] = (),
        redirects: tuple[Redirect, ...] = (),
    ) -> None:
        """Note something that is no call of a function and reads from no pipe."""
        self.commands.append(Command(words, assignments, redirects, shown(folder), span))

    def add_value(self, name: str, span: Span, folder: Folder) -> None:
        """Note that a variable gets a value which nobody knows."""
        self.add(folder, span, assignments=(Assignment(name, self.unknown(span), span),))

    def count_words(self, words: list[Word]) -> None:
        self.words += 2 * len(words) + sum([len(word.choices) for word in words])
        if self.words > MAX_WORDS:
            raise BoundExceededError(f"more than {MAX_WORDS} words")

    def unknown(self, span: Span) -> Word:
        """One word that nobody knows, made of what stands at `span`."""
        return Word("unknown", self.source[slice(*span)], span)

    def count_command(self) -> None:
        """Loops that are followed once for each value make more commands than the text has."""
        self.runs += 1
        if self.runs > MAX_COMMANDS:
            raise BoundExceededError(f"more than {MAX_COMMANDS} commands")

    def answers(self, question: Question, folder: Folder) -> tuple[str, ...]:
        """Every text that a command may print here of which the disk tells that; empty when nobody knows."""
        if shown(folder) is None or any(map(matters_to_shell_alone, self.notes.assigned)):
            return ()
        made = filter(None, map(new_branch, self.commands)) if "branch" in question.about else ()
        return tuple(self.disk.answer(question._replace(made=tuple(made)), folder or ""))

    def check_name(self, name: str | None) -> None:
        """Make sure that a command is no call of a function that is not known here; None: any name."""
        if self.calls is not None and (name is None or (name in self.notes.functions and name not in self.functions)):
            raise OutOfOrderError

    def define_function(self, name: str, body: Sequence) -> None:
        self.functions.setdefault(name)
        if self.calls is None:
            self.run_later(body, function=True)
        elif name in self.calls.bodies:
            raise OutOfOrderError
        else:
            self.calls.bodies[name] = body

    def call_function(self, name: str, arguments: tuple[Word, ...], folder: Folder) -> None:
        """Follow a function with its arguments."""
        calls = self.calls
        if calls is None:
            return
        if name in calls.running or len(calls.running) == _MAX_CALLS_WITHIN:
            raise OutOfOrderError
        (calls.called_by_trap if calls.in_trap else calls.called).add(name)
        calls.running.append(name)
        scope, inside = self.open_scope(), self.variables.in_function
        self.variables.in_function = True
        self.variables.pass_arguments(arguments, folder)
        self.run(self, calls.bodies[name], folder)
        self.variables.in_function = inside
        self.close_scope(scope)
        calls.running.pop()

    def follow_uncalled(self) -> None:
        """Follow the functions that nothing calls; what a trap calls at any time must be called by nothing else."""
        calls = self.calls
        while calls is not None and (names := calls.bodies.keys() - calls.called - calls.called_by_trap):
            name = min(names)
            calls.called.add(name)
            self.run_later(calls.bodies[name], function=True)
        if calls is not None and not calls.called.isdisjoint(calls.called_by_trap):
            raise OutOfOrderError

    def run_trap(self, sequence: Sequence) -> None:
        calls = self.calls
        outside = calls is not None and calls.in_trap
        if calls is not None:
            calls.in_trap = True
        self.run_later(sequence, function=False)
        if calls is not None:
            calls.in_trap = outside

    def run_later(self, sequence: Sequence, *, function: bool) -> None:
        """Follow what runs at an unknown time: the body of a function, what `trap` installs."""
        before = self.variables.enter_later(function=function)
        scope = self.open_scope()
        self.run(self, sequence, None if self.notes.all_moves else "")
        self.close_scope(scope)
        self.variables.leave_later(before)

    def run_apart(self, sequence: Sequence, folder: Folder) -> None:
        """Follow what is substituted, in a shell of its own that `set -e` does not reach."""
        scope = self.open_scope()
        self.errexit = False
        self.run(self, sequence, folder)
        self.close_scope(scope)

    def open_scope(self) -> Scope:
        return Scope(self.variables.mark(), len(self.functions), self.errexit)

    def close_scope(self, scope: Scope) -> None:
        """Forget what only held since the scope was opened."""
        self.variables.forget(scope.variables)
        while len(self.functions) > scope.functions:
            self.functions.popitem()
        self.errexit = scope.errexit


def shown(folder: Folder) -> str | None:
    """The folder as the outside knows it."""
    return None if folder == UNREACHABLE else folder
