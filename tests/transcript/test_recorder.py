"""Each event becomes its record before the next thing happens, durably where an effect follows, without secrets."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ci_agent.errors import RecordError
from ci_agent.events import (
    AgentEvent,
    MessageEnd,
    ToolExecutionDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnStart,
)
from ci_agent.exit_codes import ToolCallCounts
from ci_agent.hooks import Decision, OnDenied, ToolCallOutcome
from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, Usage, UserMessage
from ci_agent.provider import Model
from ci_agent.transcript.journal import Journal
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.records import line_problems
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.run_facts import RunEnding, RunStart

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECRET = "hunter2-hunter2"

StartRecording = Callable[[Journal], Recorder]


class WatchedJournal(Journal):
    """A real journal that remembers in which order records were written and made durable."""

    def __init__(self, path: Path) -> None:
        super().__init__(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), path)
        self.log: list[str] = []

    def append(self, kind: str, fields: JsonObject) -> int:
        self.log.append(f"{kind} {fields['call']}" if "call" in fields else kind)
        return super().append(kind, fields)

    def sync(self) -> None:
        self.log.append("durable")
        super().sync()


@pytest.fixture
def journal(tmp_path: Path) -> WatchedJournal:
    return WatchedJournal(tmp_path / "journal")


def test_records_come_in_the_order_of_events_and_are_durable_before_each_effect(
    journal: WatchedJournal, start_recording: StartRecording, events: list[AgentEvent]
) -> None:
    recorder = start_recording(journal)
    for event in events:
        recorder(event)
    recorder.run_end(RunEnding("completed", 0))
    assert journal.log == [
        *("run_start", "durable"),
        *("message", "message"),
        *("call_start 1", "call_decision 1", "durable"),  # allowed: what follows is the effect
        *("call_start 2", "call_decision 2"),  # denied: nothing follows
        "call_start 3",  # refused before the policy was asked
        *("call_end 3", "durable", "call_end 2", "durable", "call_end 1", "durable"),
        *("message", "message", "message"),
        "message",
        *("call_start 4", "call_start 5", "call_decision 5", "durable", "call_start 6"),
        "call_end 6",  # cancelled before anything looked at it
        *("call_end 5", "durable", "call_end 4", "durable"),
        *("message", "message", "message"),
        "message",
        *("run_end", "durable"),
    ]


def test_calls_that_were_never_looked_at_wait_for_the_next_record_that_is_durable(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    recorder = start_recording(journal)
    cancelled = ToolCallOutcome("cancelled", "cancelled", (TextContent("Cancelled."),))
    for outcome in (cancelled, replace(cancelled, status="error", stage="truncated_turn")):
        one_call(recorder, ToolCall("a", "ls", "{}"), outcome)
    one_call(recorder, ToolCall("b", "ls", "{}"), cancelled, Decision("allow", "rule", "ok"))
    recorder.run_end(RunEnding("cancelled", 143))
    left = [line for number in (1, 2) for line in (f"call_start {number}", f"call_end {number}", "message")]
    decided = ("call_start 3", "call_decision 3", "durable", "call_end 3", "durable", "message")
    assert journal.log == ["run_start", "durable", *left, *decided, "run_end", "durable"]


def test_what_is_written_satisfies_the_published_models(
    journal: WatchedJournal, start_recording: StartRecording, events: list[AgentEvent]
) -> None:
    recorder = start_recording(journal)
    for event in events:
        recorder(event)
    recorder.note("warning", "passwordless sudo")
    recorder.run_end(RunEnding("provider_error", 4, None, "overloaded", error_retryable=True))
    contents = journal.read()
    assert [line_problems(record) for record in contents.records] == [[]] * len(contents.records)
    assert contents.problems == ()


def test_recording_needs_no_models(tmp_path: Path) -> None:
    program = "import sys, ci_agent.transcript.recorder, ci_agent.transcript.place; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=110)
    assert done.stdout == "False\n"


def one_call(recorder: Recorder, call: ToolCall, outcome: ToolCallOutcome, decision: Decision | None = None) -> None:
    recorder(TurnStart(1))
    recorder(ToolExecutionStart(1, 0, call))
    if decision is not None:
        recorder(ToolExecutionDecision(1, 0, call, decision))
    recorder(ToolExecutionEnd(1, 0, call, outcome))
    recorder(
        MessageEnd(ToolResultMessage(call.id, call.name, outcome.content, outcome.is_error, NOON, outcome.details))
    )


def test_a_result_is_written_once_and_its_message_refers_to_it(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    outcome = ToolCallOutcome("ok", None, (TextContent("x" * 10_000),))
    one_call(start_recording(journal), ToolCall("a", "read", "{}"), outcome)
    assert journal.read().records[-1]["message"] == {
        "role": "tool_result",
        "call": 1,
        "timestamp": "2026-01-01T12:00:00.000Z",
    }
    assert journal.path.stat().st_size < 12_000


@pytest.mark.parametrize(
    "message",
    [
        ToolResultMessage("other", "read", (TextContent("x"),), False, NOON),
        ToolResultMessage("a", "read", (TextContent("something else"),), False, NOON),
    ],
    ids=["another id", "another content"],
)
def test_a_result_message_that_says_something_else_is_written_whole(
    journal: WatchedJournal, start_recording: StartRecording, message: ToolResultMessage
) -> None:
    recorder = start_recording(journal)
    call = ToolCall("a", "read", "{}")
    recorder(TurnStart(1))
    recorder(ToolExecutionStart(1, 0, call))
    recorder(ToolExecutionEnd(1, 0, call, ToolCallOutcome("ok", None, (TextContent("x"),))))
    recorder(MessageEnd(message))
    assert journal.read().records[-1]["message"]["tool_call_id"] == message.tool_call_id
    assert isinstance(message.content[0], TextContent)
    assert journal.read().records[-1]["message"]["content"] == [{"type": "text", "text": message.content[0].text}]


def test_arguments_that_the_tool_gets_are_recorded_when_they_differ(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    recorder = start_recording(journal)
    allow = Decision("allow", "rule", "ok")
    for index, (raw, got) in enumerate([('{"a": 1}', {"a": 1}), ('{"a": "1"}', {"a": 1}), ("[1]", {"a": 1})]):
        call = ToolCall(str(index), "tool", raw)
        recorder(ToolExecutionStart(1, index, call))
        recorder(ToolExecutionDecision(1, index, call, allow, got))
    decisions = [record for record in journal.read().records if record["kind"] == "call_decision"]
    assert [record.get("arguments") for record in decisions] == [None, {"a": 1}, {"a": 1}]


def test_the_secret_is_nowhere_in_the_journal_and_each_record_counts_its_places(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    recorder = Recorder(journal, Redactor([SECRET]), lambda: NOON, lambda: 0.0)
    recorder.run_start(RunStart(SECRET, SECRET, f"/{SECRET}", Model(SECRET, SECRET), {SECRET: SECRET}))
    recorder(MessageEnd(UserMessage((TextContent(f"{SECRET} {SECRET[::-1]}"),), NOON)))
    call = ToolCall(SECRET, SECRET, f'{{"{SECRET}": ["{SECRET}"]}}')
    broken = ToolCall(SECRET, SECRET, f'{{"{SECRET}')
    recorder(
        MessageEnd(AssistantMessage((call, broken), "tool_use", SECRET, SECRET, SECRET, NOON, Usage(), SECRET, SECRET))
    )
    deny = Decision("deny", "rule", SECRET, rule_id=SECRET, source=SECRET, because=SECRET, instead=SECRET)
    outcome = ToolCallOutcome("denied", "before_tool_call", (TextContent(SECRET),), {SECRET: SECRET}, deny)
    one_call(recorder, call, outcome, deny)
    recorder.note("note", SECRET)
    recorder.run_end(RunEnding("internal_error", 70, {SECRET: [SECRET]}, SECRET))
    data = journal.path.read_bytes()
    assert SECRET.encode() not in data
    assert SECRET[::-1].encode() not in data
    assert [record.get("redactions", 0) for record in journal.read().records] == [7, 2, 12, 4, 5, 3, 0, 1, 3]
    assert data.count(b"[redacted]") == 7 + 2 + 12 + 4 + 5 + 3 + 0 + 1 + 3


def test_replaced_characters_of_arguments_and_result_are_counted_in_the_details(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    outcome = ToolCallOutcome("ok", None, (TextContent("a\ud800\udfffb\udfff"),), {"b": b"\xff", "n": float("nan")})
    one_call(start_recording(journal), ToolCall("a", "bash", '{"command": "\\ud800"}'), outcome)
    start, end, _ = journal.read().records[1:]
    assert start["arguments"] == {"command": "\ufffd"}
    assert end["content"] == [{"type": "text", "text": "a\U000103ffb\ufffd"}]
    assert end["details"] == {"b": "\ufffd", "n": "NaN", "replaced_characters": 3}


HOSTILE_ARGUMENTS = [
    '{"a": NaN}',
    '{"a": 1, "a": 2}',
    '{"a": ' + "[" * 60 + "]" * 60 + "}",
    '{"a": ' + "9" * 900 + "}",
    '{"a": [' + "1," * 20_000 + "1]}",
    "[" * 100_000,
    '"text"',
    "",
    '{"path": "a.txt", "cont',
]


@pytest.mark.parametrize("raw", HOSTILE_ARGUMENTS, ids=lambda raw: raw[:12])
def test_arguments_that_are_no_bounded_object_are_kept_as_text(
    journal: WatchedJournal, start_recording: StartRecording, raw: str
) -> None:
    recorder = start_recording(journal)
    call = ToolCall("a", "bash", raw)
    recorder(MessageEnd(AssistantMessage((call,), "tool_use", "p", "m", "a", NOON)))
    recorder(ToolExecutionStart(1, 0, call))
    said, begun = journal.read().records[1:]
    for place in (said["message"]["content"][0], begun):
        assert (place["arguments"], place["arguments_json"]) == (None, raw)


def test_no_call_of_a_message_is_left_out_however_many_values_they_hold(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    raw = json.dumps({"values": [0] * 9_000})
    message = AssistantMessage((ToolCall("a", "ls", raw),) * 12, "tool_use", "p", "m", "a", NOON)
    start_recording(journal)(MessageEnd(message))
    content = journal.read().records[1]["message"]["content"]
    assert [part["arguments"] for part in content] == [{"values": [0] * 9_000}] * 12


def test_calls_are_counted_by_how_they_ended_and_failing_denials_are_noticed(
    journal: WatchedJournal, start_recording: StartRecording, events: list[AgentEvent]
) -> None:
    recorder = start_recording(journal)
    assert (recorder.tool_calls, recorder.denial_fails) == (ToolCallCounts(), False)
    for event in events:
        recorder(event)
    assert (recorder.tool_calls, recorder.denial_fails) == (ToolCallCounts(1, 3, 1, 1), True)


@pytest.mark.parametrize(("on_denied", "fails"), [("record", False), ("fail", True), ("stop", True)])
def test_only_a_rule_that_says_so_makes_a_denial_fail_the_run(
    journal: WatchedJournal, start_recording: StartRecording, on_denied: OnDenied, *, fails: bool
) -> None:
    recorder = start_recording(journal)
    denied = Decision("deny", "rule", "no", on_denied=on_denied)
    outcome = ToolCallOutcome("denied", "before_tool_call", (), None, denied)
    one_call(recorder, ToolCall("a", "bash", "{}"), outcome, denied)
    assert recorder.denial_fails is fails
    one_call(recorder, ToolCall("b", "bash", "{}"), replace(outcome, decision=None))
    assert recorder.denial_fails is fails


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (ToolCallOutcome("ok", None, (TextContent("é\n"),)), (3, False)),
        (ToolCallOutcome("ok", None, (TextContent("x"),), {"output_bytes": 70_000, "truncated": True}), (70_000, True)),
        (ToolCallOutcome("ok", None, (TextContent("x"),), {"truncated": "yes"}), (1, False)),
        (ToolCallOutcome("denied", "before_tool_call", (TextContent("no"),)), (0, False)),
        (ToolCallOutcome("error", "lookup", (TextContent("no"),)), (0, False)),
        (ToolCallOutcome("error", "execute", (TextContent("failed"),)), (6, False)),
    ],
)
def test_output_size_is_what_the_tool_says_or_what_it_returned_and_nothing_when_it_did_not_run(
    journal: WatchedJournal, start_recording: StartRecording, outcome: ToolCallOutcome, expected: tuple[int, bool]
) -> None:
    one_call(start_recording(journal), ToolCall("a", "bash", "{}"), outcome)
    end = journal.read().records[2]
    assert (end["output_bytes"], end["truncated"]) == expected


def test_when_the_record_cannot_be_written_the_event_fails(
    journal: WatchedJournal, start_recording: StartRecording
) -> None:
    recorder = start_recording(journal)
    journal.close()
    with pytest.raises(RecordError, match="Bad file descriptor"):
        recorder(ToolExecutionStart(1, 0, ToolCall("a", "bash", "{}")))
    with pytest.raises(RecordError, match="Bad file descriptor"):
        recorder.note("a", "b")
    with pytest.raises(RecordError, match="Bad file descriptor"):
        recorder.run_end(RunEnding("completed", 0))
