"""Which CI service runs us."""

import pytest

from ci_agent.ci_services.environment import (
    base_branch,
    detect_ci,
    is_pull_request,
    may_hold_a_proposal,
    repository_path,
)
from ci_agent.transcript.run_facts import CIFacts

GITHUB = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_REPOSITORY": "acme/site", "GITHUB_RUN_ID": "7"}


SITE = "https://github.com/acme/site"


@pytest.mark.parametrize(
    ("environment", "facts"),
    [
        ({}, None),
        ({"CI": "false"}, None),
        ({"CI": "true"}, CIFacts("unknown")),
        (GITHUB, CIFacts("github", "acme/site", "https://github.com/acme/site/actions/runs/7")),
        ({"GITHUB_ACTIONS": "true"}, CIFacts("github")),
        (
            {"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/site", "CI_JOB_URL": "https://gitlab.test/j/1"},
            CIFacts("gitlab", "acme/site", "https://gitlab.test/j/1"),
        ),
        (
            {
                "TF_BUILD": "True",
                "BUILD_REPOSITORY_NAME": "acme/site",
                "SYSTEM_COLLECTIONURI": "https://dev.azure.test/acme/",
                "SYSTEM_TEAMPROJECT": "My Site",
                "BUILD_BUILDID": "7",
            },
            CIFacts("azure", "acme/site", "https://dev.azure.test/acme/My%20Site/_build/results?buildId=7"),
        ),
        (
            {
                "BUILDKITE": "true",
                "CI": "true",
                "BUILDKITE_REPO": "git@github.com:acme/site.git",
                "BUILDKITE_BUILD_URL": "https://buildkite.test/acme/site/builds/7",
                "BUILDKITE_JOB_ID": "018f",
            },
            CIFacts("buildkite", "acme/site", "https://buildkite.test/acme/site/builds/7#018f"),
        ),
        (
            {"CIRCLECI": "true", "CIRCLE_PROJECT_USERNAME": "acme", "CIRCLE_PROJECT_REPONAME": "site"},
            CIFacts("circleci", "acme/site"),
        ),
        (
            {
                "BITBUCKET_BUILD_NUMBER": "7",
                "BITBUCKET_REPO_FULL_NAME": "acme/site",
                "BITBUCKET_GIT_HTTP_ORIGIN": "http://bitbucket.test/acme/site",
            },
            CIFacts("bitbucket", "acme/site", "http://bitbucket.test/acme/site/pipelines/results/7"),
        ),
        (
            {"JENKINS_URL": "http://ci.test/", "GIT_URL": "https://x:secret@git.test/acme/site", "BUILD_URL": "u"},
            CIFacts("jenkins", "acme/site", "u"),
        ),
        ({"TEAMCITY_VERSION": "2026.1"}, CIFacts("teamcity")),
        ({"GITHUB_ACTIONS": "false", "TF_BUILD": "", "JENKINS_URL": ""}, None),
        ({"JENKINS_URL": "http://ci.test/", **GITHUB}, CIFacts("github", "acme/site", f"{SITE}/actions/runs/7")),
    ],
)
def test_the_service_is_known_by_its_variables(environment: dict[str, str], facts: CIFacts | None) -> None:
    assert detect_ci(environment) == facts


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (None, None),
        ("", None),
        ("https://git.test/acme/site.git", "acme/site"),
        ("https://token@git.test/acme/group/site/", "acme/group/site"),
        ("ssh://git@git.test:22/acme/site.git", "acme/site"),
        ("git@git.test:acme/site.git", "acme/site"),
        ("/srv/git/site.git", "srv/git/site"),
        ("https://[", None),
    ],
)
def test_a_repository_is_named_without_who_may_read_it(url: str | None, path: str | None) -> None:
    assert repository_path(url) == path


@pytest.mark.parametrize(
    "environment",
    [
        {"GITHUB_EVENT_NAME": "pull_request"},
        {"GITHUB_EVENT_NAME": "pull_request_target"},
        {"GITHUB_EVENT_NAME": "pull_request_review"},
        {"GITHUB_EVENT_NAME": "pull_request_review_comment"},
        {"CI_MERGE_REQUEST_IID": "7"},
        {"CI_PIPELINE_SOURCE": "merge_request_event"},
        {"CI_PIPELINE_SOURCE": "external_pull_request_event"},
        {"CI_EXTERNAL_PULL_REQUEST_IID": "7"},
        {"CHANGE_ID": "7"},
        {"ghprbPullId": "7"},
        {"gitlabMergeRequestIid": "7"},
        {"BUILD_REASON": "PullRequest"},
        {"SYSTEM_PULLREQUEST_PULLREQUESTID": "7"},
        {"SYSTEM_PULLREQUEST_PULLREQUESTNUMBER": "7"},
        {"BUILDKITE_PULL_REQUEST": "7"},
        {"CIRCLE_PULL_REQUEST": "https://x/7"},
        {"CIRCLE_PULL_REQUESTS": "https://x/7,https://x/8"},
        {"CIRCLE_PR_NUMBER": "7"},
        {"BITBUCKET_PR_ID": "7"},
        {"DRONE_PULL_REQUEST": "7"},
        {"DRONE_BUILD_EVENT": "pull_request"},
        {"CI_COMMIT_PULL_REQUEST": "7"},
        {"CI_PIPELINE_EVENT": "pull_request"},
        {"CI_PIPELINE_EVENT": "pull_request_closed"},
        {"TRAVIS_PULL_REQUEST": "7"},
        {"TRAVIS_EVENT_TYPE": "pull_request"},
        {"APPVEYOR_PULL_REQUEST_NUMBER": "7"},
        {"CIRRUS_PR": "7"},
        {"SEMAPHORE_GIT_PR_NUMBER": "7"},
        {"BITRISE_PULL_REQUEST": "7"},
        {"CF_PULL_REQUEST_NUMBER": "7"},
        {"PULL_NUMBER": "7"},
        {"CODEBUILD_WEBHOOK_EVENT": "PULL_REQUEST_UPDATED"},
    ],
    ids=str,
)
def test_what_somebody_proposes_is_known_everywhere(environment: dict[str, str]) -> None:
    assert is_pull_request(environment)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"GITHUB_EVENT_NAME": "push"},
        {"GITHUB_EVENT_NAME": "merge_group"},
        {"GITHUB_EVENT_NAME": "issue_comment"},
        {"CI_PIPELINE_SOURCE": "push"},
        {"BUILDKITE_PULL_REQUEST": "false"},
        {"BUILD_REASON": "Manual"},
        {"TRAVIS_PULL_REQUEST": "false", "TRAVIS_EVENT_TYPE": "push"},
        {"DRONE_BUILD_EVENT": "push", "DRONE_PULL_REQUEST": ""},
        {"CI_PIPELINE_EVENT": "push", "CI_COMMIT_PULL_REQUEST": ""},
        {"CODEBUILD_WEBHOOK_EVENT": "PUSH"},
    ],
    ids=str,
)
def test_what_is_in_a_branch_is_no_proposal(environment: dict[str, str]) -> None:
    assert not is_pull_request(environment)


@pytest.mark.parametrize(
    ("event", "may"),
    [
        ("issue_comment", True),
        ("workflow_run", True),
        ("discussion_comment", True),
        ("push", False),
        ("schedule", False),
    ],
)
def test_events_of_outsiders_may_have_a_proposal_checked_out(event: str, may: bool) -> None:
    assert may_hold_a_proposal({"GITHUB_EVENT_NAME": event}) is may


def test_the_branch_that_a_proposal_is_for() -> None:
    assert base_branch({}) is None
    assert base_branch({"GITHUB_BASE_REF": "", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"}) == "main"
    assert base_branch({"CHANGE_TARGET": "release/1"}) == "release/1"
    assert base_branch({"DRONE_TARGET_BRANCH": "main"}) == base_branch({"CI_COMMIT_TARGET_BRANCH": "main"}) == "main"
