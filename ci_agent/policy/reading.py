"""One shell call while it is read: what may still be spent, and what the text around a command says about it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.facts import Origin, Span, UnknownFact
from ci_agent.policy.file_facts import Place
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.policy.shell.reader import MAX_COMMANDS
from ci_agent.policy.shell.trail import MAX_WORDS
from ci_agent.policy.site import Site
from ci_agent.policy.words import Word

MAX_DEPTH: Final = 16
"""Commands inside commands, scripts inside scripts."""


@dataclass(slots=True)
class Reading:
    site: Site
    budget: DiskBudget = field(default_factory=DiskBudget)
    commands: int = MAX_COMMANDS
    words: int = MAX_WORDS

    def spend_command(self, depth: int, words: int) -> None:
        self.commands -= 1
        self.words -= words
        if self.commands < 0:
            raise BoundExceededError(f"more than {MAX_COMMANDS} commands would run")
        if self.words < 0:
            raise BoundExceededError(f"the commands that would run have more than {MAX_WORDS} words")
        if depth > MAX_DEPTH:
            raise BoundExceededError(f"commands are nested more than {MAX_DEPTH} levels deep")


@dataclass(frozen=True, slots=True)
class Scene:
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

    def span(self, span: Span) -> Span:
        return self.within or span

    def place(self, reading: Reading, span: Span) -> Place:
        return Place(self.folder, reading.budget, "command", self.within or span)

    def unknown(self, why: str, span: Span) -> UnknownFact:
        return UnknownFact(why, argument="command", span=self.within or span)
