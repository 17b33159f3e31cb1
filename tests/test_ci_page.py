"""The page about CI systems is true: its snippets run, each in a merge request as its service shows one."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import ci_agent
from ci_agent.ci_services.environment import SERVICES
from ci_agent.ci_services.log_sections import FOLDING_SERVICES

PAGE = (Path(ci_agent.__file__).parent.parent / "docs" / "ci.md").read_text()

TASK = """\
task: 1
prompt: "Review what changed since {{ base }}."
inputs: {base: {default: main}}
policy: policy.yml
model: anthropic:claude-sonnet-5
"""
POLICY = "policy: 1\nextends: [review]\n"
EVIL = "policy: 1\nrules: [{id: all, allow: bash, command: ['**']}]\n"
SCRIPT = """\
turns:
  - tool_calls:
      - {id: diff, name: bash, arguments: {command: git diff origin/main --stat}}
      - {id: evil, name: bash, arguments: {command: touch evil}}
  - expect: {diff: policy.yml, evil: "Blocked: no policy rule allows"}
    text: "--- Nothing to say. ##vso[task.complete]"
"""

PULL_REQUESTS = {
    "GitLab": {
        "GITLAB_CI": "true",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "BASE": "origin/main",
    },
    "Jenkins": {"JENKINS_URL": "http://ci.test/", "CHANGE_ID": "7", "CHANGE_TARGET": "main"},
    "Buildkite": {
        "BUILDKITE": "true",
        "BUILDKITE_PULL_REQUEST": "7",
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main",
    },
    "Azure Pipelines": {
        "TF_BUILD": "True",
        "BUILD_REASON": "PullRequest",
        "SYSTEM_PULLREQUEST_PULLREQUESTID": "7",
        "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main",
    },
    "CircleCI": {
        "CIRCLECI": "true",
        "CIRCLE_PULL_REQUEST": "https://github.test/acme/site/pull/7",
        "BASE": "origin/main",
    },
    "Bitbucket Pipelines": {
        "BITBUCKET_BUILD_NUMBER": "9",
        "BITBUCKET_PR_ID": "7",
        "BITBUCKET_PR_DESTINATION_BRANCH": "main",
    },
    "TeamCity": {"TEAMCITY_VERSION": "2026.1", "BASE": "origin/main", "PULL_NUMBER": "7"},
}
"""What each service's variables say of a merge request into main."""


def snippet(service: str) -> tuple[str, str]:
    """Language and text of the first block under a service's heading."""
    found = re.search(rf"^## {service}\n.*?^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1], found[2]


def commands(service: str) -> list[str]:
    """What its shell would be given, in order."""
    language, text = snippet(service)
    if language == "groovy":
        return re.findall(r"^ *sh '([^']*)'$", text, re.MULTILINE)
    if language == "kotlin":
        found = re.findall(r'scriptContent = ("""|")(.*?)\1', text, re.DOTALL)
        return [script.replace("${'$'}", "$") for _, script in found]
    return [command.replace("$$", "$") for command in _scripts(yaml.safe_load(text))]


def _scripts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for entry in value:
            yield from _scripts(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in {"script", "command", "run"} and not isinstance(entry, dict):
                yield from [entry] if isinstance(entry, str) else entry
            else:
                yield from _scripts(entry)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Of a merge request that brings a policy of its own, from a server that is a folder."""
    server, folder = tmp_path / "server.git", tmp_path / "checkout"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(server))
    git(tmp_path, "clone", "-q", str(server), str(folder))
    git(folder, "checkout", "-q", "-b", "main")
    (folder / "tasks").mkdir()
    (folder / "tasks" / "review.yaml").write_text(TASK)
    (folder / "tasks" / "policy.yml").write_text(POLICY)
    commit(folder)
    git(folder, "push", "-q", "origin", "main")
    git(folder, "checkout", "-q", "-b", "change")
    (folder / "tasks" / "policy.yml").write_text(EVIL)
    commit(folder)
    return folder


def git(folder: Path, *args: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With this ci-agent, a scripted model in place of the task's, and a pip that installs nothing."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in (("ci-agent", f'exec {sys.executable} -P -m ci_agent "$@"'), ("pip", "exit 0")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    model = f"scripted:{tmp_path / 'script.yaml'}"
    return {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "CI": "true", "CI_AGENT_MODEL": model}


@pytest.mark.parametrize("service", PULL_REQUESTS)
def test_each_snippet_reviews_a_merge_request_by_the_rules_of_its_base(
    service: str, checkout: Path, environment: dict[str, str]
) -> None:
    found = commands(service)
    assert sum("exec ci-agent run" in command for command in found) == 1
    assert "exec ci-agent run" in found[-1]
    for command in found:
        done = subprocess.run(
            ["sh", "-ec", command],
            cwd=checkout,
            env={**environment, **PULL_REQUESTS[service]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )
        assert done.returncode == 0, done.stderr
    assert "Nothing to say." in done.stdout
    record = json.loads((checkout / "transcript.json").read_text())
    assert record["run"]["ci"]["provider"] == service.partition(" ")[0].lower()
    assert [call["status"] for call in record["tool_calls"]] == ["ok", "denied"]
    assert not (checkout / "evil").exists()
    (junit,) = checkout.rglob("junit.xml")
    assert junit.read_text().startswith("<?xml")
    assert (checkout / "quality.json").exists() == (service == "GitLab")


@pytest.mark.parametrize("service", PULL_REQUESTS)
def test_attack_the_same_line_with_rules_of_the_merge_request_is_refused(
    service: str, checkout: Path, environment: dict[str, str]
) -> None:
    command = re.sub(r'--task "[^"]*"', "--task tasks/review.yaml", commands(service)[-1])
    done = subprocess.run(
        ["sh", "-ec", command],
        cwd=checkout,
        env={**environment, **PULL_REQUESTS[service]},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 3
    assert "git:origin/main:" in done.stderr
    assert not (checkout / "evil").exists()


@pytest.mark.parametrize("service", PULL_REQUESTS)
def test_what_a_snippet_sets_itself_is_what_its_job_was_tried_with(service: str) -> None:
    text = snippet(service)[1]
    for name in {"BASE", "PULL_NUMBER"} & PULL_REQUESTS[service].keys():
        assert re.search(rf"\b{name}\b[\"':,]", text)


def test_every_service_that_is_known_has_a_snippet_or_a_page() -> None:
    headings = {name.partition(" ")[0].lower() for name in PULL_REQUESTS}
    assert headings | {"github"} == {name for name, *_ in SERVICES}


def test_the_table_names_every_service_and_what_folds() -> None:
    rows = re.findall(r"^\| [A-Z][^|]* \| `(\w+)` \| `(\w+)` \| (\w*) *\|$", PAGE, re.MULTILINE)
    assert {(name, mark) for name, mark, _ in rows} == {(name, mark) for name, mark, *_ in SERVICES}
    assert {name for name, _, folds in rows if folds == "yes"} == set(FOLDING_SERVICES)
