"""The revision to compare with, as a clone tells it."""

import subprocess
from pathlib import Path

import pytest

from ci_agent.starter.base import find_base


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@x")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return folder


def test_the_default_branch_of_a_clone_is_it(origin: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(origin), "clone")
    git(tmp_path / "clone", "checkout", "-q", "-b", "topic")
    assert find_base(tmp_path / "clone") == "origin/trunk"


def test_without_it_a_usual_name_that_was_fetched_is_it(origin: Path, tmp_path: Path) -> None:
    git(origin, "branch", "master")
    git(tmp_path, "init", "-q", "here")
    git(tmp_path / "here", "remote", "add", "origin", str(origin))
    git(tmp_path / "here", "fetch", "-q", "origin")
    assert find_base(tmp_path / "here") == "origin/master"


def test_without_those_what_the_branch_follows_is_it(origin: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(origin), "clone")
    git(tmp_path / "clone", "remote", "set-head", "origin", "--delete")
    assert find_base(tmp_path / "clone") == "origin/trunk"


def test_a_repository_of_its_own_has_its_own_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "master")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    assert find_base(tmp_path) == "master"


def test_where_nothing_tells_it_is_the_usual_name(tmp_path: Path) -> None:
    assert find_base(tmp_path) == "origin/main"
    assert find_base(tmp_path / "missing") == "origin/main"
