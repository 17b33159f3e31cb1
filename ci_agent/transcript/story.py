"""What the records of a journal say, put together: messages, calls with how they ended, beginning and end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ci_agent.json_types import JsonObject

_NOT_BEGUN = "Not executed: the run ended before this call was taken up."
_NOT_ENDED = "Nobody knows how this call ended: the run ended while it was going on."


@dataclass(slots=True)
class Story:
    start: JsonObject = field(default_factory=dict)
    """The `run_start` record; empty when it is lost."""
    end: JsonObject = field(default_factory=dict)
    """The `run_end` record; empty when the run did not come to its end."""
    messages: list[JsonObject] = field(default_factory=list)
    calls: list[JsonObject] = field(default_factory=list)
    """By their number; each has a status."""
    notes: list[JsonObject] = field(default_factory=list)
    redactions: int = 0

    def counts(self) -> dict[str, int]:
        """Calls by status; `unknown` only when there are such."""
        counts = dict.fromkeys(("ok", "error", "denied", "cancelled"), 0)
        for call in self.calls:
            counts[call["status"]] = counts.get(call["status"], 0) + 1
        return counts


def read_story(records: Iterable[JsonObject]) -> Story:
    """Take in the records in their order. What a damaged journal leaves open is left out, never guessed.

    Calls without an end: one that had begun is `unknown`, but one that was denied is denied; one that had not
    begun is `cancelled`.
    """
    reader = _Reader()
    for record in records:
        reader.take(record)
    return reader.finished()


class _Reader:
    def __init__(self) -> None:
        self._story = Story()
        self._calls: dict[int, JsonObject] = {}
        self._begun: set[tuple[int, int]] = set()
        self._wanted: list[tuple[int, int, JsonObject]] = []

    def take(self, record: JsonObject) -> None:
        self._story.redactions += record.get("redactions", 0)
        match record["kind"]:
            case "run_start":
                self._story.start = record
            case "message":
                self._message(record)
            case "call_start":
                self._call_start(record)
            case "call_decision":
                self._call_decision(record)
            case "call_end":
                self._call_end(record)
            case "note":
                self._story.notes.append({key: record[key] for key in ("at", "about", "text")})
            case "run_end":
                self._story.end = record

    def finished(self) -> Story:
        for call in self._calls.values():
            if call["status"] is None:
                call.update(_open_end(call))
        for turn, index, part in self._wanted:
            if (turn, index) not in self._begun:
                seq = max(self._calls, default=0) + 1
                self._calls[seq] = _new_call(seq, turn, part["name"], part, None) | _ending(
                    "cancelled", "cancelled", _NOT_BEGUN
                )
        self._story.calls = [self._calls[seq] for seq in sorted(self._calls)]
        return self._story

    def _message(self, record: JsonObject) -> None:
        message = record["message"]
        if message["role"] == "tool_result" and "call" in message:
            call = self._calls.get(message["call"])
            if call is not None and call["status"] is not None:
                self._story.messages.append(_tool_result_of(call, message["timestamp"]))
            return
        self._story.messages.append(message)
        if message["role"] == "assistant":
            self._wanted += _wanted_calls(record["turn"], message)

    def _call_start(self, record: JsonObject) -> None:
        self._begun.add((record["turn"], record["index"]))
        self._calls[record["call"]] = _new_call(record["call"], record["turn"], record["tool"], record, record["at"])

    def _call_decision(self, record: JsonObject) -> None:
        call = self._calls.get(record["call"])
        if call is not None:
            call["decision"] = record["decision"]
            if "arguments" in record:
                call["arguments"] = record["arguments"]

    def _call_end(self, record: JsonObject) -> None:
        call = self._calls.get(record["call"])
        if call is not None:
            call.update({key: record[key] for key in _ENDING_KEYS}, is_error=record["status"] != "ok")
            if "decision" in record:
                call["decision"] = record["decision"]


_ENDING_KEYS = ("status", "stage", "content", "details", "duration_s", "output_bytes", "truncated")


def _wanted_calls(turn: int, message: JsonObject) -> Iterator[tuple[int, int, JsonObject]]:
    parts = [part for part in message["content"] if part["type"] == "tool_call"]
    for index, part in enumerate(parts):
        yield turn, index, part


def _new_call(seq: int, turn: int, tool: str, said: JsonObject, started_at: str | None) -> JsonObject:
    """A call that has not ended; `said` is where its id and arguments stand."""
    raw = {"arguments_json": said["arguments_json"]} if "arguments_json" in said else {}
    return {
        "seq": seq,
        "turn": turn,
        "id": said["id"],
        "tool": tool,
        "arguments": said["arguments"],
        **raw,
        "decision": None,
        "status": None,
        "stage": None,
        "is_error": True,
        "content": [],
        "details": {},
        "started_at": started_at,
        "duration_s": None,
        "output_bytes": 0,
        "truncated": False,
    }


def _open_end(call: JsonObject) -> JsonObject:
    decision = call["decision"]
    if decision is not None and decision["effect"] != "allow":
        return _ending("denied", "before_tool_call", decision["reason"])
    return _ending("unknown", None, _NOT_ENDED)


def _ending(status: str, stage: str | None, text: str) -> JsonObject:
    return {"status": status, "stage": stage, "content": [{"type": "text", "text": text}]}


def _tool_result_of(call: JsonObject, timestamp: str) -> JsonObject:
    return {
        "role": "tool_result",
        "tool_call_id": call["id"],
        "tool_name": call["tool"],
        "content": call["content"],
        "is_error": call["is_error"],
        "timestamp": timestamp,
    }
