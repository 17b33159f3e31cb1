"""The journal: one write a record, a chain that shows cuts and edits, one writer, nothing after a failure."""

import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ci_agent.errors import BusyError, ConfigurationError, RecordError
from ci_agent.json_types import JsonObject
from ci_agent.transcript.journal import Journal, open_journal_file, read_journal
from ci_agent.transcript.journal_lines import NO_RECORD, JournalContents, Problem, read_lines


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def written(path: Path, *records: tuple[str, JsonObject]) -> list[bytes]:
    """The lines of a journal with these records."""
    journal = open_journal_file(path, 0o600)
    for kind, fields in records:
        journal.append(kind, fields)
    journal.close()
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.json.journal"


@pytest.fixture
def lines(path: Path) -> list[bytes]:
    return written(path, ("run_start", {"a": 1}), ("note", {"b": "é\n"}), ("note", {}), ("run_end", {"c": None}))


def test_a_record_is_a_line_that_holds_its_number_and_the_hash_of_the_line_before(lines: list[bytes]) -> None:
    first, second, third, last = lines
    assert first == b'{"seq":1,"prev":"' + NO_RECORD.encode() + b'","kind":"run_start","a":1}\n'
    assert second.decode() == f'{{"seq":2,"prev":"{sha256(first[:-1])}","kind":"note","b":"é\\n"}}\n'
    assert third.decode() == f'{{"seq":3,"prev":"{sha256(second[:-1])}","kind":"note"}}\n'
    sealed = f'{{"seq":4,"prev":"{sha256(third[:-1])}","kind":"run_end","c":null'
    assert last.decode() == f'{sealed},"seal":"{sha256(sealed.encode())}"}}\n'


def test_to_sync_is_to_ask_the_disk_and_to_say_when_it_refuses(path: Path) -> None:
    read_end, write_end = os.pipe()  # takes records, and is nothing that could be on a disk
    journal = Journal(write_end, path)
    journal.append("run_start", {})
    with pytest.raises(RecordError, match="cannot be written: Invalid argument"):
        journal.sync()
    with pytest.raises(RecordError, match="Invalid argument"):
        journal.append("note", {})
    journal.close()
    os.close(read_end)


def test_what_was_written_reads_back_without_a_problem(path: Path, lines: list[bytes]) -> None:
    expected = JournalContents(tuple(map(json.loads, lines)), head=sha256(lines[-1][:-1]))
    assert read_journal(path) == expected
    assert expected.is_closed
    assert not read_lines(lines[:-1]).is_closed


def test_numbers_and_hash_are_known_while_writing(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    assert (journal.records, journal.head) == (0, NO_RECORD)
    assert journal.append("run_start", {}) == 1
    assert journal.append("note", {}) == 2
    contents = journal.read()
    assert (journal.records, journal.head) == (2, contents.head)
    assert journal.append("note", {}) == 3  # reading does not move the place where the next record goes
    assert [record["seq"] for record in journal.read().records] == [1, 2, 3]
    journal.close()


@pytest.mark.parametrize("size", range(1, 60, 7))
def test_a_torn_last_line_is_dropped_and_measured(lines: list[bytes], size: int) -> None:
    contents = read_lines([*lines[:2], lines[2][:size]])
    assert contents == JournalContents(read_lines(lines[:2]).records, sha256(lines[1][:-1]), dropped_bytes=size)


def test_a_line_without_its_end_was_not_acknowledged(lines: list[bytes]) -> None:
    assert len(read_lines([lines[0], lines[1][:-1]]).records) == 1


CHANGED = "does not continue the record before it: one of the two was changed"
NO_RECORD_THERE = "is no record"
SEAL_BROKEN = "was changed after it was written"


def misnumbered(line: int, number: int, expected: int) -> Problem:
    return Problem(f"has number {number}, expected {expected}: records are missing, repeated or out of order", line)


@pytest.mark.parametrize(
    ("damaged", "problems"),
    [
        pytest.param([0, (1, b"\xc3\xa9", b"e"), 2, 3], [Problem(CHANGED, 3)], id="edited"),
        pytest.param([0, 2, 3], [misnumbered(2, 3, 2)], id="line removed"),
        pytest.param([1, 2, 3], [misnumbered(1, 2, 1)], id="first removed"),
        pytest.param([0, 2, 1, 3], [misnumbered(2, 3, 2), misnumbered(3, 2, 4), misnumbered(4, 4, 3)], id="swapped"),
        pytest.param([0, 1, 1, 2, 3], [misnumbered(3, 2, 3)], id="repeated"),
        pytest.param([0, b"garbage\n", 2, 3], [Problem(NO_RECORD_THERE, 2), Problem(CHANGED, 3)], id="garbage"),
        pytest.param([0, b"\xff\n", 2, 3], [Problem(NO_RECORD_THERE, 2), Problem(CHANGED, 3)], id="no UTF-8"),
        pytest.param([0, b'{"seq":2,\n', 2, 3], [Problem(NO_RECORD_THERE, 2), Problem(CHANGED, 3)], id="cut inside"),
        pytest.param([0, b"\n", 1, 2, 3], [Problem(NO_RECORD_THERE, 2), misnumbered(3, 2, 3)], id="empty line"),
        pytest.param([b"[" * 100_000 + b"\n", 1, 2, 3], [Problem(NO_RECORD_THERE, 1), Problem(CHANGED, 2)], id="deep"),
        pytest.param(
            [b'{"seq":1,"seq":1,"kind":"x"}\n', 1, 2, 3],
            [Problem(NO_RECORD_THERE, 1), Problem(CHANGED, 2)],
            id="key twice",
        ),
        pytest.param([0, 1, 2, (3, b'"c":null', b'"c":true')], [Problem(SEAL_BROKEN, 4)], id="end edited"),
        pytest.param([0, 1, 2, (3, b',"seal"', b',"sael"')], [Problem(SEAL_BROKEN, 4)], id="seal renamed"),
        pytest.param([], [], id="empty"),
    ],
)
def test_every_damage_shows(
    lines: list[bytes], damaged: list[int | bytes | tuple[int, bytes, bytes]], problems: list[Problem]
) -> None:
    """Each part of `damaged` is a line by its position, one with something replaced, or foreign bytes."""
    found = read_lines(
        lines[part] if isinstance(part, int) else part if isinstance(part, bytes) else lines[part[0]].replace(*part[1:])
        for part in damaged
    )
    assert list(found.problems) == problems


def test_a_changed_byte_anywhere_in_a_closed_journal_shows(lines: list[bytes]) -> None:
    data = b"".join(lines)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        contents = read_lines(changed.splitlines(keepends=True))
        assert contents.problems or contents.dropped_bytes or not contents.is_closed, (at, data[at : at + 20])


def test_a_record_is_one_write(path: Path) -> None:
    # A datagram socket in place of the file keeps each write apart.
    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    journal = Journal(writer.detach(), path)
    for number in range(1, 4):
        journal.append("note", {"text": "x" * 500})
        assert json.loads(reader.recv(100_000))["seq"] == number
    journal.close()
    reader.close()


def test_a_listener_gets_each_line_once_it_stands_in_the_file(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    heard: list[tuple[str, bool]] = []
    journal.on_record = lambda line: heard.append((line, path.read_text().endswith(line)))
    journal.append("run_start", {"text": "é"})
    journal.append("run_end", {})
    journal.close()
    assert heard == [(line, True) for line in path.read_text().splitlines(keepends=True)]


def test_many_threads_write_one_chain(path: Path) -> None:
    journal = open_journal_file(path, 0o600)

    def write() -> None:
        for number in range(50):
            journal.append("note", {"number": number})

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    contents = journal.read()
    assert (len(contents.records), contents.problems, contents.head) == (400, (), journal.head)
    journal.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_after_a_write_that_failed_nothing_more_is_written(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    journal.append("run_start", {})
    os.dup2(os.open("/dev/full", os.O_WRONLY), journal._descriptor)
    message = f"^the run's journal '{path}' cannot be written: No space left on device$"
    with pytest.raises(RecordError, match=message):
        journal.append("note", {})
    os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), journal._descriptor)  # room again: still nothing
    for attempt in (lambda: journal.append("note", {}), journal.sync):
        with pytest.raises(RecordError, match=message):
            attempt()
    assert len(path.read_bytes().splitlines()) == 1
    journal.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_first_record_that_cannot_be_written_is_a_matter_of_configuration(path: Path) -> None:
    journal = Journal(os.open("/dev/full", os.O_WRONLY), path)
    with pytest.raises(ConfigurationError, match="cannot be written: No space left on device"):
        journal.append("run_start", {})
    journal.close()


SHORT_WRITE = """
import resource, signal, sys
from pathlib import Path
from ci_agent.errors import RecordError
from ci_agent.transcript.journal import open_journal_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = open_journal_file(Path(sys.argv[1]), 0o600)
journal.append("run_start", {"text": "x" * 500})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    journal.append("note", {"text": "y" * 500})
except RecordError as error:
    print(error)
"""


def test_a_record_that_was_taken_only_in_part_is_a_failure_and_a_torn_tail(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHORT_WRITE, str(path)], capture_output=True, text=True, timeout=110, check=True
    )
    first = path.read_bytes().splitlines(keepends=True)[0]
    left = 1000 - len(first)
    assert done.stdout.startswith(f"the run's journal '{path}' cannot be written: only {left} of ")
    contents = read_journal(path)
    assert (len(contents.records), contents.dropped_bytes, contents.problems) == (1, left, ())


def test_a_second_writer_and_a_reader_are_told_that_the_run_lives(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    with pytest.raises(BusyError, match="another run is writing"):
        open_journal_file(path, 0o600)
    with pytest.raises(BusyError, match="a run is still writing"):
        read_journal(path)
    journal.close()
    open_journal_file(path, 0o600).close()


HOLD = """
import sys, time
from pathlib import Path
from ci_agent.transcript.journal import open_journal_file
journal = open_journal_file(Path(sys.argv[1]), 0o600)
journal.append("run_start", {})
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError):
            open_journal_file(path, 0o600)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    journal = open_journal_file(path, 0o600)
    assert len(journal.read().records) == 1
    journal.close()


def test_of_many_that_start_at_once_exactly_one_gets_the_file(path: Path) -> None:
    program = HOLD.replace("time.sleep(60)", "sys.stdin.read()")
    command = [sys.executable, "-c", program, str(path)]
    starts = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    said = [start.stdout.readline() for start in starts if start.stdout]  # the winner then waits, a loser has ended
    assert sorted(said) == [""] * 5 + ["held\n"]
    errors = [start.communicate("")[1] for start in starts]
    assert sorted("BusyError" in error for error in errors) == [False] + [True] * 5
    assert len(read_journal(path).records) == 1


def test_a_file_that_was_removed_between_opening_and_locking_is_not_taken(path: Path) -> None:
    first = open_journal_file(path, 0o600)
    late = os.open(path, os.O_RDWR)
    path.unlink()
    first.close()
    fcntl.flock(late, fcntl.LOCK_EX | fcntl.LOCK_NB)  # what a late starter would hold: nobody's file
    journal = open_journal_file(path, 0o600)
    assert journal.append("run_start", {}) == 1
    assert path.stat().st_size > 0
    journal.close()
    os.close(late)


def test_the_file_is_private(path: Path) -> None:
    written(path, ("run_start", {}))
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["link", "hard link", "folder", "pipe"])
def test_what_no_run_has_made_is_not_written_to(path: Path, kind: str) -> None:
    other = path.with_name("other")
    other.write_text("precious")
    match kind:
        case "link":
            path.symlink_to(other)
        case "hard link":
            path.hardlink_to(other)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    with pytest.raises(ConfigurationError, match=str(path)):
        open_journal_file(path, 0o600)
    assert other.read_text() == "precious"


def test_an_untouched_journal_is_intact(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    journal.append("run_start", {})
    journal.append("note", {})
    assert journal.is_intact()
    journal.close()


@pytest.mark.parametrize("damage", ["appended", "edited", "cut", "removed", "replaced"])
def test_a_journal_that_a_tool_touched_is_not_intact(path: Path, damage: str) -> None:
    journal = open_journal_file(path, 0o600)
    journal.append("run_start", {"text": "aaaa"})
    journal.append("note", {})
    data = path.read_bytes()
    match damage:
        case "appended":
            path.write_bytes(data + b"{}\n")
        case "edited":
            path.write_bytes(data.replace(b"aaaa", b"bbbb"))
        case "cut":
            path.write_bytes(data.splitlines(keepends=True)[0])
        case "removed":
            path.unlink()
        case "replaced":
            path.unlink()
            path.write_bytes(data)
    assert not journal.is_intact()
    journal.close()


def test_a_removed_journal_can_still_be_read(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    journal.append("run_start", {})
    path.unlink()
    assert len(journal.read().records) == 1
    journal.close()


def test_an_unreadable_journal_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_journal(tmp_path / "none.journal")
    assert str(error.value) == f"cannot read the journal '{tmp_path}/none.journal': No such file or directory"


def test_whoever_listens_gets_each_line_once_it_is_written(path: Path) -> None:
    journal = open_journal_file(path, 0o600)
    heard: list[bool] = []
    journal.on_record = lambda line: heard.append(path.read_bytes().endswith(line.encode()))
    journal.append("run_start", {"a": "é"})
    journal.append("note", {})
    journal.close()
    assert heard == [True, True]
