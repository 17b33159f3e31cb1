"""Where a record stands: refused before anything starts when it cannot be kept, tidy when the run has ended."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.errors import BusyError, ConfigurationError, RecordError
from ci_agent.events import AgentEvent, ToolExecutionEnd
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.transcript.document import amend_result
from ci_agent.transcript.journal import Journal, read_journal
from ci_agent.transcript.place import Place, find_place, finish_record, open_journal, replace_record
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.run_facts import RunEnding
from ci_agent.transcript.verify import verify

StartRecording = Callable[[Journal], Recorder]
RecordRun = Callable[[Path], JsonObject]

IS_ROOT = os.geteuid() == 0


def killed_run(transcript: Path, start_recording: StartRecording, events: list[AgentEvent]) -> bytes:
    """A run that ends in the middle without a word; returns its journal."""
    place = find_place(transcript)
    journal, _ = open_journal(place)
    recorder = start_recording(journal)
    last = next(number for number, event in enumerate(events) if isinstance(event, ToolExecutionEnd))
    for event in events[: last + 1]:
        recorder(event)
    journal.close()
    return place.journal.read_bytes()


def finished_run(place: Place, start_recording: StartRecording, *, keep_journal: bool = False) -> JsonObject:
    journal, _ = open_journal(place)
    recorder = start_recording(journal)
    recorder.run_end(RunEnding("completed", 0))
    return finish_record(journal, place, keep_journal=keep_journal).document


def test_the_journal_stands_beside_the_transcript_and_goes_when_the_document_is_placed(
    tmp_path: Path, start_recording: StartRecording
) -> None:
    place = find_place(tmp_path / "t.json")
    assert place == Place(tmp_path / "t.json.journal", tmp_path / "t.json")
    document = finished_run(place, start_recording)
    assert os.listdir(tmp_path) == ["t.json"]
    assert parse_json((tmp_path / "t.json").read_text()) == document


def test_the_journal_stays_when_asked(tmp_path: Path, start_recording: StartRecording) -> None:
    finished_run(find_place(tmp_path / "t.json"), start_recording, keep_journal=True)
    assert sorted(os.listdir(tmp_path)) == ["t.json", "t.json.journal"]


def test_a_journal_that_nobody_asked_for_does_not_stay(start_recording: StartRecording) -> None:
    place = find_place(None)
    assert place.folder is not None
    finished_run(place, start_recording, keep_journal=True)
    assert not place.folder.exists()


def test_a_transcript_called_jsonl_is_the_journal_itself(tmp_path: Path, start_recording: StartRecording) -> None:
    place = find_place(tmp_path / "t.jsonl")
    assert (place, place.is_product) == (Place(tmp_path / "t.jsonl"), True)
    document = finished_run(place, start_recording)
    assert os.listdir(tmp_path) == ["t.jsonl"]
    assert read_journal(tmp_path / "t.jsonl").is_closed
    assert document["result"]["exit_code"] == 0


def test_without_a_transcript_the_journal_is_private_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_recording: StartRecording
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = find_place(None)
    assert os.listdir(tmp_path) == []
    journal, _ = open_journal(place)
    assert place.folder is not None
    assert place.folder.stat().st_mode & 0o777 == 0o700
    start_recording(journal).run_end(RunEnding("completed", 0))
    document = finish_record(journal, place).document
    assert document["result"]["reason"] == "completed"
    assert os.listdir(tmp_path) == []


def test_paths_are_absolute_and_their_folders_free_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert find_place("link/t.json").document == tmp_path / "real" / "t.json"
    assert find_place(Path("t.json")).document == tmp_path / "t.json"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing/t.json", "the folder of the transcript '{}' does not exist: create '{folder}/missing'"),
        ("file/t.json", "the folder of the transcript '{}' does not exist: create '{folder}/file'"),
        ("folder", "the transcript '{}' is a folder: name a file in it"),
        ("folder/", "the transcript '{}' is a folder: name a file in it"),
        ("pipe", "the transcript '{}' is a link or a device: it is put in place by renaming, which would replace that"),
        ("link", "the transcript '{}' is a link or a device: it is put in place by renaming, which would replace that"),
        ("n" * 300, "the transcript '{}' cannot be written: File name too long"),
        ("\0", "the transcript '{}' cannot be written: its name contains a NUL"),
    ],
)
def test_what_can_hold_no_transcript_is_refused_before_anything_starts(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    given = f"{tmp_path}/{name}"
    with pytest.raises(ConfigurationError) as error:
        find_place(given)
    assert str(error.value) == problem.replace("{}", given.replace("\0", "\\x00")).replace("{folder}", str(tmp_path))


@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "/dev/stdout", "/dev/stderr"])
def test_a_device_is_never_replaced_by_a_transcript(device: str) -> None:
    if not os.path.exists(device):
        pytest.skip(f"this system has no {device}")
    with pytest.raises(ConfigurationError, match="is a link or a device"):
        find_place(device)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_starts(tmp_path: Path) -> None:
    folder = Path("/proc") if IS_ROOT else tmp_path / "read-only"
    if IS_ROOT and not folder.is_dir():
        pytest.skip("root may write everywhere, and there is no /proc")
    if not IS_ROOT:
        folder.mkdir(mode=0o500)
    place = find_place(folder / "t.json")
    with pytest.raises(ConfigurationError, match=r"^cannot open the run's journal .* for writing: "):
        open_journal(place)


def test_a_run_without_a_usable_temporary_folder_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(ConfigurationError, match=r"the temporary folder .* cannot be made: No such file or directory"):
        open_journal(find_place(None))


STICKY = """
import os, sys
from ci_agent.errors import ConfigurationError
from ci_agent.transcript.place import find_place
os.setuid(65534)
try:
    find_place(sys.argv[1])
except ConfigurationError as error:
    print(error)
"""


@pytest.mark.skipif(not IS_ROOT, reason="only root can make another user's file")
def test_another_users_file_in_a_sticky_folder_is_refused_before_the_run(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    tmp_path.chmod(0o1777)
    taken = tmp_path / "t.json"
    taken.write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", STICKY, taken], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.stdout == f"the transcript '{taken}' belongs to another user and could not be replaced\n", done.stderr


def test_a_second_run_on_the_same_transcript_is_told_so_and_changes_nothing(
    tmp_path: Path, start_recording: StartRecording
) -> None:
    place = find_place(tmp_path / "t.json")
    journal, _ = open_journal(place)
    start_recording(journal)
    before = place.journal.read_bytes()
    with pytest.raises(BusyError, match=re.escape(f"another run is writing '{place.journal}'")):
        open_journal(place)
    assert place.journal.read_bytes() == before
    journal.close()


def test_what_a_killed_run_left_is_recovered_and_never_overwritten(
    tmp_path: Path, start_recording: StartRecording, events: list[AgentEvent]
) -> None:
    transcript = tmp_path / "t.json"
    killed_run(transcript, start_recording, events)
    journal, first = open_journal(find_place(transcript))
    assert first == tmp_path / "t.json.recovered.json"
    content = first.read_bytes()
    assert journal.read().records == ()
    start_recording(journal)
    journal.close()  # killed again, just after its start
    journal, second = open_journal(find_place(transcript))
    assert second == tmp_path / "t.json.recovered-2.json"
    assert first.read_bytes() == content
    journal.close()
    recovered = [parse_json(path.read_text()) for path in (first, second)]
    assert [(run["result"]["reason"], len(run["tool_calls"])) for run in recovered] == [("unknown", 3), ("unknown", 0)]


def test_a_run_that_ended_but_was_killed_before_its_document_stood_is_recovered_whole(
    tmp_path: Path, start_recording: StartRecording
) -> None:
    place = find_place(tmp_path / "t.json")
    journal, _ = open_journal(place)
    start_recording(journal).run_end(RunEnding("limit", 6))
    journal.close()
    journal, recovered = open_journal(place)
    journal.close()
    assert recovered is not None
    document = parse_json(recovered.read_text())
    assert (document["integrity"]["complete"], document["result"]["exit_code"]) == (True, 6)


def test_what_was_being_written_when_a_run_was_killed_is_removed_by_the_next(
    tmp_path: Path, start_recording: StartRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = find_place(tmp_path / "t.json")
    finished_run(place, start_recording)

    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # nothing is done any more by who was killed
        journal, _ = open_journal(place)
        start_recording(journal).run_end(RunEnding("completed", 0))
        with pytest.raises(KilledError):
            finish_record(journal, place)
        journal.close()
    (tmp_path / ".ci-agent-of-somebody-else.tmp").touch()
    assert len(os.listdir(tmp_path)) == 4
    finished_run(place, start_recording)
    assert sorted(os.listdir(tmp_path)) == [".ci-agent-of-somebody-else.tmp", "t.json", "t.json.recovered.json"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_a_record_is_recovered_where_there_are_no_hard_links_and_replaces_nothing_there(
    tmp_path: Path,
    start_recording: StartRecording,
    events: list[AgentEvent],
    monkeypatch: pytest.MonkeyPatch,
    code: int,
) -> None:
    def link(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    killed_run(tmp_path / "t.json", start_recording, events)
    (tmp_path / "t.json.recovered.json").write_text("precious")
    journal, recovered = open_journal(find_place(tmp_path / "t.json"))
    journal.close()
    assert recovered == tmp_path / "t.json.recovered-2.json"
    assert parse_json(recovered.read_text())["result"]["reason"] == "unknown"
    assert (tmp_path / "t.json.recovered.json").read_text() == "precious"


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o644), (0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_record_is_written_by_its_owner_alone_and_read_by_whom_the_umask_lets(
    tmp_path: Path, start_recording: StartRecording, name: str, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        finished_run(find_place(tmp_path / name), start_recording, keep_journal=True)
    finally:
        os.umask(before)
    assert (tmp_path / name).stat().st_mode & 0o777 == mode
    if name == "t.json":
        assert (tmp_path / "t.json.journal").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("keep_journal", [False, True])
def test_the_document_of_a_run_that_has_ended_can_be_replaced(
    tmp_path: Path, start_recording: StartRecording, keep_journal: bool
) -> None:
    place = find_place(tmp_path / "t.json")
    document = finished_run(place, start_recording, keep_journal=keep_journal)
    before = sorted(os.listdir(tmp_path))
    replace_record(tmp_path / "t.json", amend_result(document, 1, "nobody took it"))
    assert sorted(os.listdir(tmp_path)) == before
    assert parse_json((tmp_path / "t.json").read_text())["result"]["exit_code"] == 1
    assert verify(tmp_path / "t.json") == []


def test_a_document_is_not_replaced_once_another_run_has_begun_there(
    tmp_path: Path, start_recording: StartRecording
) -> None:
    place = find_place(tmp_path / "t.json")
    document = finished_run(place, start_recording)
    journal, _ = open_journal(place)
    start_recording(journal)
    before = (tmp_path / "t.json").read_bytes()
    replace_record(tmp_path / "t.json", amend_result(document, 1, "nobody took it"))
    assert (tmp_path / "t.json").read_bytes() == before
    assert len(journal.read().records) == 1
    journal.close()


def test_a_finished_journal_that_is_the_product_is_replaced_and_an_unfinished_one_recovered(
    tmp_path: Path, start_recording: StartRecording, events: list[AgentEvent]
) -> None:
    transcript = tmp_path / "t.jsonl"
    finished_run(find_place(transcript), start_recording)
    killed_run(transcript, start_recording, events)
    assert os.listdir(tmp_path) == ["t.jsonl"]
    journal, recovered = open_journal(find_place(transcript))
    assert recovered == tmp_path / "t.jsonl.recovered.json"
    assert journal.read().records == ()
    journal.close()


@pytest.mark.parametrize(
    "left", [b"", b"{", b'{"seq":1,"prev":"000', b'{"seq":1,"prev":"' + b"0" * 64 + b'","kind":"run_st']
)
def test_a_journal_without_one_whole_record_is_taken_over(
    tmp_path: Path, start_recording: StartRecording, left: bytes
) -> None:
    (tmp_path / "t.json.journal").write_bytes(left)
    journal, recovered = open_journal(find_place(tmp_path / "t.json"))
    assert recovered is None
    start_recording(journal)
    assert [record["seq"] for record in journal.read().records] == [1]
    journal.close()


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
@pytest.mark.parametrize("left", [b"precious", b"precious\n", b'{"a": 1}\n', b'{"seq":2,"kind":"note"}\n'])
def test_a_file_that_is_no_journal_is_never_emptied(tmp_path: Path, name: str, left: bytes) -> None:
    place = find_place(tmp_path / name)
    place.journal.write_bytes(left)
    with pytest.raises(ConfigurationError, match=r"exists and is no journal of ci-agent: remove it, or name another"):
        open_journal(place)
    assert place.journal.read_bytes() == left
    assert len(os.listdir(tmp_path)) == 1


def test_when_the_document_cannot_be_placed_the_journal_stays_for_recovery(
    tmp_path: Path, start_recording: StartRecording
) -> None:
    place = find_place(tmp_path / "t.json")
    journal, _ = open_journal(place)
    start_recording(journal).run_end(RunEnding("completed", 0))
    (tmp_path / "t.json").mkdir()
    with pytest.raises(RecordError, match="cannot be written: Is a directory"):
        finish_record(journal, place)
    journal.close()
    assert sorted(os.listdir(tmp_path)) == ["t.json", "t.json.journal"]
    assert read_journal(place.journal).is_closed


def test_a_journal_that_a_tool_damaged_is_made_a_document_from_its_copy(
    tmp_path: Path, start_recording: StartRecording
) -> None:
    place = find_place(tmp_path / "t.json")
    journal, _ = open_journal(place)
    recorder = start_recording(journal)
    place.journal.write_bytes(b"garbage\n")
    recorder.run_end(RunEnding("tampered", 9))
    document = finish_record(journal, place).document
    assert (document["result"]["reason"], document["integrity"]["problems"]) == ("tampered", [])
    assert (document["integrity"]["complete"], document["integrity"]["records"]) == (True, 2)
    assert os.listdir(tmp_path) == ["t.json"]
    assert verify(tmp_path / "t.json") == []


def test_without_a_copy_a_damaged_journal_still_gives_a_document_that_says_so_and_stays(
    tmp_path: Path, start_recording: StartRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    place = find_place(tmp_path / "t.json")
    journal, _ = open_journal(place)
    recorder = start_recording(journal)
    with place.journal.open("ab") as file:
        file.write(b'{"seq":2,"kind":"call_end","call":"x"}\ngarbage\n')
    recorder.run_end(RunEnding("tampered", 9))
    document = finish_record(journal, place).document
    assert document["result"]["reason"] == "tampered"
    assert document["integrity"]["problems"] == [
        "line 2: does not continue the record before it: one of the two was changed",
        "line 3: is no record",
        "line 4: has number 2, expected 4: records are missing, repeated or out of order",
        "record 2 is left out: call_end.prev: Field required",
    ]
    assert sorted(os.listdir(tmp_path)) == ["t.json", "t.json.journal"]
