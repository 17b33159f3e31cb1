"""What is said of a key that is not there, by the place where the run is."""

from collections.abc import Mapping

import pytest

from ci_agent.ci_services.environment import SERVICES
from ci_agent.ci_services.missing_key import said_for_the_service
from ci_agent.errors import MissingKeyError

ERROR = MissingKeyError("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"))
SECRET = "${{ secrets.GEMINI_API_KEY }}"
BY_FLAG = "set GEMINI_API_KEY or GOOGLE_API_KEY, or, for --model itself, give a file with --api-key-file"
NO_SECRETS = "a pull request from a fork gets no secrets"


@pytest.mark.parametrize(
    ("environment", "way"),
    [
        ({}, BY_FLAG),
        ({"CI": "true"}, BY_FLAG),
        (
            {"CI_AGENT_ACTION": "/action", "GITHUB_ACTIONS": "true"},
            f"give it as the input api-key, `api-key: {SECRET}`, or, for a fallback, set GEMINI_API_KEY by `env`; "
            + NO_SECRETS,
        ),
        (
            {"GITHUB_ACTIONS": "true"},
            f"set GEMINI_API_KEY by `env: {{GEMINI_API_KEY: {SECRET}}}` at the step; {NO_SECRETS}",
        ),
        ({"JENKINS_URL": "x"}, "bind GEMINI_API_KEY by withCredentials around the step"),
    ],
)
def test_a_missing_key_is_told_as_what_its_reader_can_do(environment: Mapping[str, str], way: str) -> None:
    assert str(said_for_the_service(ERROR, environment)) == f"the provider gemini needs a key: {way}"


@pytest.mark.parametrize(("mark", "value"), [(mark, value or "1") for _, mark, value, _ in SERVICES])
def test_no_service_is_told_of_flags(mark: str, value: str) -> None:
    said = str(said_for_the_service(ERROR, {mark: value}))
    assert "GEMINI_API_KEY" in said
    assert "--" not in said
