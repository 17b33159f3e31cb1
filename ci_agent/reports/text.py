"""A transcript as text for a person: what went wrong first, then the rest, the answer, and what to do next."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.reports.call_lines import STATUS_WIDTH, call_lines
from ci_agent.reports.calls import (
    MAX_REASON_CHARS,
    MAX_TOOL_CHARS,
    arguments_of,
    by_urgency,
    counts_of,
    decided_by,
    problems_of,
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
    usage_text,
    why_it_ended,
)
from ci_agent.spelling import counted
from ci_agent.terminal import prefixed, printable, shortened

Paint: TypeAlias = Callable[[str, int], str]
"""Text and an SGR number to text."""

_COLORS = {"denied": 31, "error": 31, "unknown": 33, "cancelled": 33, "ok": 32}
_BOLD = 1

_INDENT = "  "

_MAX_CALLS_IN_SIGHT = 20
"""With more calls behind the problems, these have left the screen when the outcome is read, and are named again."""
_MAX_NAMED_AGAIN = 3


def render_text(
    document: JsonObject, *, color: bool = False, columns: int | None = None, transcript: str | None = "TRANSCRIPT"
) -> str:
    """Several lines, the last without an end. None begins with text of a model or a tool, and nothing in them
    controls a terminal or commands a CI runner; colours only when asked for.

    `columns`: the width that calls are fitted to. Without it each call is one line, however long its reason.
    `transcript`: where the document is, as a word of a command; None: it was put nowhere.
    """
    paint = partial(_painted, color=color)
    sections = (
        _head(document),
        _calls(document["tool_calls"], paint, columns),
        _answer(document, paint),
        _notes(document["notes"], paint),
        _outcome(document, paint, columns, transcript),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section)))


def _painted(text: str, code: int, *, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text


def _head(document: JsonObject) -> Iterator[str]:
    run, model, policy = document["run"], document["model"], document["policy"]
    if run is None:
        nothing = not document["integrity"]["records"]
        yield "Run of which this report has no record" if nothing else "Run of which the beginning is lost"
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
    ordered = by_urgency(calls)
    for call, (first, *more) in zip(ordered, call_lines(ordered, columns and columns - len(_INDENT)), strict=True):
        yield f"{_INDENT}{paint(first[:STATUS_WIDTH], _COLORS[call['status']])}{first[STATUS_WIDTH:]}"
        yield from (f"{_INDENT}{line}" for line in more)


def _answer(document: JsonObject, paint: Paint) -> Iterator[str]:
    yield paint(answer_heading(document), _BOLD)
    text = document["result"]["final_text"]
    if text is not None:
        yield prefixed(text.rstrip("\n"), "  | ")


def _notes(notes: Sequence[JsonObject], paint: Paint) -> Iterator[str]:
    if notes:
        yield paint("Notes", _BOLD)
    for note in notes:
        yield f"  {note['at']}  {short(note['about'], MAX_TOOL_CHARS)}  {short(note['text'], MAX_REASON_CHARS)}"


def _outcome(document: JsonObject, paint: Paint, columns: int | None, transcript: str | None) -> Iterator[str]:
    yield f"{paint('Usage', _BOLD)}    {usage_text(document['usage'])}"
    yield f"{paint('Outcome', _BOLD)}  {conclusion(document)}"
    why = why_it_ended(document)
    if why is not None:
        yield f"  Why: {why}"
    yield from (f"  {caveat}" for caveat in caveats(document))
    yield from _named_again(document, columns)
    yield from (f"  Next: {step}" for step in next_steps(document, transcript))
    yield from (f"  Why the first denial: {command}" for command in explain_commands(document, 1))


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
