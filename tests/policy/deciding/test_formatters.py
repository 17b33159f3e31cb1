"""Formatters of a whole folder change the files of their own endings, and nothing else that lies there."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

_RULES = """
- id: format
  allow: bash
  command: ["{black,isort} **", "ruff format **", "ruff check --fix **", "gofmt -w **", "prettier --write **",
    "cargo fmt **", "go fmt **", "chmod **", "dart format **", "deno fmt **"]
  paths: [".", "**"]
"""
_CALLS = ["ruff format .", "ruff format", "ruff check --fix .", "black .", "isort .", "gofmt -w .", "cargo fmt"]


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    for name in ("src/a.py", "src/a.go", "src/a.rs", "src/a.ts"):
        put(name)
    subprocess.run(["git", "init", "-q"], cwd=workspace.root, check=True)
    return policy(_RULES)


@pytest.mark.parametrize("command", [*_CALLS, "prettier --write ."])
def test_a_repository_can_be_formatted_as_a_whole(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize("command", _CALLS)
def test_what_git_runs_is_not_formatted(decided: Policy, put: Put, command: str) -> None:
    for ending in ("py", "go", "rs"):
        put(f".git/hooks/helper.{ending}")
    assert decided.decide("bash", {"command": command}).code == "hazard"


def test_workflows_are_not_formatted(decided: Policy, put: Put) -> None:
    put(".github/workflows/ci.yml")
    assert decided.decide("bash", {"command": "prettier --write ."}).code == "hazard"


def test_the_denied_file_of_an_ending_is_not_formatted(policy: MakePolicy, put: Put) -> None:
    put("src/kept.py")
    decided = policy(f"{_RULES}- {{id: kept, deny: write, path: src/kept.py}}\n")
    assert decided.decide("bash", {"command": "black ."}).rule_id == "kept"
    assert decided.decide("bash", {"command": "gofmt -w ."}).effect == "allow"


@pytest.mark.parametrize("command", ["dart format lib", "dart format .", "deno fmt lib", "deno fmt"])
def test_a_denied_folder_is_not_formatted(policy: MakePolicy, put: Put, command: str) -> None:
    put("lib/a.dart")
    put("lib/a.ts")
    decided = policy(f'{_RULES}- {{id: kept, deny: write, path: "lib/**"}}\n')
    assert decided.decide("bash", {"command": command}).rule_id == "kept"


@pytest.mark.parametrize("command", ["dart format -o none lib", "dart format --output=show .", "deno fmt --check lib"])
def test_a_denied_folder_may_be_checked(policy: MakePolicy, put: Put, command: str) -> None:
    put("lib/a.dart")
    put("lib/a.ts")
    decided = policy(f'{_RULES}- {{id: kept, deny: write, path: "lib/**"}}\n')
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize("command", ["ruff format .git", "black .git", "chmod -R a+x ."])
def test_what_is_meant_as_a_whole_stays_protected(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).code == "hazard"
