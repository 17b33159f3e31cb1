"""`"$(git rev-parse --show-toplevel)/NAME"`: where git prints nothing it is `/NAME`, and mostly nothing is there."""

import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.gathering.absent_places import is_absent
from ci_agent.workspace import Workspace

RULES = """
- {id: any, allow: bash, command: ["{cd,set,ls,cat,git,grep,python3,bash,mkdir,ln,tee,mv,rm} **"]}
- {id: script, allow: bash, command: "*/place-of-a-test/run.sh **"}
- {id: files, allow: write, path: "**"}
- {id: secrets, deny: read, path: "**/.env"}
"""
TOP = "$(git rev-parse --show-toplevel)"


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    for name in ("place-of-a-test/a.py", "place-of-a-test/run.sh", "place-of-a-test/.env", "etc/passwd", "tmp/x"):
        put(name)
    subprocess.run(["git", "init", "-q"], cwd=workspace.root, check=True)
    return policy(RULES)


def _effect(policy: Policy, command: str) -> str:
    return policy.decide("bash", {"command": command}).effect


@pytest.mark.parametrize(
    "command",
    [
        f'cd "{TOP}/place-of-a-test" && ls && cat a.py',
        f'cd "{TOP}"/place-of-a-test && cat a.py',
        f"cd {TOP}/place-of-a-test && cat a.py",
        f'set -e; cd "{TOP}/place-of-a-test"; cat a.py',
        f'cd "{TOP}"; ls; cat place-of-a-test/a.py',
        f'ROOT="{TOP}"; cd "$ROOT"; ls',
        f'root={TOP} && cd "$root/place-of-a-test" && cat a.py > out.txt',
        f'root={TOP}; cat "$root/place-of-a-test/a.py"; ls "${{root}}/place-of-a-test"',
        f'cat < "{TOP}/place-of-a-test/a.py"',
        f'grep -rn --include="*.py" x "{TOP}/place-of-a-test"',
        f'python3 "{TOP}/place-of-a-test/a.py"',
        f'"{TOP}/place-of-a-test/run.sh" --fast',
        f'cd place-of-a-test && cat "{TOP}/place-of-a-test/a.py"',
        f'cat "{TOP}/place-of-a-test/a.py" | tee "copy.txt"',
    ],
)
def test_what_is_not_there_is_not_read_nor_entered_nor_run(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        f'cat "{TOP}/place-of-a-test/.env"',
        f'cd "{TOP}/place-of-a-test" && cat .env',
        f'cat "{TOP}/etc/passwd"',
        f'cd "{TOP}/etc" && cat passwd',
        f'cd "{TOP}/etc"; cat passwd',
        f'ls "{TOP}/../etc"',
        f'cat "{TOP}//etc/passwd"',
        f'cat "{TOP}/./etc/passwd"',
        f'"{TOP}/etc/run.sh"',
        f'echo x > "{TOP}/place-of-a-test/b.py"',
        f'tee "{TOP}/place-of-a-test/b.py"',
        f'mkdir "{TOP}/place-of-a-test/new"',
        f'cd "{TOP}/place-of-a-test"; cat a.py',
        f'git init x && cat "{TOP}/place-of-a-test/a.py"',
        f'GIT_DIR=x; cat "{TOP}/place-of-a-test/a.py"',
        f'git() {{ echo /etc; }}; cat "{TOP}/passwd"',
    ],
)
def test_what_may_be_there_or_be_made_is_held_to_the_rules(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "deny"


@pytest.mark.parametrize(
    "made",
    [
        "mkdir /place-of-a-test",
        "ln -s /etc /place-of-a-test",
        "cp -r etc /place-of-a-test",
        "tee /place-of-a-test/a.py",
    ],
)
@pytest.mark.usefixtures("decided")
def test_the_call_must_not_make_what_was_not_there(policy: MakePolicy, made: str) -> None:
    decided = policy(
        """
        - {id: top, allow: bash, command: ["{mkdir,ln,cp,tee} **"], paths: ["**", "/**"]}
        - {id: look, allow: bash, command: ["{cat,git} **"]}
        """
    )
    assert _effect(decided, made) == "allow"
    assert _effect(decided, f'cat "{TOP}/place-of-a-test/a.py"') == "allow"
    assert _effect(decided, f'{made}; cat "{TOP}/place-of-a-test/a.py"') == "deny"


def test_only_a_name_beneath_the_root_that_nothing_has_is_absent(tmp_path: Path) -> None:
    budget = DiskBudget()
    others = ("/", "//", "/.", "/../x", f"{tmp_path}/x", "x", "", "/\0")
    assert all(is_absent(path, budget) for path in ("/place-of-a-test/x", "//place-of-a-test"))
    assert not any(is_absent(path, budget) for path in others)
    assert budget.absent == {Path("/place-of-a-test")}
