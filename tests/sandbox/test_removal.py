import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ci_agent.sandbox.removal import remove_folder


def remove_tree(top: Path, within_s: float = 60.0) -> bool:
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return remove_folder(descriptor, within_s)
    finally:
        os.close(descriptor)


def make_levels(top: Path, number: int) -> None:
    """One in another, deeper than any path can say."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(top)
        for _ in range(number):
            os.mkdir("in")
            os.chdir("in")
        Path("file").write_text("x")
        os.chmod(".", 0)
    finally:
        os.chdir(here)
        os.close(here)


def test_attack_five_thousand_levels(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    make_levels(top, 5_000)
    remove_tree(top)
    assert os.listdir(tmp_path) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    top, kept = tmp_path / "top", tmp_path / "kept"
    (top / "in").mkdir(parents=True)
    kept.mkdir(mode=0o750)
    (kept / "file").write_text("x")
    (top / "in" / "folder").symlink_to(kept)
    (top / "file").symlink_to(kept / "file")
    os.link(kept / "file", top / "in" / "name")
    os.mkfifo(top / "in" / "pipe")
    (top / os.fsdecode(b"\xff\n")).write_text("x")
    remove_tree(top)
    assert (os.listdir(tmp_path), os.listdir(kept), kept.stat().st_mode & 0o777) == (["kept"], ["file"], 0o750)


def test_many_folders_beside_each_other(tmp_path: Path) -> None:
    top = tmp_path / "top"
    for number in range(300):
        (top / str(number) / "in").mkdir(parents=True)
    remove_tree(top)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_was_moved_meanwhile_is_removed_where_it_is_and_not_what_took_its_place(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "in").mkdir(parents=True)
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    top.rename(tmp_path / "moved")
    top.mkdir()
    (top / "precious").touch()
    assert remove_folder(descriptor, 60.0)
    os.close(descriptor)
    assert (os.listdir(tmp_path), os.listdir(top)) == (["top"], ["precious"])


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    top.rmdir()
    assert not remove_folder(descriptor, 60.0)
    os.close(descriptor)


def test_when_the_time_is_up_the_rest_stays(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "in" / "more").mkdir(parents=True)
    (top / "in" / "file").touch()
    assert not remove_tree(top, within_s=-1.0)
    assert sorted(os.listdir(top / "in")) == ["file", "more"]
    assert remove_tree(top)


def test_what_cannot_be_removed_keeps_nothing_else(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "a" / "deep" / "deeper").mkdir(parents=True)
    fixed = top / "a" / "fixed"
    for file in (fixed, top / "a" / "b", top / "a" / "deep" / "deeper" / "c"):
        file.touch()
    if (
        shutil.which("chattr") is None
        or subprocess.run(["chattr", "+i", fixed], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs root, and a file system whose files can be made immutable")
    try:
        assert not remove_tree(top)
        assert [*top.rglob("*")] == [top / "a", fixed]
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)
    assert remove_tree(top)
