"""One shell call while it is read: what may still be spent, and what the text around a command says about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.effects import UrlUse
from ci_agent.policy.facts import Fact, Origin, Span, UnknownFact
from ci_agent.policy.gathering.answers import Asked
from ci_agent.policy.gathering.file_facts import Place
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.shell.program import BoundExceededError, Dialect
from ci_agent.policy.shell.reader import MAX_COMMANDS
from ci_agent.policy.shell.trail import MAX_WORDS
from ci_agent.policy.words import Word

MAX_CHARACTERS: Final = 32 * 1024
"""Of the words of all commands; what a here-document holds is none of them."""

_COMMAND: Final = 160
"""A command takes as long as to see this many entries of a folder."""

_INNER: Final = 25
"""A command that another one starts, or a script in one, takes as long as to see this many more."""

_REQUEST: Final = 30
"""To read an address, and to find who grants it, takes as long as to see this many."""
_OF_SIX: Final = 15
"""And this many more where the host may be an address of IP's version 6."""

_COMBINATION: Final = 50
"""To look at one more combination of a loop's values takes as long as to see this many."""

MAX_DEPTH: Final = 16
"""Commands inside commands, scripts inside scripts."""


@dataclass(slots=True)
class Reading:
    site: Site
    budget: DiskBudget
    commands: int = MAX_COMMANDS
    words: int = MAX_WORDS
    characters: int = MAX_CHARACTERS
    folders: dict[tuple[Path | None, str | None], tuple[Path | None, str | None]] = field(default_factory=dict)
    """Where `cd` has led, by where it started and what it was told."""
    packages: list[Path] | None = None
    """Folders that hold a package, when that has been asked."""
    asks: bool = True
    """Whether it may be looked up what some commands print."""
    asked: list[Asked] = field(default_factory=list)
    """What was looked up of that."""
    facts: list[Fact] = field(default_factory=list)
    """What the call would do, as far as it has been read."""

    def spend_command(self, depth: int, words: Sequence[Word], around: Sequence[Word] = ()) -> None:
        """Each command that would run counts, its words, and a part of those of the command that starts it."""
        self.commands -= 1
        self.budget.spend_entries(_COMMAND + _INNER * (depth > 0))
        self.words -= len(words) + len(around) // 16
        self.characters -= len("".join([word.text for word in words]))
        if self.commands < 0:
            raise BoundExceededError(f"more than {MAX_COMMANDS} commands would run")
        if self.words < 0:
            raise BoundExceededError(f"the commands that would run have more than {MAX_WORDS} words")
        if self.characters < 0:
            raise BoundExceededError(
                f"the words have more than {MAX_CHARACTERS} characters: put so much text in a file or a here-document"
            )
        if depth > MAX_DEPTH:
            raise BoundExceededError(f"commands are nested more than {MAX_DEPTH} levels deep")

    def spend_run(self, requests: Sequence[UrlUse], *, tried: int) -> None:
        """Of the combinations that were tried, the first has been paid for with the command."""
        of_six = sum("[" in use.url.text for use in requests)
        self.budget.spend_entries(_REQUEST * len(requests) + _OF_SIX * of_six + _COMBINATION * (tried - 1))


class Scene(NamedTuple):
    folder: Path | None
    """Where it starts; None: not known."""
    inherited: tuple[str, ...] = ()
    """Names of variables that it is given, by itself or by a command around it."""
    origin: Origin | None = None
    within: Span | None = None
    """Where the text stands in the argument, when it is not the argument itself."""
    depth: int = 0
    input_names: tuple[Word, ...] | None = None
    """The lines on standard input are paths of files at or beneath these; None: nothing is known of them."""
    dialect: Dialect = "bash"
    """What the shell reads that the command belongs to."""

    def of_command(
        self, folder: Path | None, variables: tuple[str, ...], input_names: tuple[Word, ...] | None
    ) -> "Scene":
        """For one command in the text. Made for each: `replace` takes longer."""
        inherited = self.inherited + variables
        return Scene(folder, inherited, self.origin, self.within, self.depth, input_names, self.dialect)

    def span(self, span: Span) -> Span:
        return self.within or span

    def place(self, reading: Reading, span: Span) -> Place:
        return Place(self.folder, reading.budget, "command", self.within or span)

    def unknown(self, why: str, span: Span) -> UnknownFact:
        return UnknownFact(why, argument="command", span=self.within or span)
