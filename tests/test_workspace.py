"""One interpretation of a path: links in kernel order, and text that hides what it names refused."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "src/a.py",
        "/src//a.py",
        "/etc/passwd",
        "..",
        "../outside",
        "src/../../x",
        "up/x",
        "up/../x",
        "etc/x",
        "new/./x",
    ],
)
def test_a_path_that_begins_with_the_root_leads_where_python_says(
    workspace: Workspace, tmp_path: Path, text: str
) -> None:
    (tmp_path / "outside/inner").mkdir(parents=True)
    os.symlink("../outside/inner", workspace.root / "up")
    os.symlink("/etc", workspace.root / "etc")
    absolute = f"{workspace.root}/{text}"
    assert workspace.resolve(absolute) == Path(os.path.realpath(absolute))
    assert workspace.resolve(absolute, start=Path("/")) == Path(os.path.realpath(absolute))


@pytest.mark.parametrize("text", ["/", "//etc", "/usr/../etc", "etc", "///"])
def test_the_root_of_all_may_be_a_workspace(text: str) -> None:
    assert Workspace(Path("/")).resolve(text) == Path(os.path.realpath(f"/{text.strip('/')}"))


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


NAMES = ["a", "b", "..", ".", "l1", "l2", "l3", "missing"]


@given(
    links=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join), min_size=3, max_size=3),
    text=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map("/".join),
)
def test_paths_lead_where_python_too_says_they_do(links: list[str], text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = open_workspace(folder)
        (workspace.root / "a/b").mkdir(parents=True)
        (workspace.root / "b").touch()
        for number, target in enumerate(links, 1):
            (workspace.root / f"l{number}").symlink_to(target)
        try:
            resolved = workspace.resolve(text)
        except InvalidPathError:
            with pytest.raises(OSError, match=r"symbolic links|No such file|Not a directory"):
                os.stat(f"{workspace.root}/{text}")
        else:
            assert str(resolved) == os.path.realpath(f"{workspace.root}/{text}")


def test_a_chain_of_as_many_links_as_the_kernel_follows_is_followed(workspace: Workspace) -> None:
    for number in range(41):
        os.symlink(f"l{number - 1}" if number else "src", workspace.root / f"l{number}")
    assert workspace.resolve("l39") == workspace.root / "src"
    with pytest.raises(InvalidPathError, match="Too many levels"):
        workspace.resolve("l40")


def test_a_link_too_deep_to_look_at_hides_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """A shell that went there by several steps would follow it."""
    (tmp_path / "secret").write_text("secret")
    folder = os.open(workspace.root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 203, dir_fd=folder)
        above, folder = folder, os.open("d" * 203, os.O_RDONLY, dir_fd=folder)
        os.close(above)
    os.symlink(tmp_path / "secret", "link", dir_fd=folder)
    os.close(folder)
    for text in ("/".join(["d" * 203] * 20) + "/link", "/".join(["d" * 203] * 20) + "/link/.."):
        with pytest.raises(InvalidPathError, match="cannot be resolved: File name too long"):
            workspace.resolve(text)
    with pytest.raises(InvalidPathError, match="cannot be resolved: File name too long"):
        workspace.resolve("link", start=workspace.root / "/".join(["d" * 203] * 20))


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A folder of a user who is not above permissions, and that user for the time of the test."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        yield Path(folder).resolve()
        if is_root:
            os.seteuid(0)


def test_a_folder_that_its_owner_could_open_again_hides_no_link(ordinary_user: Path) -> None:
    (ordinary_user / "closed").mkdir()
    (ordinary_user / "closed/link").symlink_to("/etc")
    (ordinary_user / "closed").chmod(0)
    workspace = open_workspace(ordinary_user)
    with pytest.raises(InvalidPathError, match="'closed/link/hosts' cannot be resolved: Permission denied"):
        workspace.resolve("closed/link/hosts")
    (ordinary_user / "closed").chmod(0o700)
    assert workspace.resolve("closed/link/hosts") == Path("/etc/hosts").resolve()


def test_a_folder_closed_by_somebody_else_is_taken_by_its_name(ordinary_user: Path) -> None:
    if os.access("/root", os.X_OK) or not os.path.isdir("/root"):
        pytest.skip("there is no folder of another user that is closed")
    assert open_workspace(ordinary_user).resolve("/root/.ssh/id_rsa") == Path("/root/.ssh/id_rsa")
