"""What the commands of a run are started with: their environment, their sandbox, their folder for temporary files."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ci_agent.confined_commands import closed_where_commands_write, create_confine
from ci_agent.policy.decide import Policy
from ci_agent.precautions.repository_programs import NO_PROGRAMS, find_repository_programs
from ci_agent.process import Processes
from ci_agent.sandbox.confinement import Confine
from ci_agent.sandbox.private_folder import PrivateFolder
from ci_agent.sandbox.sandbox import Requested, Sandbox, find_sandbox
from ci_agent.workspace import Workspace, real_path


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandParts:
    environment: Mapping[str, str]
    repository_programs: tuple[str, ...]
    """Keys of git's configuration that do not count for commands."""
    sandbox: Sandbox
    temporary: PrivateFolder
    """For temporary files; whoever ends the run removes it."""
    confine: Confine
    closed: tuple[Path, ...]
    """What no command may read although one might move it."""


def build_command_parts(
    policy: Policy,
    environment: Mapping[str, str],
    processes: Processes,
    requested: Requested,
    secret_files: Iterable[Path],
) -> CommandParts:
    """Of programs only git is started, to say what the repository's configuration names, and bubblewrap is tried."""
    workspace = policy.site.workspace
    programs = NO_PROGRAMS
    if policy.can_allow("bash"):
        programs = find_repository_programs([workspace.root], outside_alone(environment, workspace), processes)
    environment = programs.environment(environment)
    sandbox = find_sandbox(requested, search_path_outside(environment["PATH"], workspace))
    temporary = PrivateFolder(processes.leave_folder)
    git_settings = partial(_settings_for_git, environment, workspace, processes)
    return CommandParts(
        environment=environment,
        repository_programs=tuple(programs.instead),
        sandbox=sandbox,
        temporary=temporary,
        confine=create_confine(policy, sandbox, temporary, secret_files, git_settings=git_settings),
        closed=tuple(closed_where_commands_write(policy, sandbox, secret_files)),
    )


def _settings_for_git(
    environment: Mapping[str, str], workspace: Workspace, processes: Processes, folders: Iterable[Path]
) -> Mapping[str, str]:
    """For the repositories as they are when a command is about to run."""
    asked = outside_alone(environment, workspace)
    return find_repository_programs(folders, asked, processes).environment(environment)


def outside_alone(environment: Mapping[str, str], workspace: Workspace) -> Mapping[str, str]:
    """For what ci-agent itself starts, which no sandbox holds: no program that a tool may have written."""
    return {**environment, "PATH": search_path_outside(environment["PATH"], workspace)}


def search_path_outside(search_path: str, workspace: Workspace) -> str:
    """A PATH without what the workspace has put on it."""
    folders = search_path.split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not workspace.contains(real_path(folder)))
