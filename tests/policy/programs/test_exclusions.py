"""What exclusions leave out, held against git itself."""

import re
import subprocess
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from ci_agent.policy.effects import Exclusion
from ci_agent.policy.programs.exclusions import read_exclusion

NAMES = [
    *("a", ".env", "a.lock", "docs.md", "docs/a", "docs/b.md", "docsx/y", "sub/.env", "sub/a.lock", "sub/docs/z"),
    *("sub/deep/q.md", "s.d/a", "sub/s.d/b", "x y/z", "_x", "ü.md", "A.lock", "*x", "we?rd"),
]
MAGIC = [
    *(":!", ":^", ":!:", ":!/", ":^/:", ":!!", ":(exclude)", ":(exclude,top)", ":(exclude,glob)"),
    *(":(top,exclude,glob)", ":(exclude,literal)", ":(exclude,icase)", ":(exclude,attr:x)", ":(top)", ":"),
]
PATHS = [
    *("docs", "docs/", "./docs", "./docs/", "*", "**", "**/", "*.md", "*.lock", "**/.env", ".env", "/docs", "s.d*"),
    *("*/.env", "sub/**", "sub/*", "sub/**/b", "d?cs/a", "?.md", "docs*/", "../docs", "_x", "*x", "./*", "sub//a.lock"),
    *("a*b", "**.md", "[a]", "\\a", ".", "", "su*/deep/*.md", "**/docs/**", "we?rd"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which every file differs from the index."""
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    for content in ("old\n", "new\n"):
        for name in NAMES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        if content == "old\n":
            subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    return root


def _printed(folder: Path, command: Sequence[str], pathspec: str) -> set[str]:
    words = ["git", "-c", "core.quotepath=false", *command, "--", ".", pathspec]
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return set(run.stdout.splitlines()) if run.returncode == 0 else set()


def _left_out(exclusion: Exclusion | None, within: str) -> set[str]:
    if exclusion is None:
        return set()
    inside = {name: name.removeprefix(within) for name in NAMES if name.startswith(within)}
    return {name for name, path in inside.items() if re.fullmatch(exclusion.pattern, path, re.DOTALL)}


@pytest.mark.parametrize("folder", [".", "sub"])
@pytest.mark.parametrize("magic", MAGIC)
def test_git_prints_nothing_of_what_is_excluded_for_certain(tree: Path, magic: str, folder: str) -> None:
    within = "" if folder == "." else f"{folder}/"
    for path in PATHS:
        exclusion = read_exclusion(magic + path)
        left_out = (
            _left_out(exclusion, within) if exclusion is None or folder == "." or not exclusion.from_top else set()
        )
        if left_out:
            assert left_out & _printed(tree / folder, ["diff", "--name-only"], magic + path) == set(), magic + path
            assert left_out & _printed(tree / folder, ["grep", "-l", "--full-name", "new"], magic + path) == set(), path


def test_what_people_write_is_understood() -> None:
    usual = [":!docs", ":^docs/", ":(exclude)*.lock", ":!*.min.js", ":!:docs", ":(exclude,glob)**/.env", ":!src/*.snap"]
    assert all(read_exclusion(text) for text in usual)
    assert read_exclusion(":!/docs") == Exclusion("docs(?:/.*)?", from_top=True)


def test_what_is_no_exclusion_for_certain_leaves_nothing_out() -> None:
    doubtful = ["docs", "!docs", ":docs", ":/docs", ":(top)docs", ":!_x", ":![a]", ":!\\a", ":!../x", ":!x//y", ":!"]
    assert not any(read_exclusion(text) for text in [*doubtful, ":(exclude,icase)x", ":(exclude)", ":!/./x", ":!a/./b"])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("magic", [":!", ":(exclude,glob)"])
@pytest.mark.parametrize("stars", range(2, 8))
def test_no_exclusion_makes_a_decision_take_long(magic: str, stars: int) -> None:
    """Where every start of a match has to be tried, with some 250 characters, four stars took seconds, six hours."""
    for text in ("*a" * stars + "*b", "**/a/" * stars + "b", "**/*a*" * stars + "b", "*?" * stars + "*b"):
        exclusion = read_exclusion(magic + text)
        for name in ("a" * 250, "a/" * 500, "/" + "a" * 250):
            assert exclusion is None or not re.fullmatch(exclusion.pattern, name, re.DOTALL)


def test_every_form_is_among_those_that_are_tried() -> None:
    tried = [read_exclusion(magic + path) for magic, path in product(MAGIC, PATHS)]
    assert len([each for each in tried if each is not None]) > 100
