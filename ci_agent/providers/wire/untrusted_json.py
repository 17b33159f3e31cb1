"""Values out of JSON that nobody has checked: of the type asked for, or empty. Counts: `usage_counts`."""

import json

from ci_agent.json_types import Json, JsonObject


def text_at(source: Json, *path: str) -> str:
    """The text at the end of a path of keys; empty where a step is missing or no text is there."""
    # Not over value_at: this is asked three times for each piece of a stream.
    for key in path:
        if not isinstance(source, dict):
            return ""
        source = source.get(key)
    return source if isinstance(source, str) else ""


def object_at(source: Json, *path: str) -> JsonObject:
    value = value_at(source, *path)
    return value if isinstance(value, dict) else {}


def list_at(source: Json, *path: str) -> list[Json]:
    value = value_at(source, *path)
    return value if isinstance(value, list) else []


def value_at(source: Json, *path: str) -> Json:
    """The value at the end of a path of keys; None where a step is missing."""
    for key in path:
        if not isinstance(source, dict):
            return None
        source = source.get(key)
    return source


def can_be_sent(value: Json) -> bool:
    """Whether it can go back byte for byte: with half a surrogate pair in it, no server would read it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
