"""What the variables of a CI service tell: which one it is, and which files speak to its runner."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from ci_agent.steering_names import RUNNER_COMMAND_FILES
from ci_agent.transcript.run_facts import CIFacts
from ci_agent.workspace import real_path

Environment = Mapping[str, str]


def detect_ci(environment: Environment) -> CIFacts | None:
    """The service, the repository and the run's page; None outside of CI.

    Of several the first in the table counts: a Jenkins may well run in a job of GitHub's.
    """
    for name, mark, value, facts in SERVICES:
        found = environment.get(mark, "").lower()
        if found and value in {found, None}:
            return CIFacts(name, *facts(environment))
    return CIFacts("unknown") if environment.get("CI") in {"true", "1"} else None


Facts = tuple[str | None, str | None]
"""Repository and address of the run's page."""


def _github(environment: Environment) -> Facts:
    repository, run = environment.get("GITHUB_REPOSITORY"), environment.get("GITHUB_RUN_ID")
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    return repository, f"{server}/{repository}/actions/runs/{run}" if repository and run else None


def _gitlab(environment: Environment) -> Facts:
    return environment.get("CI_PROJECT_PATH"), environment.get("CI_JOB_URL")


def _azure(environment: Environment) -> Facts:
    server, project, run = (
        environment.get(name) for name in ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "BUILD_BUILDID")
    )
    url = f"{server.rstrip('/')}/{quote(project)}/_build/results?buildId={run}" if server and project and run else None
    return environment.get("BUILD_REPOSITORY_NAME"), url


def _buildkite(environment: Environment) -> Facts:
    url, job = environment.get("BUILDKITE_BUILD_URL"), environment.get("BUILDKITE_JOB_ID")
    return repository_path(environment.get("BUILDKITE_REPO")), f"{url}#{job}" if url and job else url


def _circleci(environment: Environment) -> Facts:
    owner, name = environment.get("CIRCLE_PROJECT_USERNAME"), environment.get("CIRCLE_PROJECT_REPONAME")
    return f"{owner}/{name}" if owner and name else name, environment.get("CIRCLE_BUILD_URL")


def _bitbucket(environment: Environment) -> Facts:
    origin, number = environment.get("BITBUCKET_GIT_HTTP_ORIGIN"), environment.get("BITBUCKET_BUILD_NUMBER")
    url = f"{origin}/pipelines/results/{number}" if origin else None
    return environment.get("BITBUCKET_REPO_FULL_NAME"), url


def _jenkins(environment: Environment) -> Facts:
    return repository_path(environment.get("GIT_URL")), environment.get("BUILD_URL")


def _teamcity(environment: Environment) -> Facts:
    return None, environment.get("BUILD_URL")


SERVICES: Final[tuple[tuple[str, str, str | None, Callable[[Environment], Facts]], ...]] = (
    # "Default environment variables" of GitHub Actions.
    ("github", "GITHUB_ACTIONS", "true", _github),
    # "Predefined CI/CD variables" of GitLab.
    ("gitlab", "GITLAB_CI", "true", _gitlab),
    # "Predefined variables" of Azure Pipelines; TF_BUILD is `True`.
    ("azure", "TF_BUILD", "true", _azure),
    # "Environment variables" of Buildkite Pipelines.
    ("buildkite", "BUILDKITE", "true", _buildkite),
    # "Built-in environment variables" of CircleCI.
    ("circleci", "CIRCLECI", "true", _circleci),
    # "Variables and secrets" of Bitbucket Pipelines.
    ("bitbucket", "BITBUCKET_BUILD_NUMBER", None, _bitbucket),
    # "Using environment variables" of Jenkins' pipelines; GIT_URL is set by its git plugin.
    ("jenkins", "JENKINS_URL", None, _jenkins),
    # "Predefined build parameters" of TeamCity; BUILD_URL since 2019.2.
    ("teamcity", "TEAMCITY_VERSION", None, _teamcity),
)
"""Each service's name, the variable that marks it with its value in small letters (None: any), and its facts."""


def repository_path(url: str | None) -> str | None:
    """`acme/site` of an address that git takes, in any of its spellings, without who may be named in it; None: nothing
    in it looks like that."""
    if not url:
        return None
    try:
        path = urlsplit(url).path if "://" in url else url.partition(":")[2] or url
    except ValueError:
        return None
    parts = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part not in {"", ".", ".."}]
    return "/".join(parts) or None


def base_branch(environment: Environment) -> str | None:
    """The branch that a pull request is for; None where the service does not tell."""
    names = (environment.get(name) for name in _BASE_BRANCHES)
    return next((name.removeprefix("refs/heads/") for name in names if name), None)


_BASE_BRANCHES: Final = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME",  # GitLab, of a pull request on GitHub
    "SYSTEM_PULLREQUEST_TARGETBRANCH",  # Azure: refs/heads/main
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "CHANGE_TARGET",  # Jenkins, multibranch
    "DRONE_TARGET_BRANCH",
    "CI_COMMIT_TARGET_BRANCH",  # Woodpecker
    "ghprbTargetBranch",  # Jenkins, GitHub Pull Request Builder
    "gitlabTargetBranch",  # Jenkins, GitLab plugin
    "PULL_BASE_REF",  # Prow
    "CIRRUS_BASE_BRANCH",
    "BITRISEIO_GIT_BRANCH_DEST",
)


def is_pull_request(environment: Environment) -> bool:
    """Whether the checkout is what somebody proposes, as each of the services tells."""
    return (
        environment.get("GITHUB_EVENT_NAME", "").startswith("pull_request")
        or any(environment.get(name, "false").lower() not in _NONE for name in _PULL_REQUEST_MARKS)
        or environment.get("BUILD_REASON", "").lower() == "pullrequest"
        or environment.get("CI_PIPELINE_SOURCE") in {"merge_request_event", "external_pull_request_event"}
        or any(environment.get(name, "").startswith("pull_request") for name in _EVENT_NAMES)
        or environment.get("CODEBUILD_WEBHOOK_EVENT", "").startswith("PULL_REQUEST")
    )


def may_hold_a_proposal(environment: Environment) -> bool:
    """Whether this is a job of GitHub's for which the base is checked out, unless its workflow asks for something else:
    events that a pull request's author can bring about."""
    return environment.get("GITHUB_EVENT_NAME") in _ANSWERING_EVENTS


_NONE: Final = {"", "false"}

_PULL_REQUEST_MARKS: Final = (
    "CI_MERGE_REQUEST_IID",  # GitLab
    "CI_EXTERNAL_PULL_REQUEST_IID",  # GitLab, of a pull request on GitHub
    "CHANGE_ID",  # Jenkins, multibranch
    "ghprbPullId",  # Jenkins, GitHub Pull Request Builder
    "gitlabMergeRequestIid",  # Jenkins, GitLab plugin
    "SYSTEM_PULLREQUEST_PULLREQUESTID",  # Azure
    "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
    "BUILDKITE_PULL_REQUEST",  # false, or a number
    "CIRCLE_PULL_REQUEST",
    "CIRCLE_PULL_REQUESTS",
    "CIRCLE_PR_NUMBER",  # of forks alone
    "BITBUCKET_PR_ID",
    "DRONE_PULL_REQUEST",  # Harness, too
    "CI_COMMIT_PULL_REQUEST",  # Woodpecker
    "TRAVIS_PULL_REQUEST",  # false, or a number
    "APPVEYOR_PULL_REQUEST_NUMBER",
    "CIRRUS_PR",
    "SEMAPHORE_GIT_PR_NUMBER",
    "BITRISE_PULL_REQUEST",
    "CF_PULL_REQUEST_NUMBER",  # Codefresh
    "PULL_NUMBER",  # Prow
)

_EVENT_NAMES: Final = ("DRONE_BUILD_EVENT", "CI_PIPELINE_EVENT", "TRAVIS_EVENT_TYPE")
"""The second is Woodpecker's, which has pull_request_closed and others like it, too."""

_ANSWERING_EVENTS: Final = frozenset(
    {
        "issue_comment",
        "issues",
        "discussion",
        "discussion_comment",
        "workflow_run",
        "check_run",
        "check_suite",
    }
)
"""With GITHUB_SHA the newest commit of the default branch ("Events that trigger workflows")."""


def runner_command_files(environment: Environment) -> tuple[Path, ...]:
    """The files by which a step commands GitHub's runner, and the folder that holds them; resolved."""
    files = [environment[name] for name in RUNNER_COMMAND_FILES if environment.get(name)]
    if environment.get("RUNNER_TEMP"):
        files.append(os.path.join(environment["RUNNER_TEMP"], "_runner_file_commands"))
    return tuple(map(real_path, files))
