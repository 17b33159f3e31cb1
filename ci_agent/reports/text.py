"""A transcript as text for a person: what went wrong first, then the rest, the answer, and what to do next."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import (
    MAX_REASON_CHARS,
    PROBLEMS,
    arguments_of,
    by_urgency,
    counts_of,
    decided_by,
    how_it_ended,
    problems_of,
    same_problems,
    short,
    tool_name,
    what_went_wrong,
)
from ci_agent.reports.outcome import caveats, conclusion, explain_command, next_steps, usage_text, why_it_ended
from ci_agent.spelling import counted
from ci_agent.terminal import prefixed, printable, shortened

Paint: TypeAlias = Callable[[str, int], str]
"""Text and an SGR number to text."""

_COLORS = {"denied": 31, "error": 31, "unknown": 33, "cancelled": 33, "ok": 32}
_BOLD = 1

_STATUS_START, _STATUS_END = 2, 11
"""Where the status stands in the line of a call."""

_ROOMY_COLUMNS = 100
"""From here on there is room for the turn as well."""

_MAX_PADDED_CHARS = 40
"""One call with long arguments pushes nobody else's ending to the right."""

_MAX_CALLS_IN_SIGHT = 20
"""With more calls behind the problems, these have left the screen when the outcome is read, and are named again."""
_MAX_NAMED_AGAIN = 3


def render_text(document: JsonObject, *, color: bool = False, columns: int | None = None) -> str:
    """Several lines, the last without an end. None begins with text of a model or a tool, and nothing in them
    controls a terminal or commands a CI runner; colours only when asked for.

    `columns`: the width that calls are fitted to. Without it each call is one line, however long its reason.
    """
    paint = partial(_painted, color=color)
    sections = (
        _head(document),
        _calls(document["tool_calls"], paint, columns),
        _answer(document["result"]["final_text"], paint),
        _notes(document["notes"], paint),
        _outcome(document, paint, columns),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section)))


def _painted(text: str, code: int, *, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text


def _head(document: JsonObject) -> Iterator[str]:
    run, model, policy = document["run"], document["model"], document["policy"]
    if run is None:
        yield "Run of which the beginning is lost"
        return
    took = "" if run["duration_s"] is None else f", took {run['duration_s']:.1f} s"
    yield f"Run {printable(run['id'])}, begun {run['started_at']}{took}, ci-agent {printable(run['version'])}"
    if model is not None:
        yield f"  model      {printable(model['provider'])}:{printable(model['model'])}"
    if policy is not None:
        rules = counted(policy["rules"], "rule")
        yield f"  policy     {printable(policy['name'])} ({rules}, sha256 {policy['sha256'][:12]})"
    yield f"  workspace  {printable(run['workspace'])}"
    if run["sandbox"] is not None:
        yield f"  sandbox    {printable(run['sandbox']['kind'])}"


def _calls(calls: Sequence[JsonObject], paint: Paint, columns: int | None) -> Iterator[str]:
    if not calls:
        yield paint("No tool calls", _BOLD)
        return
    yield f"{paint('Tool calls', _BOLD)}  {counts_of(calls)}"
    head, width = _layout(calls, columns)
    for call in by_urgency(calls):
        first, *more = _call_lines(call, head(call), width, columns)
        status = paint(first[_STATUS_START:_STATUS_END], _COLORS[call["status"]])
        yield f"{first[:_STATUS_START]}{status}{first[_STATUS_END:]}"
        yield from more


def _layout(calls: Sequence[JsonObject], columns: int | None) -> tuple[Callable[[JsonObject], str], int]:
    """What stands before the arguments of a call, and how wide the arguments are."""
    seq_width = max(len(str(call["seq"])) for call in calls)
    turn_width = max(len(str(call["turn"])) for call in calls)
    tool_width = max(len(tool_name(call)) for call in calls)
    roomy = columns is None or columns >= _ROOMY_COLUMNS

    def head(call: JsonObject) -> str:
        turn = f"turn {call['turn']:<{turn_width}}  " if roomy else ""
        return f"  {call['status']:<9}  #{call['seq']:<{seq_width}}  {turn}{tool_name(call):<{tool_width}}  "

    return head, min(max(len(arguments_of(call)) for call in calls), _MAX_PADDED_CHARS)


def _call_lines(call: JsonObject, head: str, width: int, columns: int | None) -> list[str]:
    arguments, ending = arguments_of(call), how_it_ended(call)
    line = f"{head}{arguments:<{width}}  {ending}"
    if columns is None or len(line) <= columns:
        return [line]
    if call["status"] not in PROBLEMS:
        room = max(columns - len(head) - len(ending) - 2, 8)
        return [f"{head}{shortened(arguments, room):<{min(width, room)}}  {ending}"]
    indent = " " * (_STATUS_END + 2) + "| "
    first = f"{head}{shortened(arguments, max(columns - len(head), 8))}"
    return [first, *textwrap.wrap(ending, max(columns, 40), initial_indent=indent, subsequent_indent=indent)]


def _answer(text: str | None, paint: Paint) -> Iterator[str]:
    if text is None:
        yield paint("No answer", _BOLD)
        return
    yield paint("Answer", _BOLD)
    yield prefixed(text, "  | ")


def _notes(notes: Sequence[JsonObject], paint: Paint) -> Iterator[str]:
    if notes:
        yield paint("Notes", _BOLD)
    for note in notes:
        yield f"  {note['at']}  {printable(note['about'])}  {short(note['text'], MAX_REASON_CHARS)}"


def _outcome(document: JsonObject, paint: Paint, columns: int | None) -> Iterator[str]:
    yield f"{paint('Usage', _BOLD)}    {usage_text(document['usage'])}"
    yield f"{paint('Outcome', _BOLD)}  {conclusion(document)}"
    why = why_it_ended(document)
    if why is not None:
        yield f"  Why: {why}"
    yield from (f"  {caveat}" for caveat in caveats(document))
    yield from _named_again(document, columns)
    yield from (f"  Next: {step}" for step in next_steps(document))
    command = explain_command(document)
    if command is not None:
        yield f"  Why the first denial: {command}"


def _named_again(document: JsonObject, columns: int | None) -> Iterator[str]:
    """The most frequent problems, when the list of calls is so long that they are out of sight."""
    problems = problems_of(document)
    if not problems or len(document["tool_calls"]) <= _MAX_CALLS_IN_SIGHT:
        return
    groups = sorted(same_problems(problems), key=len, reverse=True)
    for group in groups[:_MAX_NAMED_AGAIN]:
        call = group[0]
        what = f"{tool_name(call)} {arguments_of(call)}: {decided_by(call)}: {what_went_wrong(call)}"
        line = f"  {call['status']} {len(group)}x, first #{call['seq']}: {what}"
        yield line if columns is None else shortened(line, columns)
    if len(groups) > _MAX_NAMED_AGAIN:
        yield f"  and {counted(len(groups) - _MAX_NAMED_AGAIN, 'other problem')}, at the head of the list of calls"
