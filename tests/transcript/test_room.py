"""Room on the disk is kept for a journal, where the file system can, and given back without a trace."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent.transcript import room
from ci_agent.transcript.room import KEPT_BYTES, Room, give_back_room

MIB = 1024 * 1024


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "journal", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    yield descriptor
    os.close(descriptor)


def kept_bytes(file: int) -> int:
    return os.fstat(file).st_blocks * 512


@pytest.fixture
def keeps(tmp_path: Path) -> None:
    """Skips where a file system keeps no room."""
    descriptor = os.open(tmp_path / "trial", os.O_RDWR | os.O_CREAT)
    Room(descriptor).keep(0)
    found = kept_bytes(descriptor)
    os.close(descriptor)
    if not found:
        pytest.skip("this file system keeps no room for a file")


@pytest.mark.usefixtures("keeps")
def test_room_is_kept_behind_the_end_and_given_back(file: int) -> None:
    kept = Room(file)
    kept.keep(0)
    assert kept_bytes(file) >= KEPT_BYTES
    os.write(file, b"a record\n")
    assert (os.fstat(file).st_size, os.pread(file, 100, 0)) == (9, b"a record\n")
    kept.release()
    assert kept_bytes(file) <= MIB
    assert (os.fstat(file).st_size, kept.is_short) == (9, False)


class Disk:
    """What the kernel would answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: int = 10**12) -> None:
        self.answer: int | None = None
        self.asked: list[int] = []
        monkeypatch.setattr(room, "_allocate", self.allocate)
        monkeypatch.setattr(room, "_affordable", lambda _: min(KEPT_BYTES, free // 4))

    def allocate(self, _descriptor: int, size: int) -> int | None:
        self.asked.append(size)
        return self.answer


def test_it_is_asked_for_again_when_half_is_used_and_counts_the_document(
    file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, kept = Disk(monkeypatch), Room(file)
    for size in (1000, 2000, MIB, 2 * MIB, 3 * MIB, 4 * MIB):
        kept.keep(size)
    assert disk.asked == [KEPT_BYTES + 3000, KEPT_BYTES + 9 * MIB]
    assert not kept.is_short


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_was_filled_meanwhile_makes_it_short_while_half_of_it_is_left(
    file: int, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    disk, kept = Disk(monkeypatch), Room(file)
    kept.keep(1000)
    disk.answer = code
    were_short = []
    for size in (2 * MIB, 3 * MIB, 4 * MIB):
        kept.keep(size)
        were_short.append(kept.is_short)
    assert were_short == [False, True, True]


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOSPC, errno.ENODEV])
def test_where_none_is_to_be_had_nothing_is_short_and_nobody_asks_again(
    file: int, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    disk, kept = Disk(monkeypatch), Room(file)
    disk.answer = code
    for size in (0, 100 * MIB):
        kept.keep(size)
    kept.release()
    assert (len(disk.asked), kept.is_short) == (1, False)


def test_a_small_disk_gives_a_quarter_of_what_is_free(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, kept = Disk(monkeypatch, free=4 * MIB), Room(file)
    kept.keep(0)
    assert disk.asked == [MIB]


def test_what_is_no_file_has_no_room() -> None:
    reader, writer = os.pipe()
    kept = Room(writer)
    kept.keep(100)
    kept.release()
    assert not kept.is_short
    os.close(reader)
    os.close(writer)


@pytest.mark.usefixtures("keeps")
def test_room_that_a_killed_run_left_is_given_back_once_nobody_writes_there(file: int, tmp_path: Path) -> None:
    os.write(file, b"a record\n")
    Room(file).keep(9)
    fcntl.flock(file, fcntl.LOCK_EX)
    give_back_room(tmp_path / "journal")
    assert kept_bytes(file) >= KEPT_BYTES
    fcntl.flock(file, fcntl.LOCK_UN)
    give_back_room(tmp_path / "journal")
    assert kept_bytes(file) <= MIB
    assert os.pread(file, 100, 0) == b"a record\n"


def test_where_no_journal_can_be_written_there_is_nothing_to_give_back(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "journal")
    for name in ("none", "link", "."):
        give_back_room(tmp_path / name)
    assert not (tmp_path / "journal").exists()
