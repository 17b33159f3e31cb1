"""Of what `git diff` prints: which files the call itself may change before, or make differ from the index."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci_agent.policy.facts import ExecFact, Fact, possible_files_in
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.stale_paths import base_name
from ci_agent.policy.programs.told_writes import GIT_TELLING
from ci_agent.policy.shell.static_words import word_set

_DIRECTING: Final = word_set("GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_CONFIG GIT_DIFF_OPTS")
_KEEP_INDEX: Final = GIT_TELLING | {"add", "branch", "commit", "fetch", "push", "tag"}
"""Git's commands that leave every file as it is, and enter none in the index but as it is."""


def with_touched_files(site: Site, facts: Sequence[Fact]) -> Sequence[Fact]:
    """The facts, where only what differs from the index is meant, with what the call changes of it."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    if not any(file.touched is not None for command in commands for file in command.perhaps):
        return facts
    touched = (
        _touched(facts) if all(map(_leaves_index, commands)) and _DIRECTING.isdisjoint(site.around.exported) else None
    )
    return [_with(fact, touched) if isinstance(fact, ExecFact) else fact for fact in facts]


def _touched(facts: Sequence[Fact]) -> tuple[Path, ...] | None:
    """What is written or deleted; None when that is not certain."""
    others = [fact for fact in facts if not (isinstance(fact, ExecFact) and _restores(fact))]
    files = [file for file in possible_files_in(others) if file.effect in ("write", "delete")]
    if any(file.is_open for file in files):
        return None
    return tuple(dict.fromkeys(path for file in files for path in (file.path, file.written)))


def _leaves_index(command: ExecFact) -> bool:
    program, _, subcommand = base_name(command).partition(" ")
    return program != "git" or subcommand in _KEEP_INDEX or _restores(command)


def _restores(command: ExecFact) -> bool:
    """Whether it makes files as the index has them."""
    return any(file.effect == "write" and file.touched is not None for file in command.perhaps)


def _with(command: ExecFact, touched: tuple[Path, ...] | None) -> ExecFact:
    perhaps = tuple(file._replace(touched=touched) if file.touched is not None else file for file in command.perhaps)
    return command._replace(perhaps=perhaps)
