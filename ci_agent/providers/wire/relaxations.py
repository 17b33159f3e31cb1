"""Lesser requests: what a server refused and can do without is left out, so that a refusal need not end a run."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError

Change: TypeAlias = Callable[[ApiRequest], ApiRequest]
"""Makes another request, or gives back an equal one where there is nothing to change."""


class Relaxation(NamedTuple):
    complaint: re.Pattern[str]
    """Found in the server's words."""
    change: Change


def relaxation(complaint: str, change: Change) -> Relaxation:
    return Relaxation(re.compile(complaint, re.IGNORECASE), change)


def relaxed(relaxations: Sequence[Relaxation], request: ApiRequest, error: ApiError) -> ApiRequest | None:
    """The request with the first change that the complaint is about and that makes a difference; None: there is none.

    Each relaxation leaves something out, so asking again and again comes to an end.
    """
    if error.status not in (400, 422):
        return None
    for complaint, change in relaxations:
        if complaint.search(error.message):
            lesser = change(request)
            if lesser != request:
                return lesser
    return None


def leave_out(*path: str) -> Change:
    """The change that leaves out the field at a path of the body, and what is empty then."""
    return lambda request: replace(request, body=_without(request.body, path))


def _without(source: JsonObject, path: Sequence[str]) -> JsonObject:
    key, *rest = path
    if key not in source:
        return source
    kept = {name: value for name, value in source.items() if name != key}
    inner = _without(source[key], rest) if rest and isinstance(source[key], dict) else {}
    return {**kept, key: inner} if inner else kept
