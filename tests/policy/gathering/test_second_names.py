"""A file that a rule forbids is forbidden under its other names too: hard links."""

import os

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

RULES = """
- {id: any, allow: bash, command: ["{cat,grep,ln,cp,rsync,mytool,tar,find,cd,wc,echo} **"]}
- {id: files, allow: [read, grep, write, edit]}
- {id: secrets, deny: [read, grep], path: ["**/.env", "private/**"]}
- {id: fixed, deny: [write, edit], path: "lock/*.txt"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    for name in ("services/api/.env", "private/key", "lock/a.txt", "src/a.py", "plain"):
        put(name)
    (workspace.root / "notes").mkdir()
    os.link(workspace.root / "services/api/.env", workspace.root / "notes/env.txt")
    os.link(workspace.root / "private/key", workspace.root / "key.txt")
    os.link(workspace.root / "lock/a.txt", workspace.root / "open.txt")
    os.link(workspace.root / "plain", workspace.root / "src/plain")
    return policy(RULES)


@pytest.mark.parametrize(
    "command",
    [
        "cat notes/env.txt",
        "cat key.txt",
        "cat < key.txt",
        "grep -r x notes",
        "cd notes && cat env.txt",
        "find notes -name '*.txt' -exec cat {} +",
        "mytool notes/env.txt",
        "mytool notes",
        "tar czf a.tgz notes",
        "cp key.txt copy",
        "ln private/key alias",
        "cp -l services/api/.env alias",
        "cp -al services new",
        "rsync -a --link-dest=private src/ new",
        "rsync -a --link-dest=services/api src/ new",
    ],
)
def test_a_forbidden_file_is_not_read_by_another_name(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).rule_id == "secrets"


def test_a_forbidden_file_is_not_written_by_another_name(decided: Policy) -> None:
    assert decided.decide("bash", {"command": "echo x > open.txt"}).rule_id == "fixed"
    assert decided.decide("write", {"path": "open.txt", "content": "x"}).rule_id == "fixed"
    assert decided.decide("read", {"path": "open.txt"}).effect == "allow"


def test_file_tools_pass_it_by(decided: Policy, workspace: Workspace) -> None:
    assert decided.decide("read", {"path": "key.txt"}).rule_id == "secrets"
    assert not decided.permits_path("grep", "read", workspace.root / "notes/env.txt")
    assert decided.permits_path("grep", "read", workspace.root / "src/plain")


@pytest.mark.parametrize("command", ["cat plain", "grep -r x src", "ln plain again", "cat src/a.py", "mytool src"])
def test_other_files_with_several_names_are_free(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"
