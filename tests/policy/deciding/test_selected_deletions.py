"""Deleting some files beneath the workspace deletes nothing that is protected there, unless that is among them."""

import subprocess
from pathlib import Path

import pytest

from ci_agent import Policy, load_policy

RULES = """
policy: 1
rules:
  - id: clean
    allow: bash
    command: ["find . -name * -delete", "find . -delete", "find . -type f -delete", "find . '!' -name * -delete",
      "find . -name * -o -delete", "find . -name * -delete -o -name * -delete", "{rm,find,xargs} **"]
    paths: [".", "**"]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("src/a.pyc", "src/__pycache__/b.pyc", "deep/.git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.fixture
def policy(workspace: Path) -> Policy:
    return load_policy(text=RULES, workspace=workspace)


@pytest.mark.parametrize(
    "line",
    [
        "find . -name '*.pyc' -delete",
        "find . -name '*.PYC' -delete",
        "find . -type d -name __pycache__ -exec rm -rf {} +",
        "find . -type d -name __pycache__ | xargs rm -rf",
    ],
)
def test_files_that_lie_elsewhere_may_be_deleted_by_a_wildcard(policy: Policy, line: str) -> None:
    assert policy.decide("bash", {"command": line}).reason == "Allowed by policy rule clean."


@pytest.mark.parametrize(
    "line",
    [
        "find . -delete",
        "find . -type f -delete",
        "find . -name HEAD -delete",
        "find . -name config -delete",
        "find . -name '*.sample' -delete",
        "find . -name .git -exec rm -rf {} +",
        "find . -name '*git' -exec rm -rf {} +",
        "find . -iname '*.GIT' -exec rm -rf {} +",
        "find . -name deep -exec rm -rf {} +",
        "find . ! -name '*.pyc' -delete",
        "find . -name '*.pyc' -o -delete",
        "find . -name '*.pyc' -delete -o -name HEAD -delete",
    ],
)
def test_what_takes_protected_files_along_is_denied(policy: Policy, line: str) -> None:
    assert policy.decide("bash", {"command": line}).code == "hazard"


def test_a_branch_may_have_the_name_that_is_deleted(policy: Policy, workspace: Path) -> None:
    (workspace / ".git/refs/heads/x.pyc").write_text("x")
    assert policy.decide("bash", {"command": "find . -name '*.pyc' -delete"}).code == "hazard"


def test_the_record_of_the_run_may_be_among_them(workspace: Path) -> None:
    (workspace / "policy.pyc").write_text(RULES)
    policy = load_policy(workspace / "policy.pyc", workspace=workspace)
    assert policy.decide("bash", {"command": "find . -name '*.pyc' -delete"}).effect == "deny"
    assert policy.decide("bash", {"command": "find . -name '*.pyo' -delete"}).effect == "allow"
