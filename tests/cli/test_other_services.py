"""A run in GitLab, Azure Pipelines, Buildkite, Jenkins and TeamCity: on record, folded, and no word of it a command."""

import json
from collections.abc import Callable
from typing import Any

import log_parsers
import pytest

SERVICES = {
    "gitlab": {"GITLAB_CI": "true"},
    "azure": {"TF_BUILD": "True"},
    "buildkite": {"BUILDKITE": "true"},
    "teamcity": {"TEAMCITY_VERSION": "2026.1"},
}
OURS = {"gitlab": 2, "azure": 2, "buildkite": 2, "teamcity": 2}
RULES = "rules: [{id: look, allow: ls}, {id: say, allow: bash, command: 'printf **'}]\n"


@pytest.fixture
def model(script: Callable[[str], str]) -> str:
    """Says every hostile line in its answer, as arguments, as a tool's name and in what a command prints."""
    text = "\n".join(log_parsers.HOSTILE)
    calls = [{"name": line, "arguments": {"path": line}} for line in log_parsers.HOSTILE]
    calls.append({"name": "bash", "arguments": {"command": f"printf '%s' {json.dumps(log_parsers.HOSTILE[2])}"}})
    turns = [{"text": text, "tool_calls": calls}, {"text": text}]
    return script(json.dumps({"turns": turns}))


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
@pytest.mark.parametrize("service", SERVICES)
def test_attack_no_line_of_a_run_is_a_command_to_the_service(
    service: str, output: str, ci_agent: Any, policy: Callable[[str], str], model: str
) -> None:
    flags = ["--policy", policy(RULES), "--model", model, "--output", output, "--verbose"]
    done = ci_agent("run", *flags, "Go.", env={"CI": "true", **SERVICES[service]})
    assert done.returncode == 0, done.stderr
    assert "task.setvariable" in done.stdout
    assert "task.setvariable" in done.stderr
    assert len(log_parsers.PARSERS[service](done.stderr)) == OURS[service]
    assert log_parsers.PARSERS[service](done.stdout) == []


@pytest.mark.parametrize("service", SERVICES)
def test_attack_no_quiet_run_that_failed_commands_the_service(
    service: str, ci_agent: Any, policy: Callable[[str], str], model: str
) -> None:
    flags = ["--policy", policy(RULES), "--model", model, "--quiet", "--fail-on-error", "any"]
    done = ci_agent("run", *flags, "Go.", env=SERVICES[service])
    assert done.returncode == 1
    assert "vso" in done.stderr
    assert log_parsers.PARSERS[service](done.stderr) == []


def test_the_service_is_on_record(ci_agent: Any, policy: Callable[[str], str], script: Callable[[str], str]) -> None:
    model = script("turns: [{text: Done.}]")
    env = {"JENKINS_URL": "http://ci.test/", "BUILD_URL": "http://ci.test/job/site/7/"}
    done = ci_agent("run", "--policy", policy(RULES), "--model", model, "Go.", env=env)
    facts = {"provider": "jenkins", "repository": None, "run_url": "http://ci.test/job/site/7/"}
    assert json.loads(done.stdout)["run"]["ci"] == facts
