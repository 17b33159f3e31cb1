"""A tool call and its failure in a few words, the same in the log and in reports."""

import json
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.terminal import printable, shortened

MAX_SUMMARY_CHARS: Final = 80
MAX_FAILURE_CHARS: Final = 160

_TELLING_ARGUMENTS: Final = ("command", "path", "url", "pattern")
"""The argument that says most about a call: the first of these that it has."""


def summarise_arguments(arguments: Json, raw: str) -> str:
    """The most telling argument, or all of them; `raw` when the arguments are no object. One printable line."""
    if not isinstance(arguments, dict):
        return _short(raw, MAX_SUMMARY_CHARS)
    telling = next((arguments[name] for name in _TELLING_ARGUMENTS if isinstance(arguments.get(name), str)), None)
    return _short(json.dumps(arguments, ensure_ascii=False) if telling is None else telling, MAX_SUMMARY_CHARS)


def summarise_failure(text: str, details: JsonObject | None) -> str:
    """The line of an error result that says most: the last one of a command that failed, else the first."""
    lines = text.strip().splitlines() or [""]
    ran = details is not None and ("exit_status" in details or "timed_out" in details)
    return _short(lines[-1] if ran else lines[0], MAX_FAILURE_CHARS)


def _short(text: str, max_chars: int) -> str:
    return shortened(printable(text[: max_chars + 1]), max_chars)  # what a model sends can be millions long
