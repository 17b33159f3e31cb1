"""What the variables of a CI service tell: which one it is, and which files speak to its runner."""

import os
from collections.abc import Mapping
from pathlib import Path

from ci_agent.transcript.run_facts import CIFacts


def detect_ci(environment: Mapping[str, str]) -> CIFacts | None:
    """The service, the repository and the run's page; None outside of CI.

    Variables: GitHub's "default environment variables", GitLab's "predefined variables"; `CI` is what the others
    have in common.
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        return _github(environment)
    if environment.get("GITLAB_CI") == "true":
        return CIFacts("gitlab", environment.get("CI_PROJECT_PATH"), environment.get("CI_JOB_URL"))
    return CIFacts("unknown") if environment.get("CI") in {"true", "1"} else None


def _github(environment: Mapping[str, str]) -> CIFacts:
    repository, run = environment.get("GITHUB_REPOSITORY"), environment.get("GITHUB_RUN_ID")
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    url = f"{server}/{repository}/actions/runs/{run}" if repository and run else None
    return CIFacts("github", repository, url)


def is_pull_request(environment: Mapping[str, str]) -> bool:
    """Whether the checkout is what somebody proposes, as GitHub, GitLab, Azure, Buildkite and Jenkins tell."""
    return (
        environment.get("GITHUB_EVENT_NAME", "").startswith("pull_request")
        or bool(environment.get("CI_MERGE_REQUEST_IID") or environment.get("CHANGE_ID"))
        or environment.get("BUILD_REASON") == "PullRequest"
        or environment.get("BUILDKITE_PULL_REQUEST", "false") != "false"
    )


_COMMAND_FILES = (
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_ARTIFACTS",
)


def runner_command_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The files by which a step commands GitHub's runner, and the folder that holds them; resolved."""
    files = [environment[name] for name in _COMMAND_FILES if environment.get(name)]
    if environment.get("RUNNER_TEMP"):
        files.append(os.path.join(environment["RUNNER_TEMP"], "_runner_file_commands"))
    return tuple(map(real_path, files))


def real_path(path: str | Path) -> Path:
    """Absolute, and free of symlinks as far as it exists."""
    return Path(os.path.realpath(path))
