"""The events of a run become records of its journal, each before the next thing happens."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

from ci_agent.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from ci_agent.exit_codes import ToolCallCounts
from ci_agent.hooks import Decision, ToolCallOutcome, ToolCallStatus
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import ImageContent, Message, TextContent, ToolResultMessage
from ci_agent.provider import StreamNotice
from ci_agent.transcript.as_json import arguments_json, decision_json, fits, message_json, parts_json, timestamp
from ci_agent.transcript.journal import Journal
from ci_agent.transcript.journal_lines import JOURNAL_SCHEMA, LAST_KIND
from ci_agent.transcript.plain_json import MAX_VALUES, plain
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.run_facts import RunEnding, RunStart

_LEFT_BEHIND: Final = frozenset({"cancelled", "truncated_turn"})
"""Stages of calls that were never looked at. A run may leave thousands of them when it should be over within seconds;
they did nothing, and the next record that has to be durable makes them so."""


@dataclass(slots=True)
class _Call:
    """A call that has begun and whose result message has not come yet."""

    seq: int
    id: str
    started: float
    arguments: JsonObject | None
    """As they were recorded at its start."""
    replaced: int = 0
    decided: bool = False
    outcome: ToolCallOutcome | None = None


class Recorder:
    """Takes the events of one run, as the loop's `emit`; whatever it writes is redacted first.

    Every method raises RecordError when the record cannot be written: the run must end then. Before an allowed call
    has its effect, after each call and at the end the record is made to survive a power failure.
    """

    def __init__(
        self,
        journal: Journal,
        redactor: Redactor,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self.denial_fails = False
        """Whether a call was denied by a rule that makes the run fail (`on_denied` `fail` or `stop`)."""
        self._journal = journal
        self._redactor = redactor
        self._now = now
        self._monotonic = monotonic
        self._started = monotonic()
        self._turn = 0
        self._calls_begun = 0
        self._counts: dict[ToolCallStatus, int] = {"ok": 0, "error": 0, "denied": 0, "cancelled": 0}
        self._calls: dict[tuple[int, int], _Call] = {}
        self._results_in_turn = 0

    @property
    def tool_calls(self) -> ToolCallCounts:
        """How the calls that have ended so far ended."""
        return ToolCallCounts(**self._counts)

    @property
    def is_short_of_room(self) -> bool:
        """Whether the run should end because the disk that holds its record is full."""
        return self._journal.is_short_of_room

    def run_start(self, start: RunStart) -> None:
        """The first record. ConfigurationError when it cannot be written: nothing has begun yet."""
        self._started = self._monotonic()
        self._write("run_start", {"schema": JOURNAL_SCHEMA, **start.as_json()})
        self._journal.sync()

    def note(self, about: str, text: str) -> None:
        """Something worth keeping that is no event of the loop: a retry, a warning. `about` is one word."""
        self._write("note", {"about": about, "text": text})

    def run_end(self, ending: RunEnding) -> None:
        """The last record; written again, it takes the place of the one before."""
        result = {
            "reason": ending.reason,
            "exit_code": ending.exit_code,
            "structured_output": ending.structured_output,
            "error": ending.error,
            "error_retryable": ending.error_retryable,
        }
        self._write(LAST_KIND, {"duration_s": self._seconds_since(self._started), "result": result})
        self._journal.sync()

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case TurnStart():
                self._turn, self._results_in_turn = event.turn, 0
            case MessageEnd():
                self._message(event.message)
            case ToolExecutionStart():
                self._call_start(event)
            case ToolExecutionDecision():
                self._call_decision(event)
            case ToolExecutionEnd():
                self._call_end(event)
            case MessageUpdate():
                if isinstance(event.event, StreamNotice):
                    self.note(event.event.about, event.event.text)
            case AgentStart() | MessageStart() | ToolExecutionUpdate() | TurnEnd() | AgentEnd():
                pass
            case _:
                assert_never(event)

    def _message(self, message: Message) -> None:
        call = self._call_answered_by(message) if isinstance(message, ToolResultMessage) else None
        if call is None:
            # A message is a tree of JSON that has already been read, so nothing in it is without an end.
            self._write("message", {"turn": self._turn, "message": message_json(message)}, max_values=sys.maxsize)
        else:
            reference = {"role": message.role, "call": call.seq, "timestamp": timestamp(message.timestamp)}
            self._write("message", {"turn": self._turn, "message": reference})

    def _call_answered_by(self, message: ToolResultMessage) -> _Call | None:
        """The call whose record already holds all that the message says. Results come in the order of the calls."""
        call = self._calls.pop((self._turn, self._results_in_turn), None)
        self._results_in_turn += 1
        if call is None or call.outcome is None or call.id != message.tool_call_id:
            return None
        return call if call.outcome.content == message.content else None

    def _call_start(self, event: ToolExecutionStart) -> None:
        self._calls_begun += 1
        arguments = arguments_json(event.tool_call.arguments_json)
        call = _Call(self._calls_begun, event.tool_call.id, self._monotonic(), arguments["arguments"])
        self._calls[event.turn, event.index] = call
        fields = {
            "call": call.seq,
            "turn": event.turn,
            "index": event.index,
            "id": event.tool_call.id,
            "tool": event.tool_call.name,
            **arguments,
        }
        call.replaced = self._write("call_start", fields)

    def _call_decision(self, event: ToolExecutionDecision) -> None:
        call = self._calls[event.turn, event.index]
        call.decided = True
        fields: JsonObject = {"call": call.seq, "decision": _decision_json(event.decision)}
        if event.arguments not in (None, call.arguments) and fits(event.arguments):
            fields["arguments"] = event.arguments
        self._write("call_decision", fields)
        if event.decision is None or event.decision.effect == "allow":
            self._journal.sync()

    def _call_end(self, event: ToolExecutionEnd) -> None:
        call = self._calls[event.turn, event.index]
        call.outcome = outcome = event.outcome
        self._counts[outcome.status] += 1
        self.denial_fails = self.denial_fails or _fails_the_run(outcome)
        fields: JsonObject = {
            "call": call.seq,
            "status": outcome.status,
            "stage": outcome.stage,
            "duration_s": self._seconds_since(call.started),
            "output_bytes": _output_bytes(outcome),
            "truncated": _detail(outcome, "truncated") is True,
            "content": parts_json(outcome.content),
            "details": outcome.details or {},
        }
        if not call.decided:
            fields["decision"] = _decision_json(outcome.decision)
        record, replaced = self._cleaned(fields)
        if replaced + call.replaced:
            record["details"]["replaced_characters"] = replaced + call.replaced
        self._journal.append("call_end", record)
        if call.decided or outcome.stage not in _LEFT_BEHIND:
            self._journal.sync()

    def _write(self, kind: str, fields: JsonObject, *, max_values: int = MAX_VALUES) -> int:
        """Append a record; returns how many characters of it had to be replaced."""
        record, replaced = self._cleaned(fields, max_values)
        self._journal.append(kind, record)
        return replaced

    def _cleaned(self, fields: JsonObject, max_values: int = MAX_VALUES) -> tuple[JsonObject, int]:
        """The fields as plain JSON without secrets, with the time; and the count of characters that were replaced."""
        redactions = 0

        def edit(text: str) -> str:
            nonlocal redactions
            redacted, count = self._redactor.replace(text)
            redactions += count
            return redacted

        cleaned = plain({"at": timestamp(self._now()), **fields}, edit, max_values=max_values)
        record: JsonObject = cleaned.value
        return (record | {"redactions": redactions} if redactions else record), cleaned.replaced

    def _seconds_since(self, moment: float) -> float:
        return round(self._monotonic() - moment, 3)


def _decision_json(decision: Decision | None) -> JsonObject | None:
    return None if decision is None else decision_json(decision)


def _fails_the_run(outcome: ToolCallOutcome) -> bool:
    return outcome.status == "denied" and outcome.decision is not None and outcome.decision.on_denied != "record"


def _output_bytes(outcome: ToolCallOutcome) -> int:
    """What the tool put out in all, as far as it says so; else what it returned. 0: it did not run."""
    told = _detail(outcome, "output_bytes")
    if isinstance(told, int):
        return told
    if outcome.stage not in (None, "execute", "after_tool_call"):
        return 0
    return sum(_size(part) for part in outcome.content)


def _size(part: TextContent | ImageContent) -> int:
    if isinstance(part, TextContent):
        return len(part.text.encode("utf-8", "replace"))
    return len(part.data_base64) * 3 // 4


def _detail(outcome: ToolCallOutcome, key: str) -> Json:
    return None if outcome.details is None else outcome.details.get(key)
