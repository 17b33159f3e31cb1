"""Two records of the same task held against each other: calls of one alone, and calls that ended otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.transcript.plain_json import canonical_json

Change: TypeAlias = Literal["status", "decision", "output"]


@dataclass(frozen=True, slots=True)
class Removed:
    """A call that only the first run made."""

    call: JsonObject


@dataclass(frozen=True, slots=True)
class Added:
    """A call that only the second run made."""

    call: JsonObject


@dataclass(frozen=True, slots=True)
class Kept:
    """A call that both runs made."""

    before: JsonObject
    after: JsonObject
    changes: frozenset[Change]
    """How it ended, which rule decided, what the model read."""


ComparedCall: TypeAlias = Removed | Added | Kept


def compare_calls(before: JsonObject, after: JsonObject) -> list[ComparedCall]:
    """The calls of two transcript documents, those with the same tool and arguments together, in the order of both.

    Where a model did one thing in two places, the longest common run of calls decides which is which.
    """
    first, second = before["tool_calls"], after["tool_calls"]
    matcher = SequenceMatcher(None, [*map(_key, first)], [*map(_key, second)], autojunk=False)
    return [call for opcode in matcher.get_opcodes() for call in _compared(opcode, first, second)]


def _key(call: JsonObject) -> tuple[str, str]:
    said = call["arguments"] if call["arguments"] is not None else call.get("arguments_json", "")
    return call["tool"], canonical_json(said)


def _compared(
    opcode: tuple[str, int, int, int, int], first: Sequence[JsonObject], second: Sequence[JsonObject]
) -> Iterator[ComparedCall]:
    kind, begin, end, other_begin, other_end = opcode
    if kind == "equal":
        for old, new in zip(first[begin:end], second[other_begin:other_end], strict=True):
            yield Kept(old, new, frozenset(_changes(old, new)))
        return
    yield from (Removed(call) for call in first[begin:end])
    yield from (Added(call) for call in second[other_begin:other_end])


def _changes(old: JsonObject, new: JsonObject) -> Iterator[Change]:
    if old["status"] != new["status"]:
        yield "status"
    if _decided(old) != _decided(new):
        yield "decision"
    if old["content"] != new["content"]:
        yield "output"


def _decided(call: JsonObject) -> tuple[str, str, str | None] | None:
    decision = call["decision"]
    return None if decision is None else (decision["effect"], decision["code"], decision["rule_id"])
