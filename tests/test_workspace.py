"""One interpretation of a path: links in kernel order, and text that hides what it names refused."""

import os
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.workspace import InvalidPathError, Workspace, open_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "ws"
    (root / "src/deep").mkdir(parents=True)
    (root / "src/a.py").write_text("a")
    return open_workspace(root)


def test_relative_paths_start_at_the_root_or_where_the_caller_says(workspace: Workspace) -> None:
    root = workspace.root
    assert [workspace.resolve(text) for text in (".", "src/a.py", "./src//deep/..", "src/new/file")] == [
        root,
        root / "src/a.py",
        root / "src",
        root / "src/new/file",
    ]
    assert workspace.resolve("a.py", start=root / "src") == root / "src/a.py"


def test_a_link_is_followed_before_the_dots_behind_it(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside/inner").mkdir(parents=True)
    os.symlink(tmp_path / "outside/inner", workspace.root / "link")
    assert workspace.resolve("link/../secret") == tmp_path / "outside/secret"


def test_a_dangling_link_leads_to_its_target(workspace: Workspace, tmp_path: Path) -> None:
    os.symlink(tmp_path / "not-there/yet", workspace.root / "dangling")
    assert workspace.resolve("dangling") == tmp_path / "not-there/yet"


@pytest.mark.parametrize("text", ["loop", "loop/beneath", "src/../loop/x"])
def test_a_loop_of_links_is_refused(workspace: Workspace, text: str) -> None:
    os.symlink("loop", workspace.root / "loop")
    with pytest.raises(InvalidPathError, match="cannot be resolved"):
        workspace.resolve(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the path is empty"),
        ("a\0b", "invisible character U+0000"),
        ("a\nb", "invisible character U+000A"),
        ("src/\u202egnp.exe", "invisible character U+202E"),
        ("a\u200bb", "invisible character U+200B"),
        ("a\u00a0b", "invisible character U+00A0"),
        ("a\ud800", "invisible character U+D800"),
        ("a\u200db", "invisible character U+200D"),
        ("x" * 5000, "longer than 4096 bytes"),
    ],
)
def test_text_that_is_no_honest_path_is_refused(workspace: Workspace, text: str, problem: str) -> None:
    with pytest.raises(InvalidPathError, match=problem.replace("+", r"\+")):
        workspace.resolve(text)


@pytest.mark.parametrize("text", ["grüße.txt", "名前", "a b%20c", "-rf", "👩\u200d👩\u200d👧.txt", "~/x", "$HOME"])
def test_unusual_names_are_names(workspace: Workspace, text: str) -> None:
    assert workspace.resolve(text) == workspace.root / text


def test_inside_and_outside_are_told_apart_by_whole_names(workspace: Workspace, tmp_path: Path) -> None:
    assert [workspace.contains(path) for path in (workspace.root, workspace.root / "a", tmp_path / "ws-evil")] == [
        True,
        True,
        False,
    ]
    assert workspace.display(workspace.root / "src/a.py") == "src/a.py"
    assert workspace.display(tmp_path / "x") == str(tmp_path / "x")


def test_a_workspace_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problems = []
    for name in ("missing", "file", "nul\0"):
        with pytest.raises(ConfigurationError) as refused:
            open_workspace(tmp_path / name)
        problems.append(str(refused.value).replace(str(tmp_path), "DIR"))
    assert problems == [
        "workspace 'DIR/missing' does not exist or cannot be entered",
        "workspace 'DIR/file' is not a folder",
        "workspace 'DIR/nul\\x00' does not exist or cannot be entered",
    ]


def test_a_workspace_reached_through_a_link_has_its_real_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    assert open_workspace(tmp_path / "link") == Workspace(tmp_path.resolve() / "real")
