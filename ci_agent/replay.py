"""A recorded run played again: tools that answer from the record, and where this run parts from it."""

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from ci_agent.call_summary import summarise_arguments
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.events import AgentEnd, AgentEvent, ToolExecutionEnd, ToolExecutionStart
from ci_agent.hooks import ToolCallOutcome
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, TextContent, ToolResultContent
from ci_agent.spelling import counted
from ci_agent.terminal import one_line, printable
from ci_agent.tool import OnUpdate, Tool, ToolResult
from ci_agent.transcript.as_json import parts_json

Divergence: TypeAlias = Literal["status", "output"]
"""A call ended otherwise (denied, failed, gone well), or it ended alike and the model read something else."""

FailOnDivergence: TypeAlias = Literal["never", "status", "any"]

_COUNTED: dict[FailOnDivergence, tuple[Divergence, ...]] = {
    "never": (),
    "status": ("status",),
    "any": ("status", "output"),
}

_MAX_LINE_CHARS = 80
_CHARS_BEFORE_DIFFERENCE = 20

_RAN = ("execute", "after_tool_call")
"""Stages of a call that was executed and failed; an answer of None is that of one that went well."""


# Tools that answer from the record


def replayed_tools(tools: Mapping[str, Tool], document: JsonObject) -> dict[str, Tool]:
    """The same tools, but that a call does nothing and gets the result that the record has for it.

    A call that the record has no result for, because it was denied or cancelled then, fails and says so.
    """
    answers: dict[tuple[str, str], deque[JsonObject]] = defaultdict(deque)
    for call in document["tool_calls"]:
        answers[call["tool"], call["id"]].append(call)
    return {name: replace(tool, execute=_Replayed(name, answers)) for name, tool in tools.items()}


class _Replayed:
    """An `Execute` out of recorded calls; ids that repeat are answered in the order of the record."""

    def __init__(self, tool: str, answers: Mapping[tuple[str, str], deque[JsonObject]]) -> None:
        self._tool = tool
        self._answers = answers

    def __call__(self, call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        del arguments, cancel, on_update
        left = self._answers[self._tool, call_id]
        recorded = left.popleft() if left else None
        if recorded is None or (recorded["status"] != "ok" and recorded["stage"] not in _RAN):
            why = "is not in it" if recorded is None else f"was {_ending_words(recorded['status'])} then"
            raise ToolError(f"The record has no result for this call: it {why}.")
        if recorded["is_error"]:
            raise ToolError(_text(recorded["content"]), recorded["details"])
        return ToolResult(tuple(map(_content, recorded["content"])), recorded["details"])


def _content(part: JsonObject) -> ToolResultContent:
    if part["type"] == "image":
        return ImageContent(part["mime_type"], part["data_base64"])
    return TextContent(part["text"])


# Where a run parts from its record


class ReplayWatch:
    """Takes the run's events and tells of each call that ended otherwise than in the record.

    `note` gets one line a divergence; `clean` makes of a text what the record would hold of it.
    """

    def __init__(self, document: JsonObject, note: Callable[[str], None], clean: Callable[[str], str]) -> None:
        self._note = note
        self._clean = clean
        self._left = iter(document["tool_calls"])
        self._expected: dict[tuple[int, int], JsonObject | None] = {}
        self.divergences: dict[Divergence, int] = {"status": 0, "output": 0}

    def why_failed(self, when: FailOnDivergence) -> str | None:
        """What makes the run fail, in words; None: nothing does."""
        counts = [self.divergences[kind] for kind in _COUNTED[when]]
        return f"{counted(sum(counts), 'divergence')} from the record, see the notes" if any(counts) else None

    def observe(self, event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionStart):  # these come in the order of the record
            self._expected[event.turn, event.index] = next(self._left, None)
        elif isinstance(event, ToolExecutionEnd):
            self._compare(self._expected.pop((event.turn, event.index)), event)
        elif isinstance(event, AgentEnd):
            missing = sum(1 for _ in self._left)
            if missing:
                self._tell("status", f"{counted(missing, 'call')} of the record did not come again")

    def _compare(self, recorded: JsonObject | None, event: ToolExecutionEnd) -> None:
        if recorded is None:
            self._tell("status", f"{printable(event.tool_call.name)} is a call that the record does not have")
            return
        what = f"call {recorded['seq']}, {printable(recorded['tool'])} {_summary(recorded)}"
        outcome = event.outcome
        if outcome.status != recorded["status"]:
            self._tell("status", f"{what}: was {_ending_of(recorded)}, is {_ending_now(outcome)}")
            return
        before = _text(recorded["content"])
        now = self._clean(_text(parts_json(outcome.content)))
        if before != now:
            self._tell("output", f"{what}: the result differs{_first_difference(before, now)}")

    def _tell(self, kind: Divergence, text: str) -> None:
        self.divergences[kind] += 1
        self._note(text)


def _summary(recorded: JsonObject) -> str:
    return summarise_arguments(recorded["arguments"], recorded.get("arguments_json", ""))


def _ending_of(recorded: JsonObject) -> str:
    decision = recorded["decision"]
    by = decision["rule_id"] if decision and recorded["status"] == "denied" else None
    return _ending_words(recorded["status"]) + (f" by {printable(by)}" if by else "")


def _ending_now(outcome: ToolCallOutcome) -> str:
    by = outcome.decision.rule_id if outcome.decision and outcome.status == "denied" else None
    return _ending_words(outcome.status) + (f" by {printable(by)}" if by else "")


def _ending_words(status: str) -> str:
    return {"error": "an error", "unknown": "of unknown outcome"}.get(status, status)


def _text(parts: list[JsonObject]) -> str:
    return "\n".join(part["text"] if part["type"] == "text" else part["data_base64"] for part in parts)


def _first_difference(before: str, now: str) -> str:
    """` in line 2: 'a' became 'b'`; empty when the lines are alike and only their ends differ."""
    for number, old, new in _paired_lines(before, now):
        if old != new:
            place = _start_of_difference(old or "", new or "")
            return f" in line {number}: {_quoted(old, place)} became {_quoted(new, place)}"
    return ""


def _paired_lines(before: str, now: str) -> Iterator[tuple[int, str | None, str | None]]:
    pairs = itertools.zip_longest(before.splitlines(), now.splitlines())
    return ((number, old, new) for number, (old, new) in enumerate(pairs, start=1))


def _start_of_difference(old: str, new: str) -> int:
    """Where to begin so that what is quoted of both lines shows it: 0 when it is near enough to the front."""
    pairs = zip(old, new, strict=False)
    differs = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))
    return 0 if differs < _MAX_LINE_CHARS // 2 else differs - _CHARS_BEFORE_DIFFERENCE


def _quoted(line: str | None, start: int) -> str:
    if line is None:
        return "nothing"
    quoted = repr(one_line(line[start : start + 4 * _MAX_LINE_CHARS], _MAX_LINE_CHARS))
    return f"…{quoted}" if start else quoted
