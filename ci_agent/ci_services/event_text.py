"""What an outsider wrote in the event that started a GitHub workflow: to be shown to a model, never to be obeyed."""

from collections.abc import Iterator, Mapping
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.prompts import ContextText
from ci_agent.text_files import read_text_file

_THINGS: Final = ("pull_request", "issue", "discussion", "comment", "review", "release")
_TEXTS: Final = ("title", "name", "body")
_MAX_CHARS: Final = 100_000

MAX_EVENT_BYTES: Final = 25 * 1024 * 1024
"""GitHub sends no larger payload."""


def read_event_texts(environment: Mapping[str, str]) -> tuple[ContextText, ...]:
    """Titles and bodies of what the event is about; ConfigurationError where there is no event."""
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        raise ConfigurationError("--event-text needs the variable GITHUB_EVENT_PATH, which GitHub's runner sets")
    try:
        event = parse_json(read_text_file(path, "event", max_bytes=MAX_EVENT_BYTES))
    except ValueError as error:
        raise ConfigurationError(f"the event {path!r} is no JSON: {error}") from error
    return tuple(_texts(event if isinstance(event, dict) else {}))


def _texts(event: JsonObject) -> Iterator[ContextText]:
    for thing in _THINGS:
        for key in _TEXTS:
            text = _text_at(event.get(thing), key)
            if text:
                yield ContextText(f"the {key} of the event's {thing.replace('_', ' ')}", text[:_MAX_CHARS])


def _text_at(thing: Json, key: str) -> str:
    text = thing.get(key) if isinstance(thing, dict) else None
    return text if isinstance(text, str) else ""
