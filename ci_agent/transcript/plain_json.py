"""Whatever a tool or a model sends, made into JSON that every strict parser takes."""

import json
import math
import re
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import PurePath
from typing import NamedTuple

from ci_agent.json_types import Json, JsonObject

MAX_DEPTH = 48
"""Nesting kept of one value. A document around it stays below 64 levels, where the first common parsers give up."""

MAX_VALUES = 100_000
"""Values kept of one value. A bound is needed: a list that holds itself twice has no end."""

MAX_INTEGER_BITS = 2_000
"""About 600 digits, as far as any Python promises to print an integer."""

_MIN_TELLING_DIGITS = 8
"""An integer from here on may be something that `edit` must see."""

REPLACEMENT = "\ufffd"

_SURROGATE = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")

_INVISIBLE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Controls, reordering and zero-width characters: legal in JSON as they are, but not harmless in a terminal."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_CANONICAL = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)


class Plain(NamedTuple):
    value: Json
    replaced: int
    """Lone surrogates and invalid bytes that became U+FFFD."""
    complete: bool
    """False: something was too deep, too much or no JSON type, and a note in brackets stands in its place."""


def plain(
    value: object,
    edit: Callable[[str], str] = str,
    *,
    max_depth: int = MAX_DEPTH,
    max_values: int = MAX_VALUES,
) -> Plain:
    """The value as None, bool, int, float, str, list and dict alone.

    `edit` is applied to every text, keys included, and to the digits of long integers; one that it changes becomes
    a text.

    Lone surrogates and bytes that are not UTF-8 become U+FFFD, NaN and the infinities the texts "NaN", "Infinity"
    and "-Infinity". Keys that become equal get a number, so that no object has the same key twice.
    """
    conversion = _Conversion(edit, max_values)
    converted = conversion.convert(value, max_depth)
    return Plain(converted, conversion.replaced, conversion.complete)


def json_text(value: Json) -> str:
    """Compact JSON in one line. Text stays readable, but for what would act on a terminal: that is escaped."""
    text = _COMPACT.encode(value)
    return text if text.isascii() and "\x7f" not in text else _INVISIBLE.sub(_escape, text)


def canonical_json(value: Json) -> str:
    """The one spelling of a value: keys sorted, ASCII, no spaces. What a digest is taken of."""
    return _CANONICAL.encode(value)


def well_formed(text: str) -> tuple[str, int]:
    """The text without lone surrogates, and how many became U+FFFD; a pair of them becomes its character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        lone = 0

        def mend(found: re.Match[str]) -> str:
            nonlocal lone
            if len(found[0]) == 2:
                return found[0].encode("utf-16", "surrogatepass").decode("utf-16")
            lone += 1
            return REPLACEMENT

        return _SURROGATE.sub(mend, text), lone
    return text, 0


class _Conversion:
    def __init__(self, edit: Callable[[str], str], max_values: int) -> None:
        self.replaced = 0
        self.complete = True
        self._edit = edit
        self._left = max_values

    def convert(self, value: object, depth: int) -> Json:
        self._left -= 1
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case int():
                return self._integer(value)
            case float():
                return value if math.isfinite(value) else _name_of_no_number(value)
            case bytes() | bytearray():
                return self._bytes(bytes(value))
            case dict():
                return self._dict(value, depth) if depth else self._left_out("nested too deep")
            case list() | tuple() | set() | frozenset():
                return self._list(value, depth) if depth else self._left_out("nested too deep")
            case PurePath() | date():
                return self._text(str(value))
        return self._left_out(f"a Python {type(value).__name__}")

    def _integer(self, value: int) -> int | str:
        if value.bit_length() > MAX_INTEGER_BITS:
            return self._left_out("an integer too long")
        digits = str(value)
        edited = self._edit(digits) if len(digits) >= _MIN_TELLING_DIGITS else digits
        return value if edited == digits else edited

    def _text(self, text: str) -> str:
        text, lone = well_formed(text)
        self.replaced += lone
        return self._edit(text)

    def _bytes(self, data: bytes) -> str:
        text = data.decode("utf-8", "replace")
        self.replaced += text.count(REPLACEMENT) - data.count(REPLACEMENT.encode())
        return self._edit(text)

    def _list(self, values: Iterable[object], depth: int) -> list[Json]:
        result: list[Json] = []
        for value in values:
            if self._left <= 0:
                return [*result, self._left_out("too many values")]
            result.append(self.convert(value, depth - 1))
        return result

    def _dict(self, values: dict[object, object], depth: int) -> JsonObject:
        result: JsonObject = {}
        repeats: dict[str, int] = {}
        for key, value in values.items():
            if self._left <= 0:
                return result | {_free_key(self._left_out("too many values"), result, repeats): None}
            name = _free_key(self._key(key), result, repeats)
            result[name] = self.convert(value, depth - 1)
        return result

    def _key(self, key: object) -> str:
        text = self.convert(key, 0)
        return text if isinstance(text, str) else json.dumps(text)

    def _left_out(self, what: str) -> str:
        self.complete = False
        return f"[left out: {what}]"


def _name_of_no_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _free_key(key: str, taken: JsonObject, repeats: dict[str, int]) -> str:
    # The counts make it one step a key: thousands of keys that become equal are easy to send.
    free = key
    while free in taken:
        repeats[key] = repeats.get(key, 1) + 1
        free = f"{key} ({repeats[key]})"
    return free


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
