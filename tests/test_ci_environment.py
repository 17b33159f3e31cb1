"""Which CI service runs us."""

import pytest

from ci_agent.ci_environment import detect_ci
from ci_agent.transcript.run_facts import CIFacts

GITHUB = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_REPOSITORY": "acme/site", "GITHUB_RUN_ID": "7"}


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
    ],
)
def test_the_service_is_known_by_its_variables(environment: dict[str, str], facts: CIFacts | None) -> None:
    assert detect_ci(environment) == facts
