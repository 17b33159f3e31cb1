"""That git refuses a repository is said before a run finds out call by call."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.precautions import git_refusals
from ci_agent.precautions.git_refusals import why_git_refuses
from ci_agent.process import child_environment, open_processes

OF_ANOTHER_USER = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "inner").mkdir()
    return folder


def refusal(folder: Path, home: Path, more: Mapping[str, str]) -> str | None:
    environment = {**child_environment({"PATH": os.environ["PATH"], "HOME": str(home)}), **more}
    with open_processes() as processes:
        return why_git_refuses(folder, environment, processes, CancelToken())


def test_git_that_works_is_no_news(repository: Path, home: Path) -> None:
    assert refusal(repository / "inner", home, {}) is None


def test_nothing_is_said_where_there_is_no_repository(tmp_path: Path, home: Path) -> None:
    assert refusal(tmp_path, home, OF_ANOTHER_USER) is None


def test_nothing_is_said_where_there_is_no_git(repository: Path, home: Path, tmp_path: Path) -> None:
    assert refusal(repository, home, {"PATH": str(tmp_path)}) is None


def test_a_repository_of_another_user_is_told_of_with_what_helps(repository: Path, home: Path) -> None:
    said = refusal(repository / "inner", home, OF_ANOTHER_USER)
    assert said == (
        "git refuses to work in the workspace, so every git command will fail: detected dubious ownership in "
        f"repository at '{repository}'. It belongs to another user: run ci-agent as its owner, or first "
        f"`git config --global --add safe.directory '{repository}'` with the HOME of the run"
    )
    subprocess.run(
        ["git", "config", "--global", "--add", "safe.directory", repository],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        check=True,
    )
    assert refusal(repository / "inner", home, OF_ANOTHER_USER) is None


def test_a_broken_repository_is_told_of(repository: Path, home: Path) -> None:
    (repository / ".git" / "HEAD").unlink()
    said = refusal(repository, home, {})
    assert said is not None
    assert said.startswith("git refuses to work in the workspace, so every git command will fail: not a git repository")
    assert said.endswith(f"Look at {repository / '.git'}, or check the repository out again")


def test_git_that_does_not_answer_is_told_of_and_left(
    repository: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_refusals, "_WITHIN_S", 0.1)
    (tmp_path / "bin").mkdir()
    git = tmp_path / "bin" / "git"
    git.write_text("#!/bin/sh\nread answer < /dev/zero\n")
    git.chmod(0o755)
    said = refusal(repository, home, {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert said is not None
    assert "it does not answer within 0.1 s. Look at " in said
