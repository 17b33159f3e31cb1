"""A cursor over bash text, and what is noted about the text as a whole while it is read."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NoReturn, TypeAlias

from ci_agent.policy.shell.program import BoundExceededError, UnparsableError
from ci_agent.policy.shell.syntax import Part, Sequence, Span

MAX_NESTING = 32
MAX_COMMANDS = 150
"""Simple and compound commands, assignments, substitutions and here-documents; what nests counts twice."""
MAX_PIECES = 2_000
"""Words, and what words consist of."""

Role: TypeAlias = Literal["name", "argument", "assignment", "target", "item", "test"]
"""What a stretch of the text is: the name or an argument of a command, an assignment before one, the target of a
redirection, an item of a `for`, a whole `[[ ... ]]`."""

DESCRIPTOR = re.compile(r"[0-9]+-?|-")
"""What stands behind `>&` and `<&` when a descriptor is copied, moved or closed."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no text may hold: control characters but tab and line break, and halves of pairs."""

_TOKEN = re.compile(r"[^\s;|&()<>]{1,40}|[;|&()<>]{1,3}")
_MAY_SKIP = frozenset(" \t\\#")
_BLANKS = re.compile(r"[ \t]*")


class Mask(NamedTuple):
    """Characters that the second reading sees as `fill`, repeated: it would misread what stands there."""

    start: int
    end: int
    fill: str


class Unit(NamedTuple):
    """A stretch of text that the second reading takes by itself: the program, backticks, a here-document's body."""

    text: str
    start: int
    end: int
    roles: list[tuple[int, int, Role]]
    masks: list[Mask]
    string: bool
    """To be read as the inside of a double-quoted string."""
    outer: Span | None
    """Where it stands, when its text was decoded and has other positions than the whole."""


class HereDocument(NamedTuple):
    delimiter: str
    quoted: bool
    strips_tabs: bool
    body: list[Part]
    """Receives the expansions in the body."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """What is put into an associative array anywhere in the text, in order."""

    keys: dict[str | None, None] = field(default_factory=dict)
    """None among them: one that is not spelled."""
    values: dict[str | None, None] = field(default_factory=dict)


@dataclass(slots=True)
class Notes:
    """What the text does to the shell that runs it, wherever in the text it does it."""

    posix: bool = False
    """Whatever sh the machine has is to run the text: what only some understand is refused."""
    commands: int = 0
    pieces: int = 0
    depth: int = 0
    units: list[Unit] = field(default_factory=list)
    assigned: dict[str, int] = field(default_factory=dict)
    """How many places give a variable a value."""
    deferred: int = 0
    """Inside how many functions and traps the reading is: what they hold runs nobody knows when."""
    assigned_later: set[str] = field(default_factory=set)
    """The variables that a function or a trap may change."""
    not_integers: set[str] = field(default_factory=set)
    """The variables that some place gives a value that need not be an integer."""
    may_be_empty: set[str] = field(default_factory=set)
    """The variables that some place gives the value of `$!`."""
    moves: int = 0
    """Counts what may leave the current shell in another folder; what a subshell does is taken back."""
    all_moves: int = 0
    """Counts the same, subshells included."""
    function_moves: bool = False
    """A function or a trap may leave the shell in another folder, nobody knows when."""
    functions: set[str] = field(default_factory=set)
    readonly: dict[str, int] = field(default_factory=dict)
    """The variables that are made read-only, with how many places may give them a value: the one that makes them so."""
    unset: set[str] = field(default_factory=set)
    """The names given to `unset`, which for want of a variable takes away a function."""
    arrays: set[str] = field(default_factory=set)
    appended: dict[str, int] = field(default_factory=dict)
    """How many places add elements to an array."""
    filled_in: dict[str, set[int]] = field(default_factory=dict)
    """The innermost loops in which an array gets its elements, by their numbers; 0: in none."""
    keyed: dict[str, Keyed] = field(default_factory=dict)
    loop: int = 0
    """The number of the innermost loop at the cursor."""
    loops: int = 0
    declared: set[str] = field(default_factory=set)
    """The variables to which `export` and its like give a value, which for an array would be evaluated."""
    evaluates: bool = False
    """`eval` or `source`: any variable may change unseen."""
    errexit_ends: bool = False

    def count_command(self) -> None:
        self.commands += 1
        if self.commands > MAX_COMMANDS:
            raise BoundExceededError(f"more than {MAX_COMMANDS} commands")

    def count_pieces(self, count: int) -> None:
        self.pieces += count
        if self.pieces > MAX_PIECES:
            raise BoundExceededError(f"more than {MAX_PIECES} words and parts of words")

    def fill(self, name: str, *, append: bool) -> None:
        """Note one place that fills an array, or adds to it."""
        self.filled_in.setdefault(name, set()).add(self.loop)
        if append:
            self.appended[name] = self.appended.get(name, 0) + 1

    def grows_here_alone(self, name: str) -> bool:
        """Whether what adds to the array does so in the order of the text, behind the one place that fills it."""
        places = 1 + 2 * self.appended[name]
        in_order = len(self.filled_in[name]) == 1 and name not in self.assigned_later
        return in_order and self.assigned.get(name) == places

    def assign(self, name: str, *, integer: bool = False, certain: bool = True) -> None:
        """Note one place that changes the variable `name`; an uncertain one makes its value unknown everywhere."""
        self.assigned[name] = self.assigned.get(name, 0) + (1 if certain else 2)
        if not integer:
            self.not_integers.add(name)
        if self.deferred:
            self.assigned_later.add(name)


@dataclass(slots=True)
class Reader:
    """Reads `text` from `position` to `end`. `outer` is set where the text was decoded from backticks."""

    text: str
    position: int
    end: int
    notes: Notes
    read_program: "Callable[[Reader], Sequence]"
    """Reads commands up to the end, or to what closes them; grammar.py has it, which stands on everything else."""
    outer: Span | None = None
    pending: list[HereDocument] = field(default_factory=list)
    enclosed: int | None = None
    """The nesting inside the innermost substitution; None: in none. Bash writes what is substituted anew before it runs
    it, and loses a `;` that stands behind a here-document."""
    roles: list[tuple[int, int, Role]] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    bare_dollar: bool = False
    """The word at the cursor holds a `$` without quotes or braces: what it means may depend on what follows."""

    def within(self, start: int, end: int) -> "Reader":
        """Another reader of a stretch of the same text."""
        return Reader(self.text, start, end, self.notes, self.read_program, self.outer)

    def decoded(self, text: str, span: Span) -> "Reader":
        """Another reader, of text that was decoded from what stands at `span`."""
        return Reader(text, 0, len(text), self.notes, self.read_program, span)

    def span(self, start: int, end: int) -> Span:
        return self.outer or (start, end)

    def fail(self, reason: str, start: int | None = None, end: int | None = None) -> NoReturn:
        begin = self.position if start is None else start
        raise UnparsableError(reason, self.span(begin, min(begin + 1, self.end) if end is None else end))

    def fail_at_token(self) -> NoReturn:
        """Refuse what stands at the cursor, where something else had to stand."""
        if self.position >= self.end:
            self.fail("the text ends where something is missing")
        match = _TOKEN.match(self.text, self.position, self.end)
        end = match.end() if match else self.position + 1
        self.fail(f"unexpected {self.text[self.position : end]!r}", self.position, end)

    def require_bash(self, construct: str, start: int | None = None) -> None:
        """Refuse a construct that bash reads otherwise than other shells do, where another may be the one to run."""
        if self.notes.posix:
            self.fail(f"{construct}, which not every sh reads alike; run it with bash -c", start)

    def enter(self) -> None:
        self.notes.count_command()
        self.notes.count_command()
        self.notes.depth += 1
        if self.notes.depth > MAX_NESTING:
            raise BoundExceededError(f"more than {MAX_NESTING} levels of nesting (at character {self.position})")

    def leave(self) -> None:
        self.notes.depth -= 1

    def at(self, text: str) -> bool:
        return self.text.startswith(text, self.position, self.end)

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.position] if self.position < self.end else ""

    def skip_blanks(self) -> None:
        """Skip blanks, continuation lines and a comment, between two tokens."""
        if self.peek() not in _MAY_SKIP:
            return
        position = self._skip_spaces(self.position)
        while self.text.startswith("\\\n", position, self.end):
            self.notes.count_pieces(1)
            self.masks.append(Mask(position, position + 2, " "))
            position = self._skip_spaces(position + 2)
        if position < self.end and self.text[position] == "#":
            newline = self.text.find("\n", position, self.end)
            position = self.end if newline < 0 else newline
        self.position = position

    def _skip_spaces(self, position: int) -> int:
        match = _BLANKS.match(self.text, position, self.end)
        return match.end() if match else position
