"""Where calls are decided: the workspace, what lies around it, and the readers of shell text and of programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ci_agent.policy.effects import Effects
from ci_agent.policy.protected import Surroundings
from ci_agent.policy.shell.program import Dialect, Disk, ShellProgram
from ci_agent.policy.words import Word
from ci_agent.workspace import Workspace


class Analyse(Protocol):
    """Shell text to everything that it might run or open; raises UnparsableError or BoundExceededError.

    `environment` holds the variables whose values are certain where the text begins. `disk` tells which
    folders a loop enters, and what some commands print.
    """

    def __call__(
        self, text: str, environment: Mapping[str, str], dialect: Dialect, disk: Disk = ...
    ) -> ShellProgram: ...


class Interpret(Protocol):
    """The words of a simple command to what running them would do.

    `input_names`: what is known of the lines on standard input, for `xargs`: paths of files at or beneath these.
    """

    def __call__(self, words: tuple[Word, ...], *, input_names: tuple[Word, ...] | None = None) -> Effects: ...


@dataclass(frozen=True, slots=True)
class Site:
    workspace: Workspace
    around: Surroundings
    environment: Mapping[str, str]
    """What a call's shell certainly has when it starts."""
    analyse: Analyse
    interpret: Interpret
