"""What is believed to be ignored, git ignores, whatever the file says and however long it is."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.gathering.ignored_files import is_ignored, read_ignoring
from ci_agent.policy.shell.program import BoundExceededError

_PIECES = st.sampled_from(
    [
        *("a", "b", ".env", "*", "**", "?", "a*", "*.env", "[ab]", "\\a", "/", "!", "#", " ", "\t", "\r"),
        "\x1c",
        "\x85",
        "é",
    ]
)
_LINES = st.lists(st.lists(_PIECES, min_size=1, max_size=5).map("".join), min_size=1, max_size=4)
_PATHS = ["a", "b", ".env", "a/b", "a/.env", "b/.env", "x/a/b", "x.env", "é", "a/é", "aa/b/.env"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    return top


@given(lines=_LINES)
@settings(max_examples=150, deadline=None)
def test_git_ignores_what_is_believed_to_be_ignored(repository: Path, lines: list[str]) -> None:
    (repository / ".gitignore").write_bytes("\n".join(lines).encode())
    asked = "\0".join(_PATHS)
    done = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "-z", "--stdin", "--no-index"],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = set(done.stdout.split("\0"))
    budget = DiskBudget()
    rule = read_ignoring(repository / ".gitignore", "", budget)
    assert rule is not None
    believed = {path for path in _PATHS if is_ignored(path, [rule], budget, is_folder=False)}
    assert believed <= ignored


def test_an_ordinary_list_is_believed(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("# of python\n*.pyc\n__pycache__/\n/build\ndocs/**/x.md\n.env\r\n!keep.pyc\n")
    budget = DiskBudget()
    rule = read_ignoring(tmp_path / ".gitignore", "", budget)
    assert rule is not None
    paths = ["a.pyc", "src/a.pyc", "build", "src/build", "docs/a/b/x.md", ".env", "keep.pyc", "__pycache__"]
    assert [path for path in paths if is_ignored(path, [rule], budget, is_folder=False)] == [
        *("a.pyc", "src/a.pyc", "build", "docs/a/b/x.md", ".env")
    ]
    assert is_ignored("src/__pycache__", [rule], budget, is_folder=True)


def test_a_list_that_is_too_long_ignores_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n" * 3_000)
    budget = DiskBudget()
    rule = read_ignoring(tmp_path / ".gitignore", "", budget)
    assert rule is not None
    assert not is_ignored("a", [rule], budget, is_folder=False)


def test_a_list_made_to_take_long_ends_at_the_bound(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("\n".join(f"*aaaa*{number}" for number in range(1_500)))
    budget = DiskBudget()
    rule = read_ignoring(tmp_path / ".gitignore", "", budget)
    assert rule is not None
    names = ("a" * 200 + f"{number}b" for number in range(100))
    with pytest.raises(BoundExceededError):
        sum(is_ignored(name, [rule], budget, is_folder=False) for name in names)
