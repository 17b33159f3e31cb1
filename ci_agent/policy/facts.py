"""What a call would do, as facts: programs run, files and hosts reached, tools used; or that it cannot be known."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ci_agent.hooks import DecisionCode
from ci_agent.json_types import JsonObject
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.matchers.open_names import OPEN
from ci_agent.policy.matchers.reach import Names, fold_names, names_of
from ci_agent.policy.protected import FREE, Guarded
from ci_agent.policy.words import EVERYTHING, Selection, Word
from ci_agent.urls import Url

Span: TypeAlias = tuple[int, int]
"""Where in an argument, in characters: start and end."""


Spellings: TypeAlias = tuple[str, ...]
"""Every form in which a rule may write one word of a command."""


class FileFact(NamedTuple):
    """A file or folder that is read, listed, written or deleted."""

    effect: FileEffect
    path: Path
    """Resolved, but for the last name of what is deleted: a link is deleted, not what it leads to."""
    written: Path
    """As it was written, made absolute; links not followed."""
    is_folder: bool = False
    """A folder is there now."""
    recursive: bool = False
    """All beneath it is meant too, as far as `selection` says."""
    guarded: Guarded = FREE
    argument: str | None = None
    span: Span | None = None
    selection: Selection = EVERYTHING
    tracked: bool = False
    """The top of a working tree: of what lies beneath, that is meant which git tracks."""
    touched: tuple[Path, ...] | None = None
    """Of what is tracked, only what differs from the index is meant, or lies at or beneath one of these, which the call
    changes; None: all."""
    landing: tuple[Path, Path] | None = None
    """What is copied or moved here, and the operand that says where to: the path itself, or a folder that it is in."""

    @property
    def is_open(self) -> bool:
        """Whether it stands for all files whose names differ in certain digits alone."""
        return OPEN in str(self.path)

    @property
    def shown_as_written(self) -> str:
        return str(self.written).replace(OPEN, "*")

    @property
    def shown(self) -> str:
        """The path as people see it."""
        return str(self.path).replace(OPEN, "*")

    @property
    def names(self) -> Names:
        return names_of(self.path)

    @property
    def denied_names(self) -> tuple[Names, ...]:
        """The folded paths that a deny rule looks at: where it leads, and how it was written."""
        folded = fold_names(self.names)
        if self.written is self.path:
            return (folded,)
        written = fold_names(names_of(self.written))
        return (folded,) if written == folded else (folded, written)


class NetFact(NamedTuple):
    """A request to a host."""

    url: Url
    method: str
    argument: str | None = None
    span: Span | None = None


class Origin(NamedTuple):
    """The command that starts another one, and which of its words says so."""

    command: "ExecFact"
    position: int | None
    """Index of the inner command's name among the words; None: it stands in none of them."""
    is_script: bool = False
    """The word at `position` is shell text that holds the inner command."""


class ExecFact(NamedTuple):
    """A program that is run, with all that its profile knows of this run."""

    words: tuple[Word, ...]
    assignments: tuple[str, ...]
    """Names of the variables that are set for it."""
    folder: Path
    files: tuple[FileFact, ...]
    """Files of its words and of its input redirections."""
    requests: tuple[NetFact, ...]
    hazards: tuple[tuple[int, str], ...]
    """Words that only a pattern which spells them covers, and what they do."""
    looked_through: frozenset[int]
    """Words that a pattern need not name."""
    needs_rule: bool
    """False for a wrapper whose inner command needs one instead."""
    has_open_glob: bool = False
    """A word began as a glob that becomes whatever names there are when it runs."""
    origin: Origin | None = None
    span: Span | None = None
    perhaps: tuple[FileFact, ...] = ()
    """Files that words happen to name of which nobody knows whether they are files: no rule need grant them, but one
    that forbids reading them forbids the command."""
    located: tuple[str, ...] | None = None
    """For a program that is spelled as a path: how an allow rule may spell it, seen from the workspace; None: as it
    was written."""
    relocated: tuple[tuple[int, tuple[Spellings, ...]], ...] = ()
    """For words that name a file whose code runs, seen from another folder than the workspace: how a rule may spell
    the word, for each value that it may have."""

    @property
    def program_spellings(self) -> tuple[str, ...]:
        return (self.words[0].text,) if self.located is None else self.located


class ToolFact(NamedTuple):
    """A call of a tool other than the shell."""

    name: str
    arguments: JsonObject
    files: tuple[FileFact, ...] = ()
    requests: tuple[NetFact, ...] = ()


class UnknownFact(NamedTuple):
    """Something that the call would do and nobody can know."""

    why: str
    code: DecisionCode = "unparsable"
    argument: str | None = None
    span: Span | None = None


Fact: TypeAlias = ExecFact | ToolFact | FileFact | UnknownFact
"""What one rule must grant as a whole. A file fact that stands alone is a redirection of the shell."""


def files_in(facts: Iterable[Fact]) -> list[FileFact]:
    """The files of a shell call: those of its commands, and those that it redirects from or to."""
    files: list[FileFact] = []
    for fact in facts:
        if isinstance(fact, ExecFact):
            files += fact.files
        elif isinstance(fact, FileFact):
            files.append(fact)
    return files


def possible_files_in(facts: Iterable[Fact]) -> list[FileFact]:
    """The files of a shell call, and those that it may name."""
    files: list[FileFact] = []
    for fact in facts:
        files += possible_files_of(fact)
    return files


def possible_files_of(fact: Fact) -> tuple[FileFact, ...]:
    """The files of a part of a shell call, and those that it may name."""
    if isinstance(fact, ExecFact):
        return fact.files + fact.perhaps
    return (fact,) if isinstance(fact, FileFact) else ()
