"""What an outsider wrote in the event that started a GitHub workflow: to be shown to a model, never to be obeyed."""

from collections.abc import Iterator, Mapping
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.github_event import EVENT_VARIABLE, read_github_event
from ci_agent.json_types import Json, JsonObject
from ci_agent.prompts import ContextText

_THINGS: Final = ("pull_request", "issue", "discussion", "comment", "review", "release")
_TEXTS: Final = ("title", "name", "body")
_MAX_CHARS: Final = 100_000


def read_event_texts(environment: Mapping[str, str]) -> tuple[ContextText, ...]:
    """Titles and bodies of what the event is about; ConfigurationError where there is no event."""
    event = read_github_event(environment)
    if event is None:
        raise ConfigurationError(f"--event-text needs the variable {EVENT_VARIABLE}, which GitHub's runner sets")
    return tuple(_texts(event))


def _texts(event: JsonObject) -> Iterator[ContextText]:
    for thing in _THINGS:
        for key in _TEXTS:
            text = _text_at(event.get(thing), key)
            if text:
                yield ContextText(f"the {key} of the event's {thing.replace('_', ' ')}", text[:_MAX_CHARS])


def _text_at(thing: Json, key: str) -> str:
    text = thing.get(key) if isinstance(thing, dict) else None
    return text if isinstance(text, str) else ""
