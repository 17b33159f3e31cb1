"""Regular expressions of a policy: RE2, linear time, always on the whole value."""

from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class Regex:
    text: str
    compiled: Any
    """What the RE2 binding returns; it ships no types."""

    def matches(self, value: str) -> bool:
        """Whether the whole value fits, a closing line break included."""
        return self.compiled.fullmatch(value) is not None


def parse_regex(text: str) -> Regex:
    """Compile an RE2 expression; ValueError for what RE2 does not know, with what to write instead."""
    try:
        import re2  # noqa: PLC0415  # most policies have no regular expression, and it is slow to load
    except ImportError as error:
        raise ValueError("regular expressions need the package google-re2, which cannot be loaded here") from error
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a regular expression may have {MAX_CHARACTERS} characters at most")
    if _has_byte_escape(text):
        raise ValueError(r"`\C` matches half a character; it is not allowed")
    options = re2.Options()
    options.log_errors = False
    # Where groups matched is of no interest, and to find it out takes a hundred times as long.
    options.never_capture = True
    try:
        return Regex(text, re2.compile(text, options))
    except re2.error as error:
        raise ValueError(f"{text!r} is no RE2 expression: {_message(error)}{_hint(text)}") from error


def _has_byte_escape(text: str) -> bool:
    escaped = False
    for char in text:
        if escaped and char == "C":
            return True
        escaped = char == "\\" and not escaped
    return False


def _message(error: Exception) -> str:
    detail = error.args[0] if error.args else error
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)


def _hint(text: str) -> str:
    if "(?=" in text or "(?!" in text or "(?<" in text:
        return "; look-around does not exist in RE2, write a deny rule for what must not match"
    return "; backreferences do not exist in RE2" if any(f"\\{digit}" in text for digit in range(1, 10)) else ""
