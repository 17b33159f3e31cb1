"""The lines of a journal: one JSON record each, chained by hashes.

The chain shows a cut or a careless edit. It is no signature: who can write the file can also compute it anew.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from ci_agent.json_types import JsonObject, parse_json
from ci_agent.transcript.plain_json import json_text

JOURNAL_SCHEMA = "ci-agent.journal/1"

NO_RECORD = "0" * 64
"""Stands for the hash of the record before the first."""

LAST_KIND = "run_end"
"""The record that closes a journal. No later one vouches for it, so it ends in `seal`, the hash of its own bytes
up to there. When the document cannot be put in place, a second one follows it, and counts."""

_SEAL = b',"seal":"'


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a record; `line` is counted from 1, None: it concerns the whole file."""

    text: str
    line: int | None = None

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class JournalContents:
    records: tuple[JsonObject, ...]
    head: str
    """Hash of the last whole line; NO_RECORD when there is none."""
    dropped_bytes: int = 0
    """Length of a last line that was never finished: its record was not acknowledged."""
    problems: tuple[Problem, ...] = ()
    """Where the chain is broken or a line is no record."""

    @property
    def is_closed(self) -> bool:
        """Whether the run that wrote it came to its end."""
        return bool(self.records) and self.records[-1].get("kind") == LAST_KIND


def encode_line(record: JsonObject) -> bytes:
    """With its end; `run_end` gets its seal."""
    line = json_text(record).encode()
    if record["kind"] == LAST_KIND:
        line = line[:-1]
        line += _SEAL + hashlib.sha256(line).hexdigest().encode() + b'"}'
    return line + b"\n"


def read_lines(lines: Iterable[bytes]) -> JournalContents:
    """The records in the lines of a journal, each line with its end; a last line without one is dropped."""
    records: list[JsonObject] = []
    problems: list[Problem] = []
    head, seq, dropped_bytes = NO_RECORD, 0, 0
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            dropped_bytes = len(line)
            break
        record = _decode_line(line)
        if record is None:
            problems.append(Problem("is no record", number))
            seq += 1
        else:
            problems += [Problem(text, number) for text in _chain_problems(record, line, seq + 1, head)]
            records.append(record)
            seq = record["seq"]
        head = line_hash(line)
    return JournalContents(tuple(records), head, dropped_bytes, tuple(problems))


def line_hash(line: bytes) -> str:
    """SHA-256 of a line without its end, in hexadecimal: what the next record's `prev` holds."""
    return hashlib.sha256(line.removesuffix(b"\n")).hexdigest()


def _decode_line(line: bytes) -> JsonObject | None:
    try:
        record = parse_json(line.decode())
    except ValueError:
        return None
    if not isinstance(record, dict) or type(record.get("seq")) is not int or "kind" not in record:
        return None
    return record if _is_text(line, record) else None


def _is_text(line: bytes, record: JsonObject) -> bool:
    """Whether every character of it can be written again: no half of a surrogate pair, as no run writes one."""
    try:
        return b"\\u" not in line or bool(json_text(record).encode())
    except UnicodeEncodeError:
        return False


def _chain_problems(record: JsonObject, line: bytes, seq: int, head: str) -> list[str]:
    problems = []
    if record["seq"] != seq:
        problems.append(f"has number {record['seq']}, expected {seq}: records are missing, repeated or out of order")
    elif record.get("prev") != head:
        problems.append("does not continue the record before it: one of the two was changed")
    if record["kind"] == LAST_KIND and record.get("seal") != hashlib.sha256(line.rpartition(_SEAL)[0]).hexdigest():
        problems.append("was changed after it was written")
    return problems
