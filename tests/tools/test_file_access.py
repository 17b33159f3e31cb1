import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.atomic_write import FileVersion, version_of, write_atomically
from ci_agent.tools.file_access import FileAccess, kind_of, open_file, open_folder
from ci_agent.workspace import open_workspace

ROUNDS = 6_000
"""At least; the races go on until each outcome has been seen, on a machine that is busy with other things too."""

MAX_ROUNDS = 1_000_000


SWAP_FOR_EVER = """
import os, shutil, sys
name, spare, target = sys.argv[1:]

def until_it_works(action, *arguments):
    while True:
        try:
            return action(*arguments)
        except OSError:  # a writer has created the folder that it missed
            shutil.rmtree(name, ignore_errors=True)

print("ready", flush=True)
while True:
    os.rename(name, spare)
    until_it_works(os.symlink, target, name)
    os.unlink(name)
    until_it_works(os.rename, spare, name)
"""
"""Puts the real folder and a link to the target at `name` in turn, as fast as can be."""


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[FileAccess]:
    """A workspace whose folder `current` is, half of the time, a link to a folder outside."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "current").mkdir(parents=True)
    outside.mkdir()
    (root / "current/file").write_text("inside")
    (outside / "file").write_text("outside")
    arguments = [str(root / "current"), str(root / "spare"), str(outside)]
    with subprocess.Popen([sys.executable, "-c", SWAP_FOR_EVER, *arguments], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield FileAccess(open_workspace(root), lambda _effect, path: root in path.parents)
        assert process.poll() is None, "the links were not swapped to the end"
        process.kill()


def test_reading_never_leaves_what_was_permitted_while_links_are_swapped(swapped: FileAccess) -> None:
    path = swapped.workspace.root / "current/file"
    seen = {"inside": 0, "refused": 0}
    rounds = 0
    while rounds < ROUNDS or (0 in seen.values() and rounds < MAX_ROUNDS):
        rounds += 1
        try:
            with open_file(swapped, path) as file:
                seen[file.read().decode()] += 1
        except ToolError:
            seen["refused"] += 1
    assert seen["inside"] > 0
    assert seen["refused"] > 0
    assert sum(seen.values()) == rounds


def test_writing_never_leaves_what_was_permitted_while_links_are_swapped(swapped: FileAccess, tmp_path: Path) -> None:
    path = swapped.workspace.root / "current/new"
    written = rounds = 0
    while rounds < ROUNDS // 10 or (written == 0 and rounds < MAX_ROUNDS):  # each waits for the disk twice
        rounds += 1
        try:
            write_atomically(swapped, path, b"x", CancelToken())
            written += 1
        except ToolError:
            pass
    assert written > 0
    assert [entry.name for entry in (tmp_path / "outside").iterdir()] == ["file"]
    assert (tmp_path / "outside/file").read_text() == "outside"


def test_listing_never_leaves_the_workspace_while_links_are_swapped(swapped: FileAccess, tmp_path: Path) -> None:
    (tmp_path / "outside/only-outside").touch()
    path = swapped.workspace.root / "current"
    listed = rounds = 0
    while rounds < ROUNDS or (listed == 0 and rounds < MAX_ROUNDS):
        rounds += 1
        try:
            with open_folder(swapped, path) as descriptor:
                assert os.listdir(descriptor) == ["file"]
            listed += 1
        except ToolError:
            pass
    assert listed > 0


def test_a_link_that_took_the_files_place_is_not_followed(files: FileAccess) -> None:
    root = files.workspace.root
    (root / "real").write_text("x")
    (root / "link").symlink_to("real")
    (root / "folder").mkdir()
    (root / "folder-link").symlink_to("folder")
    with (
        pytest.raises(ToolError, match=r"^link became a symlink while it was being opened; try again\.$"),
        open_file(files, root / "link"),
    ):
        pass
    with pytest.raises(ToolError, match=r"^link became a symlink while it was being opened; try again\.$"):
        write_atomically(files, root / "link", b"y", CancelToken())
    with pytest.raises(
        ToolError,
        match=r"cannot be written: Too many levels of symbolic links\. A symlink appeared in the path; try again",
    ):
        write_atomically(files, root / "folder-link/a", b"y", CancelToken())
    assert (root / "real").read_text() == "x"


def test_no_descriptor_is_left_open(files: FileAccess) -> None:
    root = files.workspace.root
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").touch()
    os.mkfifo(root / "pipe")
    before = len(os.listdir("/dev/fd"))
    for path in ("a/b/file", "a/x/file", "pipe", "a/b", "a/b/file/c"):
        try:
            with open_file(files, root / path):
                pass
            write_atomically(files, root / path, b"", CancelToken())
        except ToolError:
            pass
    assert len(os.listdir("/dev/fd")) == before


def test_a_file_that_changed_meanwhile_is_not_overwritten(files: FileAccess) -> None:
    path = files.workspace.root / "a"
    path.write_text("one")
    seen = version_of(path.stat())
    path.write_text("other")
    for expected in (seen, FileVersion(0, 0, 0, 0)):
        with pytest.raises(ToolError, match=r"^a was changed by someone else meanwhile; read it again"):
            write_atomically(files, path, b"mine", CancelToken(), expected=expected)
    assert path.read_text() == "other"
    assert write_atomically(files, path, b"mine", CancelToken(), expected=version_of(path.stat())) is False


def test_names_in_messages_show_what_is_invisible(files: FileAccess) -> None:
    root = files.workspace.root
    assert files.show(root / "a\n\x1b[0m") == "a\\n\\x1b[0m"
    assert files.show(root) == "."
    assert files.show(Path("/etc/hosts")) == "/etc/hosts"


def test_kinds_have_names() -> None:
    assert [kind_of(mode) for mode in (stat.S_IFDIR, stat.S_IFIFO | 0o644, stat.S_IFREG, 0)] == [
        "a folder",
        "a named pipe",
        "a file",
        "something unknown",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "/proc/self/root/etc/hosts",
        "/proc/self/cwd/a",
        "/proc/thread-self/root",
        "/dev/stdin",
        "/dev/fd/0",
        "/sys/../etc/hosts",
        "//proc//self/./cwd",
        "../" * 40 + "proc/self/cwd/a",
        "link/a",
    ],
)
def test_no_path_leads_through_the_kernels_folders_to_somewhere_else(files: FileAccess, text: str) -> None:
    (files.workspace.root / "a").touch()
    (files.workspace.root / "link").symlink_to("/proc/self/cwd")
    with pytest.raises(ToolError, match=r" is out of reach: the file tools never open /proc, /sys or /dev\.$"):
        files.resolve(text)
