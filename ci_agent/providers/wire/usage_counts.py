"""Token counts read out of JSON that nobody has checked."""

from ci_agent.json_types import Json

_LARGEST = 10**12
"""What is larger counts no tokens."""


def count(value: Json) -> int | None:
    """A count, as it came; None for what is none: absent, negative, fractional, a boolean, text, absurd."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        return None
    return int(value) if value == int(value) else None


def count_at(source: Json, *path: str) -> int | None:
    """The count at the end of a path of keys; None where a step is missing."""
    for key in path:
        if not isinstance(source, dict):
            return None
        source = source.get(key)
    return count(source)


def first_count(source: Json, *paths: tuple[str, ...]) -> int | None:
    """The count at the first of the paths that has one; servers put the same number in different places."""
    for path in paths:
        found = count_at(source, *path)
        if found is not None:
            return found
    return None
