"""Arguments of a call that come as values at paths, as Vertex streams them: `$.files[0].name` and a piece of text."""

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NoReturn, TypeAlias

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.untrusted_json import text_at

MAX_PATH_CHARS = 1_000
_MAX_DEPTH = 64

_STEP = re.compile(r"""\.([^.\[\]'"*\s]+)|\[(\d{1,9})\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]""")
"""A step of a path into an object or a list; nothing else of JSONPath is understood."""
_Steps: TypeAlias = tuple[str | int, ...]


@dataclass(slots=True)
class _Text:
    """A text that is put together from pieces."""

    pieces: list[str] = field(default_factory=list)


class PartialArguments:
    def __init__(self, whole: JsonObject | None = None) -> None:
        """`whole`: arguments that came at once."""
        self._root: JsonObject = dict(whole or {})
        self._open: dict[_Steps, _Text] = {}
        """Texts that go on, by their place."""

    @property
    def is_complete(self) -> bool:
        """Whether no text waits for its rest."""
        return not self._open

    def add(self, pieces: list[Json]) -> None:
        """Raises ApiError for a path that cannot be followed and for a value that is none."""
        for piece in pieces:
            self._add(_steps(text_at(piece, "jsonPath")), piece)

    def value(self) -> JsonObject:
        """The arguments so far."""
        try:
            value: JsonObject = _plain(self._root)
        except RecursionError:
            _refuse("they are nested too deep")
        return value

    def _add(self, place: _Steps, piece: Json) -> None:
        value = _value_in(piece)
        text = self._open.pop(place, None)
        if not isinstance(value, str):
            _put(self._root, place, value)
            return
        if text is None:
            text = _Text()
            _put(self._root, place, text)
        text.pieces.append(value)
        if piece.get("willContinue") is True:
            self._open[place] = text


def _value_in(piece: Json) -> Json:
    """The one value of a piece: a text, a boolean, a number or null."""
    fields: JsonObject = piece if isinstance(piece, dict) else {}
    text, boolean, number = (fields.get(name) for name in ("stringValue", "boolValue", "numberValue"))
    if isinstance(text, str):
        return text
    if isinstance(boolean, bool):
        return boolean
    is_integer = isinstance(number, int) and not isinstance(number, bool)
    if is_integer or (isinstance(number, float) and math.isfinite(number)):
        return number
    if "nullValue" not in fields:
        _refuse("a piece holds no value that is known")
    return None


def _put(root: JsonObject, steps: _Steps, value: Json) -> None:
    place: Json = root
    for step, following in pairwise(steps):
        place = _entered(place, step, [] if isinstance(following, int) else {}, replaces=False)
    _entered(place, steps[-1], value, replaces=True)


def _entered(place: Json, step: str | int, new: Json, *, replaces: bool) -> Json:
    """What is at the step; `new` is put there when nothing is, or in its place. A list grows by one at a time."""
    if isinstance(place, dict) and isinstance(step, str):
        if replaces or step not in place:
            place[step] = new
    elif isinstance(place, list) and isinstance(step, int) and step <= len(place):
        if step == len(place):
            place.append(new)
        elif replaces:
            place[step] = new
    else:
        _refuse(f"a path leads through {str(step)[:100]!r}, which is not there")
    return place[step]


def _steps(path: str) -> _Steps:
    steps: list[str | int] = []
    position = 1
    while position < len(path) <= MAX_PATH_CHARS and len(steps) < _MAX_DEPTH:
        step = _STEP.match(path, position)
        if step is None:
            break
        names = [text for text in (step[1], step[3], step[4]) if text is not None]
        steps.append(names[0] if names else int(step[2]))
        position = step.end()
    if not path.startswith("$") or not steps or position != len(path):
        _refuse(f"the path {path[:100]!r} cannot be followed")
    return tuple(steps)


def _plain(value: Json) -> Json:
    if isinstance(value, _Text):
        return "".join(value.pieces)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _refuse(problem: str) -> NoReturn:
    raise ApiError("malformed", f"the arguments of a tool call cannot be put together: {problem}", retryable=True)
