"""Whatever changes about a file is seen, and nothing waits for a special one."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.precautions.fingerprints import MAX_BYTES_OF_A_FILE, changed_since, take_fingerprints

Change = Callable[[Path], object]


def rewrite_alike(path: Path) -> None:
    status = path.stat()
    path.write_text("anger")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_link(path: Path) -> None:
    copy = path.with_name("copy")
    path.rename(copy)
    path.symlink_to(copy)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("range\n"),
        lambda path: path.write_text(""),
        rewrite_alike,
        Path.unlink,
        replace_by_link,
        replace_by_pipe,
        lambda path: os.truncate(path, 2**40),
    ],
    ids=["longer", "empty", "as long, and as old", "gone", "a link to a copy", "a pipe", "a terabyte"],
)
def test_a_change_is_seen(tmp_path: Path, change: Change) -> None:
    path = tmp_path / "file"
    path.write_text("range")
    before = take_fingerprints([path])
    assert changed_since(before, [path]) == []
    change(path)
    assert changed_since(before, [path]) == [path]


def test_a_file_that_came_is_seen_and_one_that_was_only_written_again_is_not(tmp_path: Path) -> None:
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.write_text("same")
    before = take_fingerprints([there, missing])
    there.write_text("same")
    assert changed_since(before, [there, missing]) == []
    missing.touch()
    assert changed_since(before, [there, missing]) == [missing]


def test_in_a_folder_each_file_counts(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    before = take_fingerprints([tmp_path])
    (tmp_path / "a").write_text("A")
    (tmp_path / "b").unlink()
    (tmp_path / "d").touch()
    assert changed_since(before, [tmp_path]) == [tmp_path / name for name in "abd"]


def test_the_end_of_a_huge_file_counts_by_its_length_and_age(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.touch()
    os.truncate(path, MAX_BYTES_OF_A_FILE + 10)
    before = take_fingerprints([path])
    with path.open("r+b") as file:
        file.seek(MAX_BYTES_OF_A_FILE)
        file.write(b"x")
    assert changed_since(before, [path]) == [path]


def test_attack_set_back_the_clock_of_a_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.touch()
    os.truncate(path, MAX_BYTES_OF_A_FILE + 10)
    before, status = take_fingerprints([path]), path.stat()
    with path.open("r+b") as file:
        file.seek(MAX_BYTES_OF_A_FILE)
        file.write(b"canary")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert changed_since(before, [path]) == [path]


def test_attack_lead_a_link_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to("before")
    before = take_fingerprints([path])
    path.unlink()
    path.symlink_to("canary")
    assert changed_since(before, [path]) == [path]


def test_what_this_process_writes_to_as_its_stdout_is_its_own_to_change(tmp_path: Path) -> None:
    script = """if True:
        import sys
        from pathlib import Path
        from ci_agent.precautions.fingerprints import changed_since, take_fingerprints
        paths = [Path(path) for path in sys.argv[1:]]
        before = take_fingerprints(paths)
        print("a line of the run", flush=True)
        paths[1].write_text("a line of somebody else")
        print(*changed_since(before, paths))
    """
    summary, other = tmp_path / "summary", tmp_path / "other"
    with summary.open("a") as file:
        subprocess.run([sys.executable, "-c", script, summary, other], stdout=file, check=True)
    assert summary.read_text() == f"a line of the run\n{other}\n"


@pytest.mark.parametrize("look", ["open", "listdir"])
def test_what_cannot_be_looked_at_for_want_of_descriptors_is_not_said_to_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    (tmp_path / "a").write_text("a")
    before = take_fingerprints([tmp_path])

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, look, refuse)
    with pytest.raises(OSError, match="Too many open files"):
        changed_since(before, [tmp_path])
