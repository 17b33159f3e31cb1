"""Whose rules a run follows that looks at a pull request: not those that the pull request brings along."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from click.core import ParameterSource

from ci_agent.ci_services.environment import base_branch, is_pull_request
from ci_agent.cli.options import given_config
from ci_agent.cli.task_options import given_task
from ci_agent.errors import ConfigurationError
from ci_agent.git_files import is_git_name, names_checkout
from ci_agent.policy.decide import Policy
from ci_agent.policy.rules import PolicySource
from ci_agent.workspace import way


def refuse_rules_of_a_pull_request(policy: Policy, environment: Mapping[str, str], *, trust_head: bool) -> None:
    """Raise ConfigurationError when the job is a pull request's and its checkout brings what says what the run may do:
    whoever opens the pull request would say it.

    That is the policy with all that it extends, the task, the config file, and each link on the way to one of them.
    """
    if not is_pull_request(environment):
        return
    checkouts = {folder for top in (policy.site.workspace.root, Path.cwd()) for folder in _repositories(top)[-1:]}
    checkouts.add(policy.site.workspace.root)
    for name in _rules(policy.source, trust_head):
        if is_git_name(name) and not names_checkout(name):
            _require_one_repository(name)
        elif is_git_name(name) or any(_leads_through(name, folder) for folder in checkouts):
            raise _refusal(name, environment)


def _rules(source: PolicySource, trust_head: bool) -> Iterator[str]:
    """What says what the run may do, but for what the person trusts. A config file cannot ask for trust in itself."""
    config, task = given_config(), given_task()
    asked_by = click.get_current_context().get_parameter_source("trust_head")
    if config is not None and (not trust_head or asked_by is ParameterSource.DEFAULT_MAP):
        yield os.path.abspath(config)
    if not trust_head:
        yield from (source.name,) if is_git_name(source.name) else ()
        yield from (*source.files, *source.links)
        yield from () if task is None else (task.file,)


def _repositories(folder: Path) -> list[Path]:
    """Those that a folder lies in, the innermost first. No commit can hold a `.git`."""
    return [above for above in (folder, *folder.parents) if os.path.lexists(above / ".git")]


def _leads_through(path: str, folder: Path) -> bool:
    return any(Path(place).is_relative_to(folder) for place in way(os.getcwd(), path))


def _require_one_repository(name: str) -> None:
    """A pull request can make any folder a submodule, and so a repository in which all revisions are its author's."""
    if len(_repositories(Path.cwd())) > 1:
        raise ConfigurationError(
            f"{name!r} would be taken from a repository that lies in another, as a submodule does: run ci-agent "
            f"in the outer one, or say --trust-head"
        )


def _refusal(name: str, environment: Mapping[str, str]) -> ConfigurationError:
    base = base_branch(environment) or "main"
    return ConfigurationError(
        f"{name!r} is a file of the pull request that this run is about, so its author would say what the run "
        f"may do: take it from the base with git:origin/{base}:PATH, or say --trust-head"
    )
