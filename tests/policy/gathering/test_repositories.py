"""What stands where git keeps its files may have been put there by a command."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ci_agent.policy.gathering.repositories import git_folder, tracked_names


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_enormous(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


ODD_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe that nobody writes to": os.mkfifo,
    "an endless device": make_endless,
    "a sparse terabyte": make_enormous,
    "a folder": os.mkdir,
    "bytes that are no text": lambda path: path.write_bytes(b"gitdir: \xff\0"),
}


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """What waits for a pipe is interrupted."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 10)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.mark.parametrize("make", ODD_FILES.values(), ids=ODD_FILES)
def test_attack_something_else_for_git(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / ".git")
    assert git_folder(tmp_path) == tmp_path / ".git"


@pytest.mark.parametrize("make", ODD_FILES.values(), ids=ODD_FILES)
def test_attack_something_else_for_the_index(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / ".git").mkdir()
    make(tmp_path / ".git" / "index")
    assert tracked_names(tmp_path) is None


def test_the_names_in_an_index_by_way_of_a_file_that_says_where_it_is(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--separate-git-dir", "elsewhere", "tree"], cwd=tmp_path, check=True)
    (tmp_path / "tree" / "a b").write_text("x")
    subprocess.run(["git", "add", "."], cwd=tmp_path / "tree", check=True)
    assert tracked_names(tmp_path / "tree") == ("a b",)
