import os
from pathlib import Path

from ci_agent.sandbox.removal import remove_tree


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


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")
