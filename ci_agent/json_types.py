"""JSON values, and the one strict reader of JSON text that comes from outside."""

import json
import re
from typing import Any, NoReturn, TypeAlias

Json: TypeAlias = Any
"""None, bool, int, float, str, list or dict with str keys; never NaN or an infinity. `Any` because a
recursive alias makes every use a cast."""

JsonObject: TypeAlias = dict[str, Json]

MAX_DEPTH = 100
"""Nesting accepted from outside; Python's own reader fails with RecursionError somewhere past it."""

MAX_INTEGER_DIGITS = 1_000
"""Longer integers are refused: converting them takes quadratic time and strict parsers reject them."""


def parse_json(text: str) -> Json:
    """Read one JSON value; raise ValueError with a message fit for a model or a person.

    Refuses what `json.loads` takes silently: duplicate keys, NaN and infinities (also a number such as
    1e999), nesting past MAX_DEPTH, integers past MAX_INTEGER_DIGITS.
    """
    if _depth_exceeds(text, MAX_DEPTH):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return json.loads(
        text,
        object_pairs_hook=_object_without_duplicates,
        parse_constant=_refuse_constant,
        parse_float=_finite_float,
        parse_int=_bounded_int,
    )


_ESCAPE = re.compile(r"\\.", re.DOTALL)
_STRING = re.compile(r'"[^"]*"?')
_BRACKET = re.compile(r"[\[\]{}]")


def _depth_exceeds(text: str, limit: int) -> bool:
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", _ESCAPE.sub("", text))):
        depth += 1 if bracket in "[{" else -1
        if depth > limit:
            return True
    return False


def _object_without_duplicates(pairs: list[tuple[str, Json]]) -> JsonObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        duplicate = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {json.dumps(duplicate)} appears twice in one object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _bounded_int(text: str) -> int:
    if len(text) > MAX_INTEGER_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits is too long")
    return int(text)
