"""What git changes in a working tree as a whole: its own folders, and repositories beneath, are none of it."""

import subprocess

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

_RULES = """
- {id: any, allow: bash, command: ["git **"], paths: [".", "**"]}
- {id: secrets, deny: write, path: ["**/.env", "notes/**"]}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    put("README.md")
    put("src/a.py")
    subprocess.run(["git", "init", "-q"], cwd=workspace.root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=workspace.root, check=True)
    return policy(_RULES)


def _effect(policy: Policy, command: str) -> str:
    return policy.decide("bash", {"command": command}).effect


@pytest.mark.parametrize(
    "command",
    [
        "git checkout HEAD",
        "git checkout HEAD -- README.md",
        "git checkout -- .",
        "git checkout .",
        "git restore .",
        "git clean -fd",
        "git clean -fd src",
    ],
)
def test_the_working_tree_may_be_put_right(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "allow"


@pytest.mark.parametrize("command", ["git clean -ffd", "git clean -f -f -d", "git clean -fdx", "git clean -dfX"])
def test_what_is_ignored_and_repositories_beneath_need_more_than_a_wildcard(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "deny"


def test_a_deletion_of_what_is_not_tracked_spares_what_may_not_be_written(decided: Policy, put: Put) -> None:
    put(".env")
    assert _effect(decided, "git clean -fd") == "deny"
    assert _effect(decided, "git clean -fd src") == "allow"


def test_workflows_are_still_protected(decided: Policy, put: Put) -> None:
    put(".github/workflows/ci.yml")
    assert {_effect(decided, command) for command in ("git clean -fd", "git checkout -- .")} == {"deny"}


def test_a_repository_beneath_is_deleted_by_nothing_that_a_wildcard_grants(
    decided: Policy, workspace: Workspace
) -> None:
    subprocess.run(["git", "init", "-q", "src/sub"], cwd=workspace.root, check=True)
    assert _effect(decided, "git clean -fd src") == "allow"
    assert _effect(decided, "git clean -ffd src") == "deny"
    assert _effect(decided, "git clean -ffd 's*'") == "deny"


def test_a_link_file_of_a_worktree_is_protected(decided: Policy, put: Put) -> None:
    put("src/sub/.git", "gitdir: ../../elsewhere\n")
    assert _effect(decided, "git checkout -- src") == "deny"
