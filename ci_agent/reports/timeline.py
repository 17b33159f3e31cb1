"""The turns and calls of a run on one time axis, in the shape that the HTML page's scripts read.

An index of all rows, and their details in packed blocks that are unpacked when somebody looks at them.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import arguments_of
from ci_agent.reports.outcome import explain_command, usage_text
from ci_agent.terminal import one_line

_BLOCK_CHARS: Final = 1_000_000
"""How much is unpacked at once when a row is opened."""

_COMPRESSION: Final = 3
"""Half the time of zlib's own choice, and a tenth larger."""

_MAX_SUMMARY_CHARS: Final = 160


def timeline_of(document: JsonObject) -> tuple[JsonObject, list[str]]:
    """The index of all rows, and their details in packed blocks; times are seconds since the run began."""
    turns = _turns(document)
    firsts, blocks = _packed(details for turn in turns for details in (turn.pop("details"), *_pop_details(turn)))
    run = document["run"]
    return {"duration_s": run["duration_s"] if run else None, "turns": turns, "blocks": firsts}, blocks


def _pop_details(turn: JsonObject) -> Iterator[JsonObject]:
    return (call.pop("details") for call in turn["calls"])


def _packed(items: Iterable[JsonObject]) -> tuple[list[int], list[str]]:
    """The items in blocks, each a compressed JSON list in base64, and the place of each block's first item."""
    firsts: list[int] = []
    blocks: list[str] = []
    waiting: list[str] = []
    chars = 0
    for place, item in enumerate(items):
        if not waiting:
            firsts.append(place)
        waiting.append(json.dumps(item, separators=(",", ":")))
        chars += len(waiting[-1])
        if chars >= _BLOCK_CHARS:
            blocks.append(_pack(waiting))
            waiting, chars = [], 0
    if waiting:
        blocks.append(_pack(waiting))
    return firsts, blocks


def _pack(items: list[str]) -> str:
    return base64.b64encode(zlib.compress(f"[{','.join(items)}]".encode(), _COMPRESSION)).decode()


def _turns(document: JsonObject) -> list[JsonObject]:
    clock = _Clock(_first_time(document))
    turns: dict[int, JsonObject] = {}
    before = 0.0
    for message in document["messages"]:
        at = clock.seconds(message["timestamp"])
        if message["role"] == "assistant":
            turns[len(turns) + 1] = _turn(len(turns) + 1, message, before, at)
        before = max(before, at)
    for call in document["tool_calls"]:
        turn = turns.setdefault(call["turn"], _lost_turn(call["turn"]))
        turn["calls"].append(_call(call, clock, document["policy"]))
    return [turns[number] for number in sorted(turns)]


class _Clock:
    """Turns the record's times into seconds since the first of them."""

    def __init__(self, first: str | None) -> None:
        self._first = datetime.fromisoformat(first) if first else None

    def seconds(self, timestamp: str) -> float:
        """Never negative: the wall clock may have been set back while the run went on."""
        if self._first is None:
            return 0.0
        return max((datetime.fromisoformat(timestamp) - self._first).total_seconds(), 0.0)


def _first_time(document: JsonObject) -> str | None:
    if document["run"] is not None:
        return str(document["run"]["started_at"])
    times = [message["timestamp"] for message in document["messages"]]
    times += [call["started_at"] for call in document["tool_calls"] if call["started_at"]]
    return min(times, default=None)


def _turn(number: int, message: JsonObject, start_s: float, end_s: float) -> JsonObject:
    parts = [part for part in message["content"] if part["type"] != "tool_call" and part["text"]]
    said = [part["text"] for part in sorted(parts, key=lambda part: part["type"] != "text")]
    wanted = [part["name"] for part in message["content"] if part["type"] == "tool_call"]
    summary = message["error_message"] or (said or [", ".join(wanted[:_MAX_SUMMARY_CHARS])])[0]
    details = {
        "parts": [{"type": part["type"], "text": part["text"]} for part in parts],
        "model": f"{message['provider']}:{message['model']}",
        "stop_reason": message["stop_reason"],
        "error_message": message["error_message"],
        "usage": usage_text(message["usage"]),
        "timestamp": message["timestamp"],
    }
    return {
        "number": number,
        "start_s": start_s,
        "end_s": end_s,
        "summary": one_line(summary[: 4 * _MAX_SUMMARY_CHARS], _MAX_SUMMARY_CHARS),
        "calls": [],
        "details": details,
    }


def _lost_turn(number: int) -> JsonObject:
    """The turn of calls whose message is not on record."""
    details: JsonObject = {"parts": [], "usage": "not on record"}
    return {
        "number": number,
        "start_s": None,
        "end_s": None,
        "summary": "not on record",
        "calls": [],
        "details": details,
    }


_DETAILS: Final = (
    "id",
    "arguments",
    "decision",
    "stage",
    "content",
    "details",
    "started_at",
    "output_bytes",
    "truncated",
)


def _call(call: JsonObject, clock: _Clock, policy: JsonObject | None) -> JsonObject:
    explained = None if policy is None or call["decision"] is None else explain_command(call, policy["name"])
    raw = {"arguments_json": call["arguments_json"]} if "arguments_json" in call else {}
    return {
        "seq": call["seq"],
        "turn": call["turn"],
        "tool": call["tool"],
        "status": call["status"],
        "start_s": None if call["started_at"] is None else clock.seconds(call["started_at"]),
        "duration_s": call["duration_s"],
        "summary": arguments_of(call),
        "details": {name: call[name] for name in _DETAILS} | raw | {"explain": explained},
    }
