"""The real command in a process of its own, in a folder of its own, with an environment that holds nothing else."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from forked_command import ForkedCommand, Run


class CIAgent(Protocol):
    def __call__(
        self, *args: str | bytes, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


@pytest.fixture
def run_command(forked_command: ForkedCommand) -> Run:
    """How the command is run; a module of tests that look at the process itself has another one in its place."""
    return forked_command.run


@pytest.fixture
def ci_agent(workspace: Path, environment: dict[str, str], run_command: Run) -> CIAgent:
    """Runs the command in the workspace and waits for it."""

    def call(
        *args: str | bytes, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return run_command(args, cwd=workspace, env={**environment, **(env or {})}, stdin=stdin)

    return call


@pytest.fixture
def script(workspace: Path) -> Callable[[str], str]:
    """Writes a script for the model and returns what `--model` takes."""

    def write(text: str) -> str:
        (workspace / "script.yaml").write_text(text)
        return "scripted:script.yaml"

    return write


@pytest.fixture
def policy(workspace: Path) -> Callable[[str], str]:
    """Writes a policy of these rules and returns its path."""

    def write(rules: str) -> str:
        (workspace / "policy.yml").write_text(f"policy: 1\n{rules}")
        return "policy.yml"

    return write


@pytest.fixture
def run_json(ci_agent: CIAgent) -> Callable[..., tuple[int, Any]]:
    """Runs `ci-agent run` and returns its exit code and the document on stdout."""

    def run(*args: str, **more: Any) -> tuple[int, Any]:
        done = ci_agent("run", *args, **more)
        return done.returncode, json.loads(done.stdout)

    return run
