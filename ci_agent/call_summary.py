"""A tool call and its failure in a few words, the same in the log and in reports."""

import json
import re
from collections.abc import Sequence
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.terminal import printable, shortened

MAX_SUMMARY_CHARS: Final = 80
MAX_FAILURE_CHARS: Final = 160

_TELLING_ARGUMENTS: Final = ("command", "path", "url", "pattern")
"""The argument that says most about a call: the first of these that it has."""

_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")
"""What programs colour their output with."""


def summarise_arguments(arguments: Json, raw: str) -> str:
    """The most telling argument, or all of them; `raw` when the arguments are no object. One printable line."""
    if not isinstance(arguments, dict):
        return _short(raw, MAX_SUMMARY_CHARS)
    pattern, path = arguments.get("pattern"), arguments.get("path")
    if isinstance(pattern, str) and isinstance(path, str):
        return _short(f"{pattern[:MAX_SUMMARY_CHARS]} in {path}", MAX_SUMMARY_CHARS)
    telling = next((arguments[name] for name in _TELLING_ARGUMENTS if isinstance(arguments.get(name), str)), None)
    return _short(json.dumps(arguments, ensure_ascii=False) if telling is None else telling, MAX_SUMMARY_CHARS)


_SAYS_WHY = re.compile(
    r"\b(fatal|errors?|fail(ed|ure|ures)?|denied|refused|cannot|can't|unable|no such|not found|missing)\b|Error\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"denied|not permitted|read-only file system|unreachable|cross-device link", re.IGNORECASE)
_BEFORE_USAGE = re.compile(r"(fatal|error|warning): ", re.IGNORECASE)
_ONLY_A_STATUS = re.compile(r"hint: |make(\[\d+\])?: \*\*\* |npm (ERR!|error) (A complete log|\S*$|code |errno )")
"""Lines of a program that say no more than that another one failed, or what to do about it."""

_MAX_SAYING_LINES = 200
"""From the end; a program tells last why it failed."""


def summarise_failure(text: str, details: JsonObject | None) -> str:
    """What an error result says, in a line: of a command that failed its status and the last line that tells why."""
    lines = without_colours(text).strip().splitlines() or [""]
    ran = details is not None and ("exit_status" in details or "timed_out" in details)
    if not ran:
        is_lead = lines[0].endswith((".", ":"))  # and the reason comes behind it
        reason = [line.removeprefix("- ") for line in lines[1:2] if is_lead or line.startswith("- ")]
        return _short(" ".join([lines[0], *reason]), MAX_FAILURE_CHARS)
    *printed, status = lines
    if not status.startswith("exit status "):
        return _short(status, MAX_FAILURE_CHARS)
    refused = bool(printed) and printed[-1].startswith("[The sandbox refused something ")
    why = _telling_line(printed[:-1], _REFUSED) if refused else _telling_line(printed, _SAYS_WHY)
    told = f"{status} (perhaps the sandbox)" if refused else status
    return _short(f"{told}: {why}" if why else told, MAX_FAILURE_CHARS)


def without_colours(text: str) -> str:
    return _COLOURS.sub("", text)


def _telling_line(printed: Sequence[str], telling: re.Pattern[str]) -> str:
    lines = [line.strip()[: MAX_FAILURE_CHARS + 1] for line in _without_usage(printed)[-_MAX_SAYING_LINES:]]
    said = [line for line in lines if line and line != "(no output)" and not _ONLY_A_STATUS.match(line)]
    return next((line for line in reversed(said) if telling.search(line)), said[-1] if said else "")


def _without_usage(printed: Sequence[str]) -> Sequence[str]:
    """Of a program that says what is wrong and then explains all its options, as git does, what is wrong."""
    usage = next((at for at, line in enumerate(printed) if line.startswith(("usage:", "Usage:"))), 0)
    return [line for line in printed[:usage] if _BEFORE_USAGE.match(line)] or printed


def _short(text: str, max_chars: int) -> str:
    return shortened(printable(text[: max_chars + 1]), max_chars)  # what a model sends can be millions long
