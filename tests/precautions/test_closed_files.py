import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.precautions.closed_files import MAX_FILES, watch_closed_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no sandbox closes a file")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_what_is_made_where_nothing_was_is_known_from_the_next_look(folder: Path) -> None:
    secret = folder / "secret"
    with watch_closed_files([secret]) as closed:
        secret.write_text("x")
        assert closed.displaced() == []
        secret.rename(folder / "plain")
        assert closed.displaced() == [secret]


def test_a_folder_that_a_command_has_closed_is_no_bug_and_what_was_in_it_stays_known(folder: Path) -> None:
    secret = folder / "conf" / "secret"
    secret.parent.mkdir()
    secret.write_text("x")
    own = os.getuid()
    with watch_closed_files([secret, folder / "conf" / "nothing"]) as closed:
        secret.parent.chmod(0)
        try:
            if own == 0:
                os.setresuid(65534, 65534, 0)  # root looks everywhere
            assert closed.displaced() == []
        finally:
            os.setresuid(own, own, own)
            secret.parent.chmod(0o700)
        secret.rename(folder / "plain")
        assert closed.displaced() == [secret]


def test_what_was_displaced_stays_so(folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("x")
    with watch_closed_files([secret]) as closed:
        secret.rename(folder / "plain")
        assert closed.displaced() == [secret]
        (folder / "plain").rename(secret)
        assert closed.displaced() == [secret]


def test_names_that_were_there_before_do_not_count(folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("x")
    os.link(secret, folder / "other")
    with watch_closed_files([secret]) as closed:
        assert closed.displaced() == []
        os.link(secret, folder / "third")
        assert closed.displaced() == [secret]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "in" / "a").unlink(),
        lambda folder: ((folder / "in" / "a").unlink(), (folder / "in").rmdir()),
        lambda folder: (folder / "in" / "deeper").mkdir(),
    ],
    ids=["a file is gone", "a folder is gone", "a folder has a folder more"],
)
def test_what_comes_and_goes_in_a_closed_folder_moves_nothing(folder: Path, change: Callable[[Path], object]) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "a").write_text("x")
    with watch_closed_files([folder / "in"]) as closed:
        change(folder)
        assert closed.displaced() == []


def test_a_folder_of_very_many_files_takes_no_more_descriptors_than_some(folder: Path) -> None:
    (folder / "in").mkdir()
    for number in range(2 * MAX_FILES):
        (folder / "in" / str(number)).write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    with watch_closed_files([folder / "in"]) as closed:
        assert len(os.listdir("/proc/self/fd")) == before + MAX_FILES
        (folder / "in").rename(folder / "out")
        assert folder / "in" in closed.displaced()
    assert len(os.listdir("/proc/self/fd")) == before
