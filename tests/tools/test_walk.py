"""The walk and its .gitignore, held against git itself."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.walk import Entry, walk
from ci_agent.workspace import open_workspace

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def access(root: Path) -> FileAccess:
    return FileAccess(open_workspace(root), lambda _effect, _path: True)


def paths_beneath(root: Path, start: str = "") -> list[str]:
    unlisted: list[str] = []
    entries = list(walk(access(root), root / start, CancelToken(), unlisted))
    assert unlisted == []
    return [entry.path for entry in entries]


def create(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


GIT = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def not_ignored_by_git(root: Path) -> list[str]:
    """What `git check-ignore` does not report, by itself or by a folder above."""
    subprocess.run(["git", "init", "-q"], cwd=root, env=GIT, check=True)
    relative = [path.relative_to(root) for path in root.rglob("*")]
    return without_ignored_by_git(root, sorted(str(path) for path in relative if ".git" not in path.parts))


def without_ignored_by_git(root: Path, paths: list[str]) -> list[str]:
    told = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=root,
        env=GIT,
        input="\0".join(paths).encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    ignored = {os.fsdecode(name) for name in told.stdout.split(b"\0") if name}
    above = [[str(part) for part in Path(path).parents] for path in paths]
    return [path for path, parents in zip(paths, above, strict=True) if not {path, *parents} & ignored]


def test_entries_come_sorted_with_their_kinds_and_links_are_not_followed(tmp_path: Path) -> None:
    create(tmp_path, {"b/x": "", "b/a/y": "", ".hidden": "", "a": "", ".git/config": "", "b/.git": "gitdir: elsewhere"})
    (tmp_path / "link").symlink_to("b")
    os.mkfifo(tmp_path / "pipe")
    assert list(walk(access(tmp_path), tmp_path, CancelToken(), [])) == [
        Entry(".hidden", "file"),
        Entry("a", "file"),
        Entry("b", "folder"),
        Entry("b/a", "folder"),
        Entry("b/a/y", "file"),
        Entry("b/x", "file"),
        Entry("link", "link"),
        Entry("pipe", "other"),
    ]


TREE = {
    "README.md": "",
    "build/out.o": "",
    "src/build/keep.c": "",
    "src/main.c": "",
    "src/main.o": "",
    "src/gen/a.py": "",
    "src/gen/keep/b.py": "",
    "logs/a.log": "",
    "logs/deep/b.log": "",
    "logs/important.log": "",
    "docs/a b ": "",
    "docs/#hash": "",
    "docs/!bang": "",
    "docs/back\\slash": "",
    "doc.txt": "",
    "x/doc.txt/z": "",
}


@needs_git
@pytest.mark.parametrize(
    "rules",
    [
        {".gitignore": "*.o\n/build\n"},
        {".gitignore": "build/\n"},
        {".gitignore": "build\n!src/build\n"},
        {".gitignore": "*.log\n!important.log\n"},
        {".gitignore": "logs/\n!logs/important.log\n"},
        {".gitignore": "logs/*\n!logs/important.log\n"},
        {".gitignore": "**/gen/**\n!**/keep/\n"},
        {".gitignore": "src/**/b.py\n"},
        {".gitignore": "doc.txt/\n"},
        {".gitignore": "/doc.txt\n"},
        {".gitignore": "docs/a b \\ \n", "docs/.gitignore": "\\#hash\n\\!bang\n"},
        {".gitignore": "docs/a b\\ \n"},
        {".gitignore": "docs/a b   \n# comment\n\n   \n"},
        {".gitignore": "back\\\\slash\n"},
        {".gitignore": "*.o\r\n/build\r\n"},
        {".gitignore": "\ufeff*.o\n"},
        {".gitignore": "*\n!*/\n!*.c\n"},
        {".gitignore": "*.o\n", "src/.gitignore": "!main.o\ngen\n", "src/gen/.gitignore": "!*\n"},
        {"src/.gitignore": "/main.c\nbuild/\n", "logs/.gitignore": "*\n!.gitignore\n"},
        {".gitignore": "[a-m]ain.[!o]\n[[:upper:]]*\n"},
        {".gitignore": "src/\n!src/main.c\n"},
        {".gitignore": "/*\n!/src\n/src/*\n!/src/main.c\n"},
        {".gitignore": "/\n//\n!\n\\\n[\nbuild/**\n"},
        {".gitignore": "**\n"},
        {".gitignore": "/**\n!README.md\n"},
        {".gitignore": "a**\n***\n!**/deep/**\n"},
        {".gitignore": "src/***/b.py\nlo**gs\nsrc\\/main.c\n"},
    ],
    ids=lambda rules: repr(rules[next(iter(rules))]),
)
def test_git_ignores_the_same(tmp_path: Path, rules: dict[str, str]) -> None:
    create(tmp_path, {**TREE, **rules})
    expected = not_ignored_by_git(tmp_path)
    assert sorted(paths_beneath(tmp_path)) == expected


GLOB_PIECES = r"""
a b ab * ** *** ? / / [ab] [!a] [^b] [a- ] []a] [a-c] [c-a] [[:alpha:]] [[:nope:]] [a[:digit:]-] [\]] [!/] [--0]
\ \* \a ! # {a,b}
"""
GLOBS = st.lists(st.sampled_from([*GLOB_PIECES.split(), " "]), min_size=1, max_size=6).map("".join)
NAMES = ["a", "b", "ab", "ba", "c", "*", "]", "-", " ", "!", "#", "a ", "{a,b}", "é"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A tree with all short names at two depths, and its paths."""
    root = tmp_path_factory.mktemp("repository")
    create(root, {f"{first}/{second}/a": "" for first in NAMES for second in NAMES[:4]})
    create(root, {f"{second}/{first}/file": "" for first in NAMES for second in NAMES[:2]})
    create(root, {".gitignore": "", "a/.gitignore": ""})
    return root, not_ignored_by_git(root)


@needs_git
@settings(deadline=None, max_examples=40)
@given(rules=st.lists(GLOBS, min_size=1, max_size=8), inner=st.lists(GLOBS, max_size=3))
def test_git_ignores_the_same_whatever_the_globs(
    repository: tuple[Path, list[str]], rules: list[str], inner: list[str]
) -> None:
    root, paths = repository
    create(root, {".gitignore": "\n".join(rules), "a/.gitignore": "\n".join(inner)})
    assert sorted(paths_beneath(root)) == without_ignored_by_git(root, paths)


def test_names_and_globs_that_are_not_utf8_match_byte_for_byte(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9")).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (tmp_path / "caf\u00e9").touch()
    (tmp_path / ".gitignore").write_bytes(b"caf\xe9\n")
    assert paths_beneath(tmp_path) == [".gitignore", "caf\u00e9"]


def test_rules_above_the_start_count_up_to_the_workspace(tmp_path: Path) -> None:
    create(tmp_path, {".gitignore": "*.py\n", "ws/.gitignore": "*.o\n/sub/gone\n", "ws/sub/.gitignore": "!keep.o\n"})
    create(tmp_path, {f"ws/sub/{name}": "" for name in ("a.o", "keep.o", "gone", "a.py", "deep/b.o", "deep/gone")})
    entries = walk(access(tmp_path / "ws"), tmp_path / "ws/sub", CancelToken(), [])
    assert [entry.path for entry in entries] == [".gitignore", "a.py", "deep", "deep/gone", "keep.o"]


def test_outside_the_workspace_the_rules_of_the_repository_count(tmp_path: Path) -> None:
    create(tmp_path, {".gitignore": "*\n", "repo/.gitignore": "*.o\n", "repo/.git/HEAD": "", "repo/sub/a.o": ""})
    create(tmp_path, {"repo/sub/b": "", "plain/sub/a.o": "", "ws/x": ""})
    files = access(tmp_path / "ws")
    assert list(walk(files, tmp_path / "repo/sub", CancelToken(), [])) == [Entry("b", "file")]
    assert list(walk(files, tmp_path / "plain/sub", CancelToken(), [])) == [Entry("a.o", "file")]


def test_a_folder_that_is_ignored_is_walked_when_it_is_the_start(tmp_path: Path) -> None:
    create(tmp_path, {".gitignore": "/node_modules\n", "node_modules/pkg/index.js": ""})
    assert paths_beneath(tmp_path) == [".gitignore"]
    assert paths_beneath(tmp_path, "node_modules") == ["pkg", "pkg/index.js"]


def test_an_ignore_file_that_is_a_link_or_a_pipe_says_nothing(tmp_path: Path) -> None:
    create(tmp_path, {"rules": "*\n", "a": "", "sub/b": ""})
    (tmp_path / ".gitignore").symlink_to("rules")
    os.mkfifo(tmp_path / "sub/.gitignore")
    assert paths_beneath(tmp_path) == [".gitignore", "a", "rules", "sub", "sub/.gitignore", "sub/b"]


def test_thousands_of_rules_still_count(tmp_path: Path) -> None:
    rules = "".join(f"**/generated{number}/**/*.tmp\nname{number}*\n" for number in range(5_000))
    create(tmp_path, {".gitignore": rules, "generated4999/x/a.tmp": "", "name4321.txt": "", "other": ""})
    assert paths_beneath(tmp_path) == [".gitignore", "generated4999", "generated4999/x", "other"]


def test_folders_too_deep_or_closed_are_reported_and_passed_by(tmp_path: Path) -> None:
    (tmp_path / "a" / Path(*["d"] * 202)).mkdir(parents=True)
    unlisted: list[str] = []
    entries = list(walk(access(tmp_path), tmp_path, CancelToken(), unlisted))
    assert unlisted == ["a/" + "d/" * 200]
    assert len(entries) == 201


def test_an_endless_folder_is_listed_in_part_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ci_agent.tools.walk.MAX_FOLDER_ENTRIES", 3)  # a hundred thousand files take too long to make
    create(tmp_path, {f"many/{number}": "" for number in range(9)})
    unlisted: list[str] = []
    entries = list(walk(access(tmp_path), tmp_path, CancelToken(), unlisted))
    assert (len(entries), unlisted) == (1 + 4, ["many/"])


def test_a_start_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        with pytest.raises(ToolError, match=f"^{name} cannot be listed"):
            list(walk(access(tmp_path), tmp_path / name, CancelToken(), []))


def test_a_walk_stops_when_it_is_cancelled(tmp_path: Path) -> None:
    create(tmp_path, {"a": "", "b": "", "c": ""})
    cancel = CancelToken()
    entries = walk(access(tmp_path), tmp_path, cancel, [])
    assert next(entries) == Entry("a", "file")
    cancel.cancel("enough")
    with pytest.raises(Cancelled):
        next(entries)
