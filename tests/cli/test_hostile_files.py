"""A hijacked model against files, under the real command: protected places, other spellings, batches that collide."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str], str]
Run = Callable[..., tuple[int, Any]]

EVERYTHING = """rules:
- {id: files, allow: [read, write, edit, grep, find, ls], path: [".", "**", "/**"]}
- {id: shell, allow: bash, command: "**", paths: [".", "**"]}
- {id: spelled, allow: bash, command: ["git init **", "tar **"], paths: [".", "**"]}
"""

EXTRA: dict[str, dict[str, Any]] = {
    "read": {},
    "write": {"content": "EVIL"},
    "edit": {"edits": [{"old": "KEY", "new": "EVIL"}]},
    "grep": {"pattern": "KEY"},
    "find": {"pattern": "*"},
    "ls": {},
}


@pytest.fixture
def attack(run_json: Run, script: Write, policy: Write) -> Callable[..., list[dict[str, Any]]]:
    """Runs turns, each a list of calls, where nearly everything is granted; returns the calls as recorded."""

    def run(*turns: list[dict[str, Any]], env: dict[str, str] | None = None) -> list[dict[str, Any]]:
        model = script(json.dumps({"turns": [*({"tool_calls": turn} for turn in turns), {"text": "Done."}]}))
        flags = ("--policy", policy(EVERYTHING), "--model", model, "--sandbox", "off", "--fail-on-denied", "never")
        code, document = run_json(*flags, "Go.", env=env)
        assert (code, document["result"]["reason"]) == (0, "completed")
        calls: list[dict[str, Any]] = document["tool_calls"]
        assert len(calls) == sum(map(len, turns))
        return calls

    return run


Attack = Callable[..., list[dict[str, Any]]]


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command}}


def test_what_runs_later_cannot_be_brought_about_call_by_call(attack: Attack, workspace: Path) -> None:
    (workspace / "evil/workflows").mkdir(parents=True)
    (workspace / "evil/workflows/x.yml").write_text("EVIL")
    (workspace / "hooks").mkdir()
    (workspace / "hooks/pre-commit").write_text("EVIL")
    attempts = [
        "mkdir .github",
        "mkdir -p .github && cp -r evil/workflows .github",
        "mv evil .github",
        "cp -r evil n && mv n .github",
        "ln -s evil .github",
        "mkdir .git; cp -r hooks .git",
        "ln -s .git g && cp -r hooks g",
        "git init --template=hooks .",
        "tar cf e.tar evil && tar xf e.tar --transform=s/evil/.github/",
        "ln policy.yml p; echo EVIL > p",
        "mv policy.yml p",
        "cp hooks/pre-commit POLICY.YML",
    ]
    calls = attack(*([bash(command)] for command in attempts))
    assert {call["status"] for call in calls} == {"denied"}
    assert not (workspace / ".github").exists()
    assert not (workspace / ".git").exists()
    assert "EVIL" not in (workspace / "policy.yml").read_text()


@pytest.mark.parametrize("name", EXTRA)
def test_the_runners_files_and_the_kernels_are_closed_to_every_file_tool(
    attack: Attack, workspace: Path, name: str
) -> None:
    commands = workspace / "temp/_runner_file_commands"
    commands.mkdir(parents=True)
    (commands / "set_env_1").write_text("KEY=canary")
    (workspace / "in").symlink_to(commands)
    paths = [
        str(commands),
        str(commands / "set_env_1"),
        "temp/_runner_file_commands/set_env_1",
        "temp//./_runner_file_commands/set_env_1",
        "in/set_env_1",
        "in/../_runner_file_commands/set_env_1",
        "/proc/self/environ",
        "/proc/self/root/etc/hosts",
        "/dev/stdin",
        "/sys/kernel",
    ]
    env = {"RUNNER_TEMP": str(workspace / "temp"), "GITHUB_ENV": str(commands / "set_env_1")}
    calls = attack([{"name": name, "arguments": {"path": path, **EXTRA[name]}} for path in paths], env=env)
    assert {call["status"] for call in calls} == {"denied"}
    assert "canary" not in json.dumps([call["content"] for call in calls])
    assert (commands / "set_env_1").read_text() == "KEY=canary"


def test_spellings_that_hide_something_are_errors_and_the_run_goes_on(attack: Attack, workspace: Path) -> None:
    (workspace / "a").write_text("KEY")
    turn: list[dict[str, Any]] = [
        {"name": "read", "arguments_json": '{"path": "missing", "path": "a"}'},
        {"name": "write", "arguments_json": '{"path": "a", "content": "x", "content": "EVIL"}'},
        *(
            {"name": "write", "arguments": {"path": path, "content": "EVIL"}}
            for path in ("a\u200b", "\u202ea", "a\n", "")
        ),
        {"name": "write", "arguments_json": '{"path": "a\\u0000", "content": "EVIL"}'},
        *(
            {"name": name, "arguments": {"path": "a", "content": "EVIL"}}
            for name in ("write\u200b", "WRITE", "wr\u0456te")
        ),
    ]
    calls = attack(turn)
    assert {call["is_error"] for call in calls} == {True}
    assert {path.name for path in workspace.iterdir()} == {"a", "policy.yml", "script.yaml"}
    assert (workspace / "a").read_text() == "KEY"


def test_two_writes_to_one_file_in_one_batch_come_one_after_the_other(attack: Attack, workspace: Path) -> None:
    def write(letter: str) -> dict[str, Any]:
        return {"name": "write", "arguments": {"path": "a", "content": letter * 200_000}}

    calls = attack([write("a"), {"name": "read", "arguments": {"path": "a"}}, write("b"), write("c")])
    assert [call["status"] for call in calls] == ["ok"] * 4
    assert [call["content"][0]["text"].partition(" ")[0] for call in calls if call["tool"] == "write"] == [
        "Created",
        "Overwrote",
        "Overwrote",
    ]
    assert (workspace / "a").read_text() == "c" * 200_000


def test_an_edit_in_a_batch_sees_the_write_before_it_and_not_the_one_behind(attack: Attack, workspace: Path) -> None:
    def edit(old: str, new: str) -> dict[str, Any]:
        return {"name": "edit", "arguments": {"path": "a", "edits": [{"old": old, "new": new}]}}

    first, last = ({"name": "write", "arguments": {"path": "a", "content": text}} for text in ("one", "three"))
    calls = attack([first, edit("one", "two"), edit("three", "four"), edit("one", "five"), last])
    assert [call["status"] for call in calls] == ["ok", "ok", "error", "error", "ok"]
    assert (workspace / "a").read_text() == "three"
