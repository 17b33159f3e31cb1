import re
import subprocess
from pathlib import Path

import pytest

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.gathering.shell_globs import UnknownGlobError, expand_glob
from ci_agent.policy.shell.program import BoundExceededError

NAMES = [
    "a.txt",
    "b.txt",
    ".hidden.txt",
    "-n",
    "x y.txt",
    "[id].ts",
    "d/a.txt",
    "d/e/b.txt",
    ".git/config",
    "é.txt",
    "A.txt",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        file = tmp_path / "f" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "f" / "link").symlink_to(tmp_path / "f" / "d")
    (tmp_path / "f" / "dangling").symlink_to("nowhere")
    return tmp_path / "f"


PATTERNS = r"""
    * *.txt ?.txt d/* */ */* */a.txt **/*.txt [ab].txt [!a].txt [^a].txt [a-b]* [id].ts \[id].ts no*match no\*match
    ./*.txt d/../*.txt link/* dang* [ a[b \-* [a- []ab].txt []] .g*/c* *y.txt d/e/ nothing/* d/*/ x\ y* [A-Z].txt
    .h* .gi[t] [!.]* d/?.txt """


@pytest.mark.parametrize("pattern", re.split(r"(?<!\\)\s+", PATTERNS.strip()))
def test_a_glob_becomes_what_bash_makes_of_it(folder: Path, pattern: str) -> None:
    script = f"for word in {pattern}; do printf '%s\\0' \"$word\"; done"
    run = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True
    )
    assert sorted(expand_glob(pattern, folder, DiskBudget())) == sorted(run.stdout.decode().split("\0")[:-1])


def test_a_glob_for_hidden_files_may_mean_the_folder_above(folder: Path) -> None:
    assert expand_glob(".*", folder, DiskBudget()) == [".", "..", ".git", ".hidden.txt"]


def test_a_link_that_leads_to_itself_is_no_folder_of_a_glob(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    assert expand_glob("*/*.txt", folder, DiskBudget()) == ["d/a.txt", "link/a.txt"]


def test_an_absolute_glob_starts_at_the_root(folder: Path) -> None:
    assert expand_glob(f"{folder}/a.*", Path("/nowhere"), DiskBudget()) == [f"{folder}/a.txt"]


@pytest.mark.parametrize("pattern", ["[[:alpha:]]*", "[[.a.]]", "[a/b]", r"[a\]b]"])
def test_a_glob_that_might_be_read_differently_is_not_read(folder: Path, pattern: str) -> None:
    with pytest.raises(UnknownGlobError):
        expand_glob(pattern, folder, DiskBudget())


def test_a_glob_that_becomes_too_many_names_exceeds_a_bound(folder: Path) -> None:
    with pytest.raises(BoundExceededError, match="name fewer"):
        expand_glob("*", folder, DiskBudget(names=3))
