"""Programs that a repository's own configuration names: git would run them for harmless commands, so it does not."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ConfigurationError, ToolError
from ci_agent.precautions.git_folders import Repository, configuration_files, is_elsewhere, repositories_in_reach
from ci_agent.precautions.program_settings import included_path, instead_of, key_to_set, may_matter, runs_regardless
from ci_agent.process import Processes
from ci_agent.process.environment import with_git_settings

MAX_PROGRAMS: Final = 500
"""More do not fit into an environment; whoever writes so many into a configuration means no good."""

_LIST_WITHIN_S: Final = 10.0
_MAX_LIST_BYTES: Final = 4 << 20
_MAX_NAMES_BYTES: Final = 256 << 20
_MAX_FILES: Final = 5_000

_SUBMODULE: Final = "160000 "


@dataclass(frozen=True, slots=True)
class RepositoryPrograms:
    instead: Mapping[str, str]
    """Keys of a repository's configuration that name programs, each with what git shall read in their place."""

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment with git's settings for one command, which stand above those of every file, and which git
        hands on to the gits that it starts in submodules."""
        return with_git_settings(given, {key_to_set(key): value for key, value in self.instead.items()})


NO_PROGRAMS: Final = RepositoryPrograms({})


class _Git(NamedTuple):
    """How git is asked. It runs nothing to answer."""

    environment: Mapping[str, str]
    processes: Processes


def find_repository_programs(
    folders: Iterable[Path], environment: Mapping[str, str], processes: Processes
) -> RepositoryPrograms:
    """Of all repositories that git may use when it is started in one of these folders, as they are now.

    None outside of a repository, and where there is no git. ConfigurationError for what cannot be made harmless.
    """
    if shutil.which("git", path=environment.get("PATH", "")) is None:
        return NO_PROGRAMS
    git = _Git({**environment, "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"}, processes)
    instead: dict[str, str] = {}
    seen: set[Path] = set()
    for repository in repositories_in_reach(folders, lambda each: _submodules(each, git)):
        for key, value in _settings(repository, git, seen):
            if key == "core.worktree" and is_elsewhere(repository, value):
                raise ConfigurationError(
                    f"the repository {str(repository.folder)!r} says that its files are elsewhere, at {value!r} "
                    "(core.worktree)"
                )
            if runs_regardless(key):
                raise ConfigurationError(
                    f"the configuration of the repository {str(repository.folder)!r} names a program that nothing "
                    f"keeps git from running ({key}): take it out"
                )
            harmless = instead_of(key, value)
            if harmless is not None:
                instead[key] = harmless
        if len(instead) > MAX_PROGRAMS:
            raise ConfigurationError(
                f"the configuration of the repository {str(repository.folder)!r} names more than {MAX_PROGRAMS} "
                "programs: look through it"
            )
    return RepositoryPrograms(instead)


def _settings(repository: Repository, git: _Git, seen: set[Path]) -> Iterator[tuple[str, str]]:
    """Its own, and those of all that they include, on whatever condition; of those files alone in which one may matter
    here, and that have not been seen."""
    waiting = configuration_files(repository)
    while waiting:
        path = waiting.pop()
        if path in seen or not _may_matter(path):
            continue
        seen.add(path)
        if len(seen) > _MAX_FILES:
            raise ConfigurationError(f"git's configuration is in more than {_MAX_FILES:,} files here")
        for key, value in _list(path, git):
            included = included_path(key, value)
            if included is not None:
                waiting.append(path.parent / _expanded(included, git.environment))
            yield key, value


def _may_matter(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            data = file.read(_MAX_LIST_BYTES)
    except OSError:  # commands, which are of the same user, cannot read it either
        return False
    return len(data) == _MAX_LIST_BYTES or may_matter(data)


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    return environment.get("HOME", "") + path[1:] if path.startswith("~/") else os.path.expanduser(path)


def _list(path: Path, git: _Git) -> Iterator[tuple[str, str]]:
    command = ["git", "config", "--null", "--list", "--file", str(path)]
    for entry in _ask(command, Path("/"), _MAX_LIST_BYTES, git):
        key, _, value = entry.partition("\n")
        yield key, value


def _submodules(repository: Repository, git: _Git) -> list[str]:
    command = ["git", "--git-dir", str(repository.folder), "ls-files", "--stage", "-z"]
    entries = _ask(command, repository.folder, _MAX_NAMES_BYTES, git)
    return [entry.partition("\t")[2] for entry in entries if entry.startswith(_SUBMODULE)]


def _ask(command: list[str], folder: Path, max_bytes: int, git: _Git) -> list[str]:
    """The fields that it prints; none where what it reads is broken, for then git does as little for a command."""
    try:
        answer = git.processes.run(
            command,
            cwd=folder,
            env=git.environment,
            timeout_s=_LIST_WITHIN_S,
            cancel=CancelToken(),
            head_bytes=max_bytes,
            tail_bytes=0,
            separate_stderr=True,
        )
    except ToolError as error:
        raise ConfigurationError(f"git cannot be asked what a repository holds or says: {error}") from error
    if answer.exit_status == 0 and answer.output.is_complete:
        return os.fsdecode(answer.output.head).split("\0")[:-1]
    why = os.fsdecode(answer.stderr.head) if answer.stderr else ""
    if answer.exit_status is not None and answer.exit_status != 0 and why.startswith("fatal: "):
        return []
    raise ConfigurationError(f"git cannot list what a repository at {str(folder)!r} holds or says: {why.strip()}")
