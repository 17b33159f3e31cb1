"""What an analysis of bash text yields: everything that bash might run or open, in no branch left out."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ci_agent.policy.words import Word

Dialect: TypeAlias = Literal["bash", "posix"]
"""`posix`: whatever shell `sh` is; only what all of them read alike is understood."""

RedirectMode: TypeAlias = Literal["read", "write", "append", "read_write"]


ListNames: TypeAlias = Callable[[Word, str], Sequence[str] | None]
"""The names that a glob becomes now in a folder, as `Command.folder` has it; None when they cannot be told."""


class Question(NamedTuple):
    """What a command prints that the disk tells: the branch that is checked out (as git names it, or shortened where
    nothing else is called so), the top of the working tree, a version or a name in a file."""

    about: Literal["branch", "short branch", "top", "version", "name"]
    file: str = ""
    made: tuple[str, ...] = ()
    """Branches that the text has checked out anew before."""


Answer: TypeAlias = Callable[[Question, str], Sequence[str]]
"""Every text that may be printed now in a folder; empty when that cannot be told."""


IsAbsent: TypeAlias = Callable[[str], bool]
"""Whether nothing is at an absolute path, since nothing has even its first name."""


class Disk(NamedTuple):
    """What is looked up while a text is followed. The names and answers are those at the time of the decision."""

    list_names: ListNames
    answer: Answer
    is_absent: IsAbsent


class Assignment(NamedTuple):
    """`NAME=value`, before a command or alone."""

    name: str
    value: Word
    span: tuple[int, int]


class Redirect(NamedTuple):
    """A file that the shell opens. Descriptor duplications, here-documents and here-strings open none."""

    mode: RedirectMode
    target: Word
    span: tuple[int, int]
    is_input: bool = False
    """The file is read in place of standard input."""


class Command(NamedTuple):
    """One simple command, wherever it stands: operators, groups, loops, branches, functions, substitutions."""

    words: tuple[Word, ...]
    """The name and the arguments, words after redirections included; empty for redirections or assignments alone."""
    assignments: tuple[Assignment, ...]
    redirects: tuple[Redirect, ...]
    folder: str | None
    """Where it runs, after tracked `cd`s: a path as written, relative to where the program starts (`""`: there);
    None: not known."""
    span: tuple[int, int]
    function: bool = False
    """The name is a function defined in the same text, whose body is among the commands."""
    reads_from: int | None = None
    """Index of the command whose output, and nothing else, this one reads through a pipe; None: another input."""


class LineLoop(NamedTuple):
    """A loop that has a line of what a command prints in each round, as long as its own commands leave them to it."""

    printer: int
    """The index of the command that prints the lines."""
    start: int
    end: int
    """Between these indexes are the commands of the body."""


class ShellProgram(NamedTuple):
    commands: tuple[Command, ...]
    """Also those with redirections or assignments alone, and compound commands' redirections (no words)."""
    loops: tuple[LineLoop, ...] = ()


class UnparsableError(Exception):
    """The text cannot be understood as a whole; `reason` is one line, `span` the place in characters."""

    def __init__(self, reason: str, span: tuple[int, int]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


class BoundExceededError(Exception):
    """The text exceeds a bound (size, nesting, number of commands); the message says which."""
