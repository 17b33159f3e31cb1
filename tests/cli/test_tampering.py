"""A program writes where only the runner, or a person, may: the run says so, whatever else it came to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import CIAgent

COMMAND_FILES = ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"]

POLICY = """
rules:
  - {id: build, allow: bash, command: "python3 build.py"}
  - {id: read, allow: read, path: "**"}
"""

BUILD = """
import os
path, change = open("plan").read().split()
if change == "append":
    with open(path, "a") as file:
        file.write("LD_PRELOAD=evil.so\\n")
elif change == "replace":
    os.rename(path, path + ".old")
    os.symlink(path + ".old", path)
elif change == "remove":
    os.remove(path)
elif change == "add":
    with open(os.path.join(os.path.dirname(path), "set_env_new"), "w") as file:
        file.write("x=y")
"""

Outcome = tuple[int, str, str | None]


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The variables of a step, and their files."""
    folder = tmp_path / "temp" / "_runner_file_commands"
    folder.mkdir(parents=True)
    files = {name: folder / f"{name.lower()}_1a2b" for name in COMMAND_FILES}
    for file in files.values():
        file.write_text("BEFORE=1\n")
    return {name: str(file) for name, file in files.items()} | {"RUNNER_TEMP": str(tmp_path / "temp")}


@pytest.fixture
def outcome(
    ci_agent: "CIAgent",
    policy: Callable[[str], str],
    script: Callable[[str], str],
    workspace: Path,
    runner: dict[str, str],
) -> Callable[..., Outcome]:
    """Of a run that starts the program once and is content: exit code, reason, error."""
    (workspace / "build.py").write_text(BUILD)

    def run(path: str, change: str, *flags: str) -> Outcome:
        (workspace / "plan").write_text(f"{path} {change}")
        call = json.dumps({"name": "bash", "arguments": {"command": "python3 build.py"}})
        model = script(f"turns:\n  - tool_calls: [{call}]\n  - text: All is well.\n")
        where = ("--policy", policy(POLICY), "--model", model, "--sandbox", "off")
        done = ci_agent("run", *where, *flags, "Build.", env=runner)
        document = json.loads(done.stdout)
        assert document["tool_calls"][0]["status"] == "ok", document["tool_calls"][0]
        assert document["result"]["exit_code"] == done.returncode
        return done.returncode, document["result"]["reason"], document["result"]["error"]

    return run


def test_files_that_nobody_touched_are_no_reason_for_anything(
    outcome: Callable[..., Outcome], runner: dict[str, str]
) -> None:
    assert outcome("nothing", "none") == (0, "completed", None)
    assert [Path(runner[name]).read_text() for name in COMMAND_FILES] == ["BEFORE=1\n"] * 5


@pytest.mark.parametrize("name", COMMAND_FILES)
def test_a_line_added_for_the_steps_to_come_is_told(
    outcome: Callable[..., Outcome], runner: dict[str, str], name: str
) -> None:
    error = f"changed while the run went on, which no tool may do: {runner[name]}"
    assert outcome(runner[name], "append") == (9, "tampered", error)


@pytest.mark.parametrize("change", ["replace", "remove"])
def test_a_command_file_that_was_exchanged_is_told(
    outcome: Callable[..., Outcome], runner: dict[str, str], change: str
) -> None:
    code, reason, error = outcome(runner["GITHUB_ENV"], change)
    assert (code, reason, runner["GITHUB_ENV"] in str(error)) == (9, "tampered", True)


def test_a_new_command_file_is_told(outcome: Callable[..., Outcome], runner: dict[str, str]) -> None:
    code, reason, error = outcome(runner["GITHUB_ENV"], "add")
    assert (code, reason, "set_env_new" in str(error)) == (9, "tampered", True)


def test_a_policy_that_was_changed_is_told_and_went_on_to_hold(
    ci_agent: "CIAgent", policy: Callable[[str], str], script: Callable[[str], str], workspace: Path
) -> None:
    """The policy in force is the one that was loaded: the program allows everything, and the next call is denied."""
    (workspace / "build.py").write_text("open('policy.yml', 'w').write('policy: 1\\nrules: [{id: a, allow: write}]')")
    calls = [
        {"name": "bash", "arguments": {"command": "python3 build.py"}},
        {"name": "write", "arguments": {"path": "canary", "content": "x"}},
    ]
    turns = "".join(f"  - tool_calls: [{json.dumps(call)}]\n" for call in calls)
    model = script(f"turns:\n{turns}  - text: Done.\n")
    rules = '\nrules:\n  - {id: build, allow: bash, command: "python3 build.py"}\n'
    done = ci_agent("run", "--policy", policy(rules), "--model", model, "--sandbox", "off", "Build.")
    document = json.loads(done.stdout)
    assert [call["status"] for call in document["tool_calls"]] == ["ok", "denied"]
    assert not (workspace / "canary").exists()
    assert (done.returncode, document["result"]["reason"]) == (9, "tampered")
    assert str(workspace / "policy.yml") in document["result"]["error"]


ATTACKS_ON_THE_LINK = {
    "another link": "import os\nos.remove('ci/policy.yml')\nos.symlink('../evil.yml', 'ci/policy.yml')",
    "a file": "import os\nos.replace('evil.yml', 'ci/policy.yml')",
    "another folder": "import os\nos.rename('ci', 'old')\nos.rename('other', 'ci')",
}


@pytest.fixture
def linked_policy(workspace: Path) -> str:
    """A policy outside of the workspace, by a link in it."""
    for folder in ("ci", "other"):
        (workspace / folder).mkdir()
    rules = '[{id: all, allow: bash, command: ["python3 build.py", "mv **", "rm **", "ln **"]}]'
    (workspace.parent / "policy.yml").write_text(f"policy: 1\nrules: {rules}\n")
    (workspace / "ci/policy.yml").symlink_to(workspace.parent / "policy.yml")
    for evil in ("evil.yml", "other/policy.yml"):
        (workspace / evil).write_text("policy: 1\nrules: [{id: canary, allow: bash, command: '**'}]\n")
    return "ci/policy.yml"


@pytest.mark.parametrize("attack", ATTACKS_ON_THE_LINK)
def test_attack_lead_the_link_to_the_policy_elsewhere_for_the_next_run(
    ci_agent: "CIAgent", script: Callable[[str], str], workspace: Path, linked_policy: str, attack: str
) -> None:
    (workspace / "build.py").write_text(ATTACKS_ON_THE_LINK[attack])
    call = {"name": "bash", "arguments": {"command": "python3 build.py"}}
    model = script(f"turns:\n  - tool_calls: [{json.dumps(call)}]\n  - text: Done.\n")
    done = ci_agent("run", "--policy", linked_policy, "--model", model, "Build.")
    assert "canary" in (workspace / linked_policy).read_text(), "the attack has failed by itself"
    assert done.returncode == 9
    assert str(workspace / linked_policy) in json.loads(done.stdout)["result"]["error"]


@pytest.mark.parametrize(
    "command",
    ["mv ci old", "rm -r ci", "rm ci/policy.yml", "mv evil.yml ci/policy.yml", "ln -sfn ../evil.yml ci/policy.yml"],
)
def test_attack_take_the_link_to_the_policy_away_by_a_command(
    ci_agent: "CIAgent", script: Callable[[str], str], workspace: Path, linked_policy: str, command: str
) -> None:
    call = {"name": "bash", "arguments": {"command": command}}
    model = script(f"turns:\n  - tool_calls: [{json.dumps(call)}]\n  - text: Done.\n")
    done = ci_agent("run", "--policy", linked_policy, "--model", model, "Build.")
    assert [call["status"] for call in json.loads(done.stdout)["tool_calls"]] == ["denied"]
    assert (workspace / linked_policy).readlink() == workspace.parent / "policy.yml"
