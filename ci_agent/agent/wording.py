"""How names, values and errors are shown in messages to the model: escaped, bounded, with the nearest known name."""

import json
import traceback
from collections.abc import Collection

from ci_agent.errors import ToolError
from ci_agent.json_types import Json

MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 80
MAX_ERROR_CHARS = 2_000
MAX_LISTED_NAMES = 30


def show_name(name: str) -> str:
    """The name on one line: control, invisible and unpaired characters escaped, long ones cut."""
    return show_text(name, MAX_NAME_CHARS) or '""'


def show_value(value: Json) -> str:
    """The value as JSON on one line; the beginning of a long one."""
    return show_text(json.dumps(value, ensure_ascii=False), MAX_VALUE_CHARS)


def show_text(text: str, max_chars: int) -> str:
    cut = text if len(text) <= max_chars else f"{text[:max_chars]}..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in cut)


def show_names(names: Collection[str]) -> str:
    """The names in alphabetical order, as many as fit, and how many more there are."""
    listed = ", ".join(show_name(name) for name in sorted(names)[:MAX_LISTED_NAMES])
    more = len(names) - MAX_LISTED_NAMES
    return f"{listed} and {more} more" if more > 0 else listed


def show_exception(error: BaseException) -> str:
    """What a tool that failed has to say: the text of a ToolError as it is, anything else with its type and cut."""
    if isinstance(error, ToolError):
        return str(error) or "The tool failed without saying why."
    # Unlike str(), this holds for an exception whose own __str__ is broken.
    text = "".join(traceback.format_exception_only(error)).strip()
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}..."
