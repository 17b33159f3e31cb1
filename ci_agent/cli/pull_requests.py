"""Whose rules a run follows that looks at a pull request: not those that the pull request brings along."""

import os
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from ci_agent.ci_services.environment import base_branch, is_pull_request, may_hold_a_proposal
from ci_agent.cli.destinations import RESULTS
from ci_agent.cli.options import given_config
from ci_agent.cli.task_options import given_task
from ci_agent.errors import ConfigurationError
from ci_agent.git_files import find_commit, is_git_name, names_checkout
from ci_agent.policy.decide import Policy
from ci_agent.workspace import open_workspace, way

_STEERING: Final = {
    "prompt_file": "--prompt-file",
    "system_file": "--system-file",
    "append_system_file": "--append-system-file",
    "output_schema": "--output-schema",
    "models_file": "--models-file",
    "ca_file": "--ca-file",
}
"""Options whose files say what the run does, what it may cost and whom it trusts, by their parameters' names."""

_NOT_FROM_GIT: Final = {"ca_file"}


def refuse_flags_of_a_pull_request(flags: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Raise ConfigurationError when the job is a pull request's and its checkout brings what says what the run may do,
    or does: whoever opens the pull request would say it. To be called before anything is made.

    That is the task, the config file, the files of _STEERING, and each link on the way to one of them. Files that are
    shown as data may come from the checkout, but no link of it may lead to them, nor to a result.
    """
    checkouts = _checkouts(open_workspace(flags["workspace"]).root, environment)
    if not checkouts:
        return
    _refuse_rules(_rules(flags["trust_head"]), checkouts, environment)
    if not flags["trust_head"]:
        _refuse_steering(flags, checkouts, environment)
        _refuse_links_out(_shown(flags), "shown to the model", checkouts)
        _refuse_links_out(_written(flags), "written", checkouts)


def refuse_policy_of_a_pull_request(policy: Policy, *, trust_head: bool, environment: Mapping[str, str]) -> None:
    """The same for the policy, with all that it extends and each link on the way to it."""
    if not trust_head:
        source = policy.source
        names = (*((source.name,) if is_git_name(source.name) else ()), *source.files, *source.links)
        _refuse_rules(names, _checkouts(policy.site.workspace.root, environment), environment)


def _checkouts(root: Path, environment: Mapping[str, str]) -> set[Path]:
    """The folders in which what the pull request brings lies; none where nobody proposes anything."""
    repositories = {folder for top in (root, Path.cwd()) for folder in _repositories(top)[-1:]}
    return {root, *repositories} if _looks_at_a_proposal(environment, repositories) else set()


def _refuse_rules(names: Iterable[str], checkouts: Collection[Path], environment: Mapping[str, str]) -> None:
    for name in names:
        if _is_of_the_head(name, checkouts):
            raise _refusal(name, "say what the run may do", environment)


def _looks_at_a_proposal(environment: Mapping[str, str], repositories: Collection[Path]) -> bool:
    if is_pull_request(environment):
        return True
    base = environment.get("GITHUB_SHA")
    return may_hold_a_proposal(environment) and any(_commit_of(folder) != base for folder in repositories)


def _commit_of(folder: Path) -> str | None:
    """What is checked out there; None: git does not say."""
    try:
        return find_commit("HEAD", folder, os.environ)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _is_of_the_head(name: str, checkouts: Collection[Path]) -> bool:
    if is_git_name(name) and not names_checkout(name):
        _require_one_repository(name)
        return False
    return is_git_name(name) or any(_leads_through(name, folder) for folder in checkouts)


def _refuse_steering(flags: Mapping[str, Any], checkouts: Collection[Path], environment: Mapping[str, str]) -> None:
    for parameter, flag in _STEERING.items():
        name = flags[parameter]
        if name is None or name == "-" or not _is_of_the_head(name, checkouts):
            continue
        if parameter in _NOT_FROM_GIT:
            raise ConfigurationError(
                f"{flag} {name!r} is a file of the pull request that this run is about, so its author would say whom "
                f"the run trusts with its key: keep it outside of the checkout, or say --trust-head"
            )
        raise _refusal(f"{flag} {name}", "steer the run", environment)


def _refuse_links_out(names: Iterable[str], happens: str, checkouts: Collection[Path]) -> None:
    for name in names:
        if _leads_out(name, checkouts):
            raise ConfigurationError(
                f"{name!r} leads out of the checkout of the pull request by a link that its author has made: whatever "
                f"it leads to would be {happens}. Name the file itself, or say --trust-head"
            )


def _written(flags: Mapping[str, Any]) -> Iterator[str]:
    yield from (flags[name] for name in (*RESULTS, "spill_dir", "state_dir", "transcript_dir") if flags[name])
    yield from (pair.partition("=")[2] for pair in flags["report"])


def _shown(flags: Mapping[str, Any]) -> Iterator[str]:
    """Files whose text the model gets as data."""
    task = given_task()
    yield from flags["context_file"]
    yield from (pair.partition("=")[2] for pair in flags["input_files"])
    yield from () if task is None else (*task.context_files, *flags["prompt"])
    if flags["agents_md"]:
        yield os.path.join(flags["workspace"], "AGENTS.md")


def _leads_out(name: str, checkouts: Collection[Path]) -> bool:
    """Whether the way of a file goes through a checkout and ends outside of all."""
    if is_git_name(name):
        return False
    *passed, end = _way(name)
    return any(_lies_in(place, checkouts) for place in passed) and not _lies_in(end, checkouts)


def _lies_in(place: Path, folders: Iterable[Path]) -> bool:
    return any(place.is_relative_to(folder) and place != folder for folder in folders)


def _rules(trust_head: bool) -> Iterator[str]:
    """What says what the run may do, but for what the person trusts. A config file cannot ask for trust in itself."""
    config, task = given_config(), given_task()
    asked_by = click.get_current_context().get_parameter_source("trust_head")
    if config is not None and (not trust_head or asked_by is ParameterSource.DEFAULT_MAP):
        yield os.path.abspath(config)
    if not trust_head and task is not None:
        yield task.file


def _repositories(folder: Path) -> list[Path]:
    """Those that a folder lies in, the innermost first. No commit can hold a `.git`."""
    return [above for above in (folder, *folder.parents) if os.path.lexists(above / ".git")]


def _leads_through(path: str, folder: Path) -> bool:
    return any(place.is_relative_to(folder) for place in _way(path))


def _way(name: str) -> list[Path]:
    try:
        return [Path(place) for place in way(os.getcwd(), name)]
    except ValueError as error:
        raise ConfigurationError(f"nobody can tell where {name!r} leads: {error}. Name the file itself") from error


def _require_one_repository(name: str) -> None:
    """A pull request can make any folder a submodule, and so a repository in which all revisions are its author's."""
    if len(_repositories(Path.cwd())) > 1:
        raise ConfigurationError(
            f"{name!r} would be taken from a repository that lies in another, as a submodule does: run ci-agent "
            f"in the outer one, or say --trust-head"
        )


def _refusal(name: str, does: str, environment: Mapping[str, str]) -> ConfigurationError:
    base = base_branch(environment) or "main"
    return ConfigurationError(
        f"{name!r} is a file of the pull request that this run is about, so its author would {does}: take it from the "
        f"base with git:origin/{base}:PATH, or say --trust-head"
    )
