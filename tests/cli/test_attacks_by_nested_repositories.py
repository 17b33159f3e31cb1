"""The real command without a sandbox, in a workspace with a poisoned repository in it: git runs nothing of it."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

RULES = """
policy: 1
rules:
  - {id: look, allow: bash, command: ["cd **", "git {status,diff} **", "git -C * status **"]}
  - {id: build, allow: bash, command: "python3 build.py"}
  - {id: push, allow: bash, command: ["git push **", "timeout 60 git push **"], paths: ["**"]}
  - {id: spelled, allow: bash, command: "git -c protocol.file.allow=always push **", paths: ["**"]}
"""

Run = Callable[..., Any]


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def sub(workspace: Path, canary: Path) -> Path:
    """A repository in which `git status` would run a filter."""
    folder = workspace / "vendor" / "sub"
    folder.mkdir(parents=True)
    commands = f"""
        git init -q . && git config user.name a && git config user.email a@b.invalid
        echo '*.x filter=poison' > .gitattributes; echo one > a.x; git add . && git commit -qm one
        git config filter.poison.clean 'touch {canary}; cat'
        echo two > a.x
    """
    subprocess.run(["bash", "-ec", commands], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def run(ci_agent: Callable[..., CompletedProcess[str]], tmp_path: Path) -> Run:
    """One call for each command; gives the calls of the record."""

    def call(*commands: str, env: dict[str, str] | None = None) -> Any:
        calls = [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]} for command in commands]
        (tmp_path / "script.yaml").write_text(json.dumps({"turns": [*calls, {"text": "done"}]}))
        (tmp_path / "policy.yml").write_text(RULES)
        flags = ("--policy", "../policy.yml", "--model", "scripted:../script.yaml", "--sandbox", "off")
        done = ci_agent("run", *flags, "--fail-on-denied", "never", "Go.", env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["tool_calls"]

    return call


def test_attack_look_at_a_vendored_checkout(run: Run, sub: Path, canary: Path) -> None:
    calls = run("git -C vendor/sub status", "cd vendor/sub && git diff", "cd vendor/sub && git status --short")
    assert [call["status"] for call in calls] == ["ok"] * 3
    assert "a.x" in calls[2]["content"][0]["text"]
    assert not canary.exists()
    subprocess.run(["git", "diff"], cwd=sub, check=False, capture_output=True)
    assert canary.exists()  # the control


def test_attack_make_a_folder_a_repository_during_the_run(run: Run, sub: Path, workspace: Path, canary: Path) -> None:
    """A build may write what it likes; it gets nothing more by it from a command that only looks."""
    (workspace / "build.py").write_text("import os\nos.rename('kept', 'vendor/sub/.git')\n")
    (sub / ".git").rename(workspace / "kept")
    calls = run("git -C vendor/sub status", "python3 build.py", "cd vendor/sub && git diff")
    assert [call["status"] for call in calls][1:] == ["ok", "ok"]
    assert not canary.exists()


def test_attack_bring_a_git_and_a_sudo_of_ones_own(run: Run, workspace: Path, sub: Path, canary: Path) -> None:
    """What ci-agent asks about repositories it asks no program of the workspace, though PATH leads there."""
    (workspace / "bin").mkdir()
    (workspace / "bin" / "git").write_text(f"#!/bin/sh\necho $PPID > {canary}.asked\ntouch {canary}.$$\nexit 0\n")
    (workspace / "bin" / "git").chmod(0o755)
    (workspace / "bin" / "sudo").symlink_to("git")
    (workspace / "build.py").write_text("")
    (workspace / ".git").symlink_to(sub / ".git")
    run("python3 build.py", env={"PATH": f"{workspace / 'bin'}:{os.environ['PATH']}"})
    assert not list(canary.parent.glob("canary*"))


def test_attack_have_git_write_elsewhere(run: Run, sub: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "a.x").write_text("secret-canary\n")
    subprocess.run(["git", "config", "core.worktree", str(tmp_path / "home")], cwd=sub, check=True)
    (call,) = run("cd vendor/sub && git diff")
    assert call["status"] == "error"
    assert "says that its files are elsewhere" in call["content"][0]["text"]
    assert "secret-canary" not in json.dumps(call)


@pytest.mark.parametrize("where", ["brought.git", "{workspace}/brought.git", "poisoned"])
def test_attack_push_to_a_repository_that_a_commit_brings(run: Run, workspace: Path, canary: Path, where: str) -> None:
    """Whoever takes a push runs the hooks of its own repository, and knows nothing of our settings."""
    commands = """
        git init -q . && git config user.name a && git config user.email a@b.invalid
        echo one > a; git add . && git commit -qm one
        git init -q --bare brought.git; git remote add poisoned ./brought.git
    """
    subprocess.run(["bash", "-ec", commands], cwd=workspace, check=True, capture_output=True)
    hook = workspace / "brought.git" / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {canary}\n")
    hook.chmod(0o755)
    push = f"push {where.format(workspace=workspace)} HEAD:refs/heads/new"
    calls = run(f"git {push}", f"timeout 60 git {push}")
    assert not canary.exists()
    assert ["transport 'file' not allowed" in call["content"][0]["text"] for call in calls] == [True, True]
    run(f"git -c protocol.file.allow=always {push}")
    assert canary.exists()  # the control, and the way for who wants it
