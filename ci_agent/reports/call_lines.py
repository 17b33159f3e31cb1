"""Calls as lines of columns, fitted to a width."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import PROBLEMS, arguments_of, how_it_ended, timeless, tool_name
from ci_agent.terminal import shortened

STATUS_WIDTH: Final = 9
"""The first column is the status, so wide."""

_ROOMY_COLUMNS = 100
"""From here on there is room for the turn as well."""

_MAX_PADDED_CHARS = 40
"""One call with long arguments pushes nobody else's ending to the right."""


def call_lines(calls: Sequence[JsonObject], columns: int | None = None) -> Iterator[list[str]]:
    """The lines of each call, the status first; none begins with text of a model or a tool.

    Without `columns` each call is one line. With it lines are no wider: what a problem needs more is indented behind a
    bar, and one that an earlier call has told refers to it.
    """
    if not calls:
        return
    head = _head(calls, roomy=columns is None or columns >= _ROOMY_COLUMNS)
    width = min(max(len(arguments_of(call)) for call in calls), _MAX_PADDED_CHARS)
    endings = _endings(calls, shorten_repeats=columns is not None)
    for call, ending in zip(calls, endings, strict=True):
        yield _lines(call, ending, head(call), width, columns)


def _head(calls: Sequence[JsonObject], *, roomy: bool) -> Callable[[JsonObject], str]:
    """What stands before the arguments of a call."""
    seq_width = max(len(str(call["seq"])) for call in calls)
    turn_width = max(len(str(call["turn"])) for call in calls)
    tool_width = max(len(tool_name(call)) for call in calls)

    def head(call: JsonObject) -> str:
        turn = f"turn {call['turn']:<{turn_width}}  " if roomy else ""
        status = f"{call['status']:<{STATUS_WIDTH}}"
        return f"{status}  #{call['seq']:<{seq_width}}  {turn}{tool_name(call):<{tool_width}}  "

    return head


def _endings(calls: Sequence[JsonObject], *, shorten_repeats: bool) -> Iterator[str]:
    """How each call ended; a problem that an earlier one of the same kind has told may refer to it."""
    first: dict[tuple[str, str, str], int] = {}
    for call in calls:
        ending = how_it_ended(call)
        kind = (call["status"], tool_name(call), timeless(ending))
        told_by = first.setdefault(kind, call["seq"])
        repeats = shorten_repeats and call["status"] in PROBLEMS and told_by != call["seq"]
        yield f"as #{told_by}" if repeats else ending


def _lines(call: JsonObject, ending: str, head: str, width: int, columns: int | None) -> list[str]:
    arguments = arguments_of(call)
    line = f"{head}{arguments:<{width}}  {ending}"
    if columns is None or len(line) <= columns:
        return [line]
    if call["status"] not in PROBLEMS:
        room = max(columns - len(head) - len(ending) - 2, 8)
        return [f"{head}{shortened(arguments, room):<{min(width, room)}}  {ending}"]
    indent = " " * (STATUS_WIDTH + 2) + "| "
    first = f"{head}{shortened(arguments, max(columns - len(head), 8))}"
    return [first, *textwrap.wrap(ending, max(columns, 40), initial_indent=indent, subsequent_indent=indent)]
