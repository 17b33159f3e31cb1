"""After a crash: every acknowledged record is in the recovered document, and what nobody knows is called unknown."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from ci_agent.errors import BusyError, ConfigurationError
from ci_agent.events import AgentEvent, MessageEnd, ToolExecutionDecision, ToolExecutionEnd, ToolExecutionStart
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.transcript.document import build_document
from ci_agent.transcript.journal import Journal, read_journal
from ci_agent.transcript.journal_lines import JournalContents, read_lines
from ci_agent.transcript.place import find_place, open_journal, recover_killed
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.records import document_problems
from ci_agent.transcript.recovery import only_valid, recover
from ci_agent.transcript.room import KEPT_BYTES, Room
from ci_agent.transcript.verify import verify

StartRecording = Callable[[Journal], Recorder]
RecordRun = Callable[[Path], JsonObject]


@pytest.fixture
def record_until(
    tmp_path: Path, start_recording: StartRecording, events: list[AgentEvent]
) -> Callable[[Callable[[AgentEvent], bool]], Path]:
    """Record events up to the first that fits, then stop as a killed run does; returns the transcript's path."""

    def record(is_last: Callable[[AgentEvent], bool]) -> Path:
        transcript = tmp_path / "t.json"
        journal, _ = open_journal(find_place(transcript))
        recorder = start_recording(journal)
        for event in events:
            recorder(event)
            if is_last(event):
                break
        journal.close()
        return transcript

    return record


RecordUntil = Callable[[Callable[[AgentEvent], bool]], Path]


def recovered(transcript: Path) -> JsonObject:
    document: JsonObject = parse_json(recover(transcript).read_text())
    assert document_problems(document) == []
    return document


def statuses(document: JsonObject) -> list[tuple[str, str, str | None]]:
    return [(call["tool"], call["status"], call["stage"]) for call in document["tool_calls"]]


NEVER_BEGUN = ("bash", "cancelled", "cancelled"), ("write", "cancelled", "cancelled")


def test_killed_after_the_model_spoke_no_call_has_begun(record_until: RecordUntil) -> None:
    document = recovered(
        record_until(lambda event: isinstance(event, MessageEnd) and event.message.role == "assistant")
    )
    assert statuses(document) == [("read", "cancelled", "cancelled"), *NEVER_BEGUN]
    assert document["tool_calls"][0] == {
        "seq": 1,
        "turn": 1,
        "id": "call_1",
        "tool": "read",
        "arguments": {"path": "logo.png"},
        "decision": None,
        "status": "cancelled",
        "stage": "cancelled",
        "is_error": True,
        "content": [{"type": "text", "text": "Not executed: the run ended before this call was taken up."}],
        "details": {},
        "started_at": None,
        "duration_s": None,
        "output_bytes": 0,
        "truncated": False,
    }


@pytest.mark.parametrize("last", [ToolExecutionStart, ToolExecutionDecision], ids=["start", "decision"])
def test_killed_while_a_call_was_going_on_its_outcome_is_unknown(
    record_until: RecordUntil, last: type[AgentEvent]
) -> None:
    document = recovered(record_until(lambda event: isinstance(event, last)))
    assert statuses(document) == [("read", "unknown", None), *NEVER_BEGUN]
    call = document["tool_calls"][0]
    assert (call["started_at"], call["duration_s"], call["is_error"]) == ("2026-01-01T12:00:00.000Z", None, True)
    assert call["content"][0]["text"] == "Nobody knows how this call ended: the run ended while it was going on."
    assert (call["decision"] is None) == (last is ToolExecutionStart)


def test_a_denied_call_without_an_end_was_denied(record_until: RecordUntil) -> None:
    document = recovered(
        record_until(
            lambda event: (
                isinstance(event, ToolExecutionDecision)
                and event.decision is not None
                and event.decision.effect == "deny"
            )
        )
    )
    assert statuses(document) == [("read", "unknown", None), ("bash", "denied", "before_tool_call"), NEVER_BEGUN[1]]
    assert document["tool_calls"][1]["content"][0]["text"] == "Blocked by policy: no rule grants `git push`"


def test_killed_between_two_ends_the_ended_call_keeps_its_end(record_until: RecordUntil) -> None:
    document = recovered(record_until(lambda event: isinstance(event, ToolExecutionEnd)))
    assert statuses(document) == [
        ("read", "unknown", None),
        ("bash", "denied", "before_tool_call"),
        ("write", "error", "arguments"),
    ]


def test_a_recovered_document_says_what_it_is(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionStart))
    with transcript.with_name("t.json.journal").open("ab") as file:
        file.write(b'{"seq":5,"prev":"half')
    contents = read_journal(transcript.with_name("t.json.journal"))
    document = recovered(transcript)
    assert document["run"]["duration_s"] is None
    assert document["result"] == {
        "reason": "unknown",
        "exit_code": None,
        "final_text": None,
        "structured_output": None,
        "tool_calls": {"ok": 0, "error": 0, "denied": 0, "cancelled": 2, "unknown": 1},
        "error": "the run did not come to its end",
        "error_retryable": None,
    }
    assert {**document["integrity"], "document_sha256": ""} == {
        "complete": False,
        "records": 4,
        "journal_sha256": contents.head,
        "dropped_bytes": 21,
        "problems": [],
        "document_sha256": "",
    }


def test_the_document_takes_the_transcripts_name_only_when_it_is_free(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionEnd))
    assert recover(transcript) == transcript
    assert recover(transcript) == transcript  # the same again is the same file
    content = transcript.read_bytes()
    transcript.write_text("another run's")
    assert recover(transcript) == transcript.with_name("t.json.recovered.json")
    transcript.with_name("t.json.recovered.json").write_text("somebody's")
    assert recover(transcript) == transcript.with_name("t.json.recovered-2.json")
    assert transcript.read_text() == "another run's"
    assert transcript.with_name("t.json.recovered-2.json").read_bytes() == content
    assert transcript.with_name("t.json.journal").exists()


def test_the_journal_itself_may_be_named(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionEnd))
    assert recover(transcript.with_name("t.json.journal")) == transcript
    product = transcript.with_name("t.jsonl")
    transcript.with_name("t.json.journal").rename(product)
    assert recover(product) == transcript.with_name("t.jsonl.recovered.json")


def test_without_a_journal_there_is_nothing_to_recover(tmp_path: Path) -> None:
    for name, journal in (("t.json", "t.json.journal"), ("t.jsonl", "t.jsonl")):
        with pytest.raises(ConfigurationError) as error:
            recover(tmp_path / name)
        assert str(error.value) == f"there is no journal '{tmp_path}/{journal}': nothing to recover"


@pytest.mark.parametrize("content", [b"", b"{", b"garbage\n", b'{"seq":1,"prev":"000'])
def test_a_journal_without_a_record_is_said_to_hold_nothing(tmp_path: Path, content: bytes) -> None:
    journal = tmp_path / "t.json.journal"
    journal.write_bytes(content)
    with pytest.raises(ConfigurationError, match=re.escape(f"the journal '{journal}' holds no record")):
        recover(tmp_path / "t.json")
    assert os.listdir(tmp_path) == ["t.json.journal"]


def test_the_journal_of_a_living_run_is_left_alone(tmp_path: Path, start_recording: StartRecording) -> None:
    journal, _ = open_journal(find_place(tmp_path / "t.json"))
    start_recording(journal)
    with pytest.raises(BusyError):
        recover(tmp_path / "t.json")
    journal.close()


def test_any_lines_of_a_journal_give_a_valid_document(tmp_path: Path, record_run: RecordRun) -> None:
    record_run(tmp_path / "t.json")
    lines = (tmp_path / "t.json.journal").read_bytes().splitlines(keepends=True)
    source = random.Random(7)
    for _ in range(150):
        kept = [line for line in lines if source.random() < 0.7]
        if source.random() < 0.5:
            source.shuffle(kept)
        document = build_document(only_valid(read_lines(kept)))
        assert document_problems(document) == []


def test_any_change_of_a_record_gives_a_valid_document(tmp_path: Path, record_run: RecordRun) -> None:
    record_run(tmp_path / "t.json")
    records = read_journal(tmp_path / "t.json.journal").records
    source = random.Random(8)
    for _ in range(300):
        changed = json.loads(json.dumps(records))
        record = source.choice(changed)
        key = source.choice(sorted(record.keys() - {"seq", "kind"}))
        record[key] = source.choice([None, 0, -1, "x", [], {}, {"role": "tool_result"}, True, [{"type": "text"}]])
        document = build_document(only_valid(JournalContents(tuple(changed), "0" * 64)))
        assert document_problems(document) == []


def test_a_lost_beginning_is_null_in_the_document(tmp_path: Path, record_run: RecordRun) -> None:
    record_run(tmp_path / "t.json")
    journal = tmp_path / "t.json.journal"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    os.unlink(tmp_path / "t.json")
    document = recovered(tmp_path / "t.json")
    assert (document["run"], document["model"], document["policy"]) == (None, None, None)
    assert len(document["tool_calls"]) == 6


WRITER = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from ci_agent.events import *
from ci_agent.hooks import ToolCallOutcome
from ci_agent.messages import *
from ci_agent.provider import Model
from ci_agent.transcript.place import find_place, open_journal, recover_killed
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.run_facts import RunStart

now = lambda: datetime(2026, 1, 1, tzinfo=UTC)

def record(transcript, acknowledge):
    journal, _ = open_journal(find_place(transcript))
    recorder = Recorder(journal, Redactor(), now, lambda: 0.0)
    recorder.run_start(RunStart("id", "0", "/w", Model("scripted", "x")))
    for turn in range(1, 1000000):
        call = ToolCall(str(turn), "bash", '{"command": "%s"}' % ("x" * (turn % 5000)))
        outcome = ToolCallOutcome("ok", None, (TextContent("y" * (turn * 37 % 9000)),))
        for event in (
            TurnStart(turn),
            MessageEnd(AssistantMessage((call,), "tool_use", "p", "m", "a", now())),
            ToolExecutionStart(turn, 0, call),
            ToolExecutionDecision(turn, 0, call, None),
            ToolExecutionEnd(turn, 0, call, outcome),
            MessageEnd(ToolResultMessage(call.id, "bash", outcome.content, False, now())),
        ):
            recorder(event)
            acknowledge(journal.records)

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    if os.fork() == 0:
        transcript, pipe = line.split()
        with open(pipe, "w", buffering=1) as acknowledgements:
            print(os.getpid(), file=acknowledgements)
            record(Path(transcript), lambda records: print(records, file=acknowledgements))
"""


def kill_a_writer_after(records: int, acknowledgements: IO[str], source: random.Random) -> int:
    """Kill a recording process at some moment after so many records; returns how many it has acknowledged."""
    writer = int(acknowledgements.readline())
    acknowledged = 0
    while acknowledged < records:
        acknowledged = int(acknowledgements.readline())
    for _ in range(source.randrange(5000)):  # a little more or less of the next record
        pass
    os.kill(writer, signal.SIGKILL)
    with suppress(ProcessLookupError):
        while True:  # its files, and the lock on one of them, are closed when it is gone
            os.kill(writer, 0)
    whole = [int(line) for line in acknowledgements.read().splitlines(keepends=True) if line.endswith("\n")]
    return max([acknowledged, *whole])


def check_kills(tmp_path: Path, times: int) -> None:
    source = random.Random(9)
    pipe = tmp_path / "acknowledgements"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", WRITER], stdin=subprocess.PIPE, text=True) as forker:
        assert forker.stdin is not None
        for number in range(times):
            transcript = tmp_path / f"{number}.json"
            print(transcript, pipe, file=forker.stdin, flush=True)
            with pipe.open() as acknowledgements:
                acknowledged = kill_a_writer_after(source.randrange(1, 100), acknowledgements, source)
            check_killed_run(transcript, acknowledged)
        forker.stdin.close()


def check_killed_run(transcript: Path, acknowledged: int) -> None:
    journal = transcript.with_name(f"{transcript.name}.journal")
    contents = read_journal(journal)  # which also tells that the lock is free
    assert contents.problems == ()
    assert len(contents.records) in (acknowledged, acknowledged + 1)  # one may be written and not yet acknowledged
    document = recovered(transcript)
    begun = {record["call"] for record in contents.records if record["kind"] == "call_start"}
    ended = {record["call"] for record in contents.records if record["kind"] == "call_end"}
    shown = {call["seq"]: call["status"] for call in document["tool_calls"]}
    assert {seq for seq, status in shown.items() if status == "ok"} == ended
    assert {seq for seq, status in shown.items() if status == "unknown"} == begun - ended


def test_kill_9_at_random_points_loses_no_acknowledged_record(tmp_path: Path) -> None:
    check_kills(tmp_path, 25)


@pytest.mark.slow
def test_kill_9_two_hundred_times(tmp_path: Path) -> None:
    check_kills(tmp_path, 200)


def test_a_recovered_document_does_not_verify_as_complete(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionEnd))
    assert [str(problem) for problem in verify(recover(transcript))] == [
        "its run did not come to its end: records after the last may be missing"
    ]


def test_room_that_is_set_aside_goes_when_the_document_is_made(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionEnd))
    journal = transcript.with_name("t.json.journal")
    with journal.open("r+b") as file:
        room = Room(file.fileno())
        room.keep(0)
        before = journal.stat()
        if before.st_blocks * 512 < KEPT_BYTES:
            pytest.skip("this file system keeps no room for a file")
        content = file.read()
        recover(transcript)
        assert journal.stat().st_blocks * 512 < KEPT_BYTES
    assert journal.read_bytes() == content


def test_of_a_folder_of_records_a_killed_run_gets_its_document_and_its_journal_goes(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionEnd))
    assert recover_killed(transcript) == transcript
    assert parse_json(transcript.read_text())["result"]["reason"] == "unknown"
    assert os.listdir(transcript.parent) == ["t.json"]
    assert recover_killed(transcript) is None


def test_a_journal_that_was_damaged_stays_beside_the_document_and_is_told_of_once(record_until: RecordUntil) -> None:
    transcript = record_until(lambda event: isinstance(event, ToolExecutionEnd))
    journal = transcript.with_name("t.json.journal")
    first, *others = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([first, b"garbage\n", *others]))
    assert recover_killed(transcript) == transcript
    assert sorted(os.listdir(transcript.parent)) == ["t.json", "t.json.journal"]
    assert recover_killed(transcript) is None


@pytest.mark.parametrize("content", [b"", b"garbage\n", b'{"seq":1,"prev":"000'])
def test_what_is_no_journal_of_a_run_is_left_alone(content: bytes, tmp_path: Path) -> None:
    journal = tmp_path / "t.json.journal"
    journal.write_bytes(content)
    assert recover_killed(tmp_path / "t.json") is None
    assert (os.listdir(tmp_path), journal.read_bytes()) == (["t.json.journal"], content)
