"""The event that started a GitHub workflow, as its runner leaves it in a file. Outsiders have had a say in it."""

from collections.abc import Mapping
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.text_files import read_text_file

EVENT_VARIABLE: Final = "GITHUB_EVENT_PATH"

MAX_EVENT_BYTES: Final = 25 * 1024 * 1024
"""GitHub sends no larger payload."""


def read_github_event(environment: Mapping[str, str]) -> JsonObject | None:
    """The event; None where there is none, and an empty one for JSON of another kind.

    ConfigurationError for a file that cannot be read or holds no JSON.
    """
    path = environment.get(EVENT_VARIABLE)
    if not path:
        return None
    try:
        event = parse_json(read_text_file(path, "event", max_bytes=MAX_EVENT_BYTES))
    except ValueError as error:
        raise ConfigurationError(f"the event {path!r} is no JSON: {error}") from error
    return event if isinstance(event, dict) else {}
