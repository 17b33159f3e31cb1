"""How long a server asks to wait, in every form servers have for it.

Headers such as `x-ratelimit-reset-tokens` are not among them: they tell when a whole budget is back, which may be
minutes after this one request fits.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ci_agent.json_types import Json

_UNITS_S = {"ms": 0.001, "m": 60, "s": 1, "h": 3600, "d": 86_400}
_PART = r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|millis(?:econds?)?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|d(?:ays?)?)"
_PART_OF_WAIT = re.compile(rf"{_PART}(?![a-z])", re.IGNORECASE)
_WAIT = re.compile(
    rf"(?:retry|try again|please wait)(?: after| in| for)? ((?:{_PART_OF_WAIT.pattern}(?:,? and |, ?| )?){{1,4}})",
    re.IGNORECASE,
)


def wait_of_headers(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds, None when no header says it; their names are in small letters. The more exact one wins."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return seconds
    try:
        moment = parsedate_to_datetime(asked)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now).total_seconds(), 0.0)


def wait_of_text(message: str) -> float | None:
    """Seconds out of `retry after 33 seconds`, `Please try again in 1m12.5s` and their like."""
    match = _WAIT.search(message)
    if match is None:
        return None
    return sum(float(number) * _unit_s(unit) for number, unit in _PART_OF_WAIT.findall(match[1]))


def wait_of_duration(text: Json) -> float | None:
    """Seconds of Google's form, `45.837906927s`."""
    return _number(text[:-1]) if isinstance(text, str) and text.endswith("s") else None


def _unit_s(unit: str) -> float:
    word = unit.lower()
    if word.startswith("mil"):
        return _UNITS_S["ms"]
    return _UNITS_S[word] if word in _UNITS_S else _UNITS_S[word[0]]


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
