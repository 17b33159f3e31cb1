"""Paths that lead nowhere: `"$(git rev-parse --show-toplevel)/src"` is `/src` where git prints nothing."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.facts import Fact, files_in
from ci_agent.policy.gathering.open_paths import may_meet
from ci_agent.policy.words import Word

_LOOK: Final = 10
"""To ask for a file takes as long as to see so many entries of a folder."""


def is_absent(path: str, budget: DiskBudget) -> bool:
    """Whether nothing has the first name of an absolute path. It is noted, for the call may make what has."""
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or not names or names[0] in (".", "..") or "\0" in path:
        return False
    first = Path("/", names[0])
    budget.spend_entries(_LOOK)
    if os.path.lexists(first):
        return False
    budget.absent.add(first)
    return True


def is_made(absent: set[Path], facts: Sequence[Fact]) -> bool:
    """Whether the call may put something where nothing is."""
    written = [file for file in files_in(facts) if file.effect == "write"] if absent else []
    return any(
        file.is_open or any(may_meet(place, first) for place in _places(file.path, file.written) for first in absent)
        for file in written
    )


def _places(*paths: Path) -> Iterator[Path]:
    """The folder right beneath the root that each is in, or the root itself, where anything may be put."""
    return (Path(*path.parts[:2]) for path in paths)


def unless_absent(word: Word, effect: FileEffect, budget: DiskBudget) -> Word | None:
    """The word without values that lead nowhere, where only what is there can be concerned; None: none is left."""
    if effect == "write" or not (word.choices or word.failed):
        return word
    choices = word.choices or (word,)
    left = tuple(choice for choice in choices if not (choice.failed and is_absent(choice.text, budget)))
    if len(left) == len(choices):
        return word
    return word._replace(choices=left) if word.choices and left else None


def as_program(word: Word, budget: DiskBudget) -> Word:
    """What leads nowhere cannot be run: the one program that is left, or the word as it was."""
    left = unless_absent(word, "read", budget)
    return word if left is None or len(left.choices) != 1 else left.choices[0]._replace(span=word.span)
