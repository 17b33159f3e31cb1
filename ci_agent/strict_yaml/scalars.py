"""Plain (unquoted) scalars: YAML 1.2 core types, and what other readers of YAML would take them for."""

import re
from collections.abc import Collection, Mapping
from functools import reduce

from ci_agent.json_types import MAX_INTEGER_DIGITS, Json
from ci_agent.strict_yaml.text import either, quote

_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}

_MEANT: Mapping[str, str] = {
    **{word: word for word in ("true", "false", "null")},
    **dict.fromkeys(("y", "yes", "on"), "true"),
    **dict.fromkeys(("n", "no", "off"), "false"),
}
"""Words that some readers of YAML take for a boolean or null, in several capitalisations, and the one for it here."""

_LONGEST_WORD = max(map(len, _MEANT))

_NUMBER = re.compile(r"[-+]?(?:(0|[1-9][0-9]*)|(?:0|[1-9][0-9]*)?\.[0-9]+|(?:0|[1-9][0-9]*)\.)(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")

_LOOKALIKES = (
    (re.compile(r"[-+]?0[0-9]+"), "a number with a leading zero is octal to some readers"),
    (re.compile(r"[-+]?0[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?"), "a number does not begin with a zero"),
    (re.compile(r"[-+]?0[oO][0-7]+"), "octal numbers are not supported"),
    (re.compile(r"[-+]?0[xX][0-9a-fA-F_]+"), "hexadecimal numbers are not supported"),
    (re.compile(r"[-+]?0[bB][01_]+"), "binary numbers are not supported"),
    (re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"), "numbers are written without underscores"),
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"), "some readers take this for base 60"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?"), "some readers take this for a date"),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), "infinity and not-a-number are not supported"),
    (re.compile(r"<<"), "merge keys are not supported"),
    (re.compile(r"="), "some readers give a single = a meaning of its own"),
)


class AmbiguousScalarError(ValueError):
    """Two readers could disagree on the value; says so, and what to write instead."""

    def __init__(self, problem: str, text: str, value: str | None = None) -> None:
        self.as_text = f"{problem}: write {quote(text)} in quotes"
        """The message where only text can be meant, as by a key."""
        super().__init__(f"{self.as_text} if text is meant, else {value}" if value else self.as_text)
        self._problem = problem
        self._text = text
        self._value = value

    def where(self, wanted: Collection[str | type]) -> str:
        """The message for a place that takes these words, or values of these types; none of them: nobody knows."""
        words = [each for each in wanted if isinstance(each, str)]
        kinds = {each for each in wanted if not isinstance(each, str)}
        if words and not kinds and self._text not in words:
            return f"{self._problem}: write {either([_spelled(word) for word in words])}"
        if (words and not kinds) or kinds == {str}:
            return self.as_text
        if kinds == {bool}:
            return f"{self._problem}: write {self._value if self._value in {'true', 'false'} else 'true or false'}"
        if kinds and kinds <= {int, float}:
            is_number = self._value is not None and _NUMBER.fullmatch(self._value)
            return f"{self._problem}: write {self._value if is_number else 'a number'}"
        return str(self)


def _spelled(word: str) -> str:
    return quote(word) if word.lower() in _MEANT else word


def parse_plain(text: str) -> Json:
    """The value of a plain scalar; AmbiguousScalarError, or ValueError for a number beyond all bounds."""
    if text[:1].isalpha() and len(text) > _LONGEST_WORD:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _MEANT:
        raise _refused_word(text)
    if text[0].isalpha():
        return text
    if _NUMBER.fullmatch(text):
        return _number(text)
    for pattern, problem in _LOOKALIKES:
        if pattern.fullmatch(text):
            raise AmbiguousScalarError(problem, text, _number_meant(text))
    return text


def _refused_word(text: str) -> AmbiguousScalarError:
    meant = _MEANT[text.lower()]
    kind = "null" if meant == "null" else "a boolean"
    return AmbiguousScalarError(f"{text} is {kind} to some readers and text to others", text, meant)


def _number(text: str) -> int | float:
    if len(text) > MAX_INTEGER_DIGITS:
        raise ValueError(f"a number of {len(text)} characters is too long")
    if _INTEGER.fullmatch(text):
        return int(text)
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return value


def _number_meant(text: str) -> str | None:
    """The decimal spelling of what looks like a number; None when it is none."""
    number = text.replace("_", "")
    if re.fullmatch(r"[-+]?0[oOxXbB][0-9a-fA-F]+", number):
        return str(int(number, 0))
    if re.fullmatch(r"[0-9]+(?::[0-5]?[0-9])+", number):
        return str(reduce(lambda total, digits: 60 * total + int(digits), number.split(":"), 0))
    number = re.sub(r"^([-+]?)0+(?=[0-9])", r"\1", number)
    return number if _NUMBER.fullmatch(number) else None
