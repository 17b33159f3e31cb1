"""A transcript for a log of GitHub Actions: a folded group for each turn, annotations, the answer and the outcome.

The runner obeys no line but the commands made here. What models and tools said stands behind a prefix, or is the data
of a command.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.reports.call_lines import call_lines
from ci_agent.reports.calls import (
    MAX_RULE_CHARS,
    answering_calls,
    arguments_of,
    counts_of,
    decided_by,
    failing_calls,
    problems_of,
    result_text,
    same_problems,
    short,
    tool_name,
    what_went_wrong,
)
from ci_agent.reports.outcome import (
    answer_heading,
    caveats,
    conclusion,
    explain_commands,
    next_steps,
    outcome_line,
    why_it_ended,
)
from ci_agent.reports.places import Place, place_of
from ci_agent.spelling import counted
from ci_agent.terminal import prefixed, shortened

Level: TypeAlias = Literal["error", "warning", "notice"]

_LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "notice")

_MAX_ANNOTATIONS: Final = 10
"""What the runner keeps of each level in a step (actions/runner, ExecutionContext.cs)."""

_MAX_MESSAGE_CHARS: Final = 1_300
"""The runner cuts at 4,096; escaping makes at most three characters of one."""

_MAX_RESULT_LINES = 10
_MAX_SAID_LINES = 100
_MAX_LINE_CHARS = 300
_MAX_ANSWER_LINE_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Annotation:
    level: Level
    title: str
    message: str
    place: Place | None = None


def render_github(document: JsonObject) -> str:
    """Lines for a step's log, the last with its end."""
    lines = [
        *_turns(document),
        *_answer(document),
        *annotation_lines(document),
        *(f"Why it was denied: {command}" for command in explain_commands(document)),
        f"ci-agent: {outcome_line(document)}",
    ]
    return "\n".join(lines) + "\n"


def annotation_lines(document: JsonObject) -> list[str]:
    """The annotations alone: workflow commands, a line each."""
    return [*map(annotation_command, _bounded([_outcome(document), *_problems(document)]))]


def _turns(document: JsonObject) -> Iterator[str]:
    said = _said_by_turn(document)
    for turn, grouped in groupby(document["tool_calls"], key=lambda call: call["turn"]):
        calls = list(grouped)
        yield f"::group::turn {turn}: {counted(len(calls), 'call')} ({counts_of(calls)})"
        yield from _quoted(said.get(turn, ""), _MAX_SAID_LINES)
        for call, (line,) in zip(calls, call_lines(calls), strict=True):
            yield line
            yield from _result(call)
        yield "::endgroup::"


def _result(call: JsonObject) -> Iterator[str]:
    """Nothing when the line of the call has said it."""
    text = result_text(call)
    if call["status"] == "ok" or "\n" in text.strip():
        yield from _quoted(text, _MAX_RESULT_LINES)


def _said_by_turn(document: JsonObject) -> dict[int, str]:
    """What the model said in each turn; nothing when the beginning is lost, and with it the count of turns."""
    if document["run"] is None:
        return {}
    messages = [message for message in document["messages"] if message["role"] == "assistant"]
    return {turn: _text_of(message) for turn, message in enumerate(messages, 1)}


def _text_of(message: JsonObject) -> str:
    return "".join(part["text"] for part in message["content"] if part["type"] == "text")


def _answer(document: JsonObject) -> Iterator[str]:
    yield answer_heading(document)
    yield from _quoted(document["result"]["final_text"] or "", _MAX_SAID_LINES, _MAX_ANSWER_LINE_CHARS)


def _quoted(text: str, max_lines: int, max_chars: int = _MAX_LINE_CHARS) -> Iterator[str]:
    """Its first lines, none longer than a log can bear, behind a prefix."""
    lines = text.strip("\n").split("\n", max_lines) if text else []
    for line in lines[:max_lines]:
        yield prefixed(shortened(line, max_chars), "    | ")
    if len(lines) > max_lines:
        yield f"    … and {counted(lines[-1].count(chr(10)) + 1, 'more line')}, in the transcript"


def _outcome(document: JsonObject) -> Annotation:
    result = document["result"]
    told = [conclusion(document), why_it_ended(document), *caveats(document), *next_steps(document)]
    level: Level = "notice" if result["exit_code"] == 0 else "error"
    return Annotation(level, f"ci-agent: {result['reason']}", "\n".join(filter(None, told)))


def _problems(document: JsonObject) -> Iterator[Annotation]:
    """One for each kind of problem, those that fail the run first."""
    failing, answers = failing_calls(document), answering_calls(document)
    groups = same_problems(problems_of(document))
    for calls in sorted(groups, key=lambda calls: calls[0]["seq"] not in failing):
        call = calls[0]
        level: Level = "error" if call["seq"] in failing else "notice" if call["seq"] in answers else "warning"
        times = f" ({len(calls)} times)" if len(calls) > 1 else ""
        by = decided_by(call) if call["status"] == "denied" else f"({decided_by(call)})"
        title = f"ci-agent: {call['status']} {by}{times}"
        what = f"{tool_name(call)}: {arguments_of(call)}"
        yield Annotation(level, title, f"{what}\n{what_went_wrong(call)}", place_of(call, document["run"]))


def _bounded(annotations: Sequence[Annotation]) -> Iterator[Annotation]:
    """As many of each level as the runner keeps; the last says how many are left out."""
    for level in _LEVELS:
        wanted = [annotation for annotation in annotations if annotation.level == level]
        if len(wanted) <= _MAX_ANNOTATIONS:
            yield from wanted
            continue
        yield from wanted[: _MAX_ANNOTATIONS - 1]
        left_out = len(wanted) - _MAX_ANNOTATIONS + 1
        yield Annotation(level, "ci-agent: more of these", f"{left_out} more are in the log and in the transcript")


def annotation_command(annotation: Annotation) -> str:
    """The workflow command, a line without its end."""
    place = annotation.place
    properties = {"title": short(annotation.title, 2 * MAX_RULE_CHARS)}
    if place is not None:
        properties |= {"file": place.path} | ({"line": str(place.line)} if place.line else {})
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{annotation.level} {told}::{_data(shortened(annotation.message, _MAX_MESSAGE_CHARS))}"


def _data(text: str) -> str:
    """As the runner's UnescapeData wants it (actions/runner, ActionCommand.cs)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
