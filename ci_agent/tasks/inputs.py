"""The inputs of a task: what may be given, and what was given made into values."""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import TypeAlias, assert_never

import re2

from ci_agent.errors import ConfigurationError
from ci_agent.spelling import did_you_mean
from ci_agent.tasks.document import InputModel
from ci_agent.terminal import one_line

Value: TypeAlias = str | int | float | bool

MAX_STRING_CHARS = 1_000
"""Of a string without a `max` of its own: it becomes a part of the prompt."""

_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@^~{}+-]{0,299}")
"""Never an option, and one word of a command line."""

_MAX_SHOWN_CHARS = 60
_WORDS = {"true": True, "false": False}


def read_inputs(inputs: Mapping[str, InputModel], given: Mapping[str, str], file: str) -> dict[str, Value]:
    """A value for each input, in the order of the file; ConfigurationError for what is unknown, missing or wrong."""
    for name in given:
        if name not in inputs:
            hint = did_you_mean(name, inputs) or f" (inputs: {', '.join(inputs) or 'none'})"
            raise ConfigurationError(f"{file} has no input {name!r}{hint}")
    missing = [name for name, spec in inputs.items() if spec.default is None and name not in given]
    if missing:
        raise ConfigurationError(f"{file} needs {_flags(missing)}")
    return {name: _value(name, spec, given, file) for name, spec in inputs.items()}


def _flags(names: list[str]) -> str:
    return " and ".join(f"--input {name}=..." for name in names)


def _value(name: str, spec: InputModel, given: Mapping[str, str], file: str) -> Value:
    if name not in given:
        default: Value = spec.default  # checked when the task was loaded
        return default
    try:
        value = parse_value(spec, given[name])
    except ValueError as error:
        raise ConfigurationError(f"--input {name}: {error}") from error
    problem = value_problem(spec, value)
    if problem:
        shown = one_line(given[name][: 4 * _MAX_SHOWN_CHARS], _MAX_SHOWN_CHARS)
        raise ConfigurationError(f"--input {name}: {shown!r} {problem} (see {file})")
    return value


def parse_value(spec: InputModel, text: str) -> Value:
    """The value that a text spells; ValueError when it spells none of the type."""
    match spec.type:
        case "string" | "choice" | "text" | "revision":
            return text
        case "boolean":
            if text not in _WORDS:
                raise ValueError("true or false is wanted")
            return _WORDS[text]
        case "integer":
            return _number(int, text, "a whole number is wanted")
        case "number":
            return _number(float, text, "a number is wanted")
    assert_never(spec.type)


def _number(convert: type[int] | type[float], text: str, problem: str) -> int | float:
    try:
        value = convert(text) if text.isascii() and "_" not in text and len(text) <= MAX_STRING_CHARS else None
    except ValueError:
        value = None
    if value is None or not math.isfinite(value):
        raise ValueError(problem)
    return value


def value_problem(spec: InputModel, value: object) -> str | None:
    """Why the input cannot have this value, as the end of a sentence; None: it can."""
    match spec.type:
        case "boolean":
            return None if isinstance(value, bool) else "is not true or false"
        case "integer" | "number":
            return _number_problem(spec, value)
        case "choice":
            return None if value in (spec.of or []) else f"is none of {', '.join(spec.of or [])}"
        case "text":
            return None if isinstance(value, str) else "is no text"
        case "string":
            return _string_problem(spec, value) if isinstance(value, str) else "is no text"
        case "revision":
            return None if isinstance(value, str) and _REVISION.fullmatch(value) else "is no name of a revision"
    assert_never(spec.type)


def _number_problem(spec: InputModel, value: object) -> str | None:
    wanted = int if spec.type == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        return "is not a whole number" if spec.type == "integer" else "is not a number"
    if spec.min is not None and value < spec.min:
        return f"is less than {spec.min:g}"
    if spec.max is not None and value > spec.max:
        return f"is more than {spec.max:g}"
    return None


def _string_problem(spec: InputModel, value: str) -> str | None:
    longest = MAX_STRING_CHARS if spec.max is None else int(spec.max)
    if len(value) > longest:
        return f"has more than {longest} characters"
    if any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for char in value):
        return "has more than one line, or invisible characters"
    if spec.pattern is not None and re2.fullmatch(spec.pattern, value) is None:
        return f"does not match {spec.pattern}"
    return None
