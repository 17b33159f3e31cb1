"""Whose rules a run follows that looks at a pull request: not those that the pull request brings along."""

from collections.abc import Mapping
from pathlib import Path

from ci_agent.ci_environment import is_pull_request, real_path
from ci_agent.errors import ConfigurationError
from ci_agent.git_files import is_git_name
from ci_agent.policy.decide import Policy
from ci_agent.tasks import Task


def refuse_rules_of_a_pull_request(policy: Policy, task: Task | None, environment: Mapping[str, str]) -> None:
    """Raise ConfigurationError when the job is a pull request's and its policy, a part of it, or the task lies in the
    workspace: whoever opens the pull request would say what its run may do."""
    if not is_pull_request(environment):
        return
    named = [] if task is None or is_git_name(task.file) else [task.file]
    for file in (*map(str, policy.source.files), *named):
        if policy.site.workspace.contains(real_path(Path(file))):
            base = (
                environment.get("GITHUB_BASE_REF") or environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or "main"
            )
            raise ConfigurationError(
                f"{file!r} is a file of the pull request that this run is about, so its author would say what the run "
                f"may do: take it from the base with git:origin/{base}:PATH, or say --trust-head"
            )
