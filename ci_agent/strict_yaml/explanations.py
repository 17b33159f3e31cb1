"""What is wrong with a value in a file, as a sentence that says what to write instead."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args, get_origin

from pydantic import BaseModel

from ci_agent.json_types import Json
from ci_agent.spelling import nearest
from ci_agent.strict_yaml.model_paths import annotations_at, is_model, members
from ci_agent.strict_yaml.problems import EXPECTED, Problem
from ci_agent.strict_yaml.text import either, quote

_GLUED_KEY = re.compile(r"([A-Za-z_]+):(?=\S)(.*)")

_BOUNDS: Mapping[str, str] = {
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
}


def explain_empty(model: type[BaseModel]) -> str:
    required = [field.alias or name for name, field in model.model_fields.items() if field.is_required()]
    return f"the file is empty; it needs {', '.join(map(quote, required)) or 'a mapping'}"


def explain(problem: Problem, model: type[BaseModel]) -> str:
    error = problem.error
    kind = error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(str(problem.path[-1]), _models_at(model, problem))
    if kind == "missing":
        key = str(problem.path[-1])
        return f"the key {quote(key)} is missing here{_only_value(key, _models_at(model, problem))}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return _not_among(error["input"], str(context["expected"]))
    if kind in _BOUNDS:
        return f"expected {_BOUNDS[kind].format(**context)}, got {_shown(error['input'])}"
    if kind in {"too_short", "string_too_short"}:
        return "must not be empty: write a value, or delete the key"
    if kind in {"too_long", "string_too_long"}:
        return f"is too long: at most {context['max_length']}"
    if kind == "string_pattern_mismatch":
        return f"expected text of the form {context['pattern']}, got {_shown(error['input'])}"
    expected = context["expected"] if kind == "union" else EXPECTED.get(kind)
    if expected:
        return _another_kind(str(expected), error["input"], str(problem.path[-1] if problem.path else ""))
    return error["msg"][:1].lower() + error["msg"][1:]


def _only_value(key: str, models: Sequence[type[BaseModel]]) -> str:
    """What to write for a key that may have one value alone, as the version of a format."""
    fields = [field for each in models for name, field in each.model_fields.items() if (field.alias or name) == key]
    values = {
        value for field in fields for value in get_args(field.annotation) if get_origin(field.annotation) is Literal
    }
    return f": write {key}: {values.pop()}" if len(values) == 1 else ""


def _unknown_key(key: str, models: Sequence[type[BaseModel]]) -> str:
    known = sorted({name for model in models for name in _keys(model)})
    name, colon, value = key.partition(":")
    if colon and name in known:
        meant = f"{name}: {value}".splitlines()[0]
        return f"unknown key {quote(key)}: a blank belongs after the colon: write {quote(meant)}"
    inside = next((name for model in models for name in _keys_that_hold(model, key)), None)
    if inside:
        return f"unknown key {quote(key)}: it belongs into {quote(inside)}"
    close = nearest(key, known)
    if close:
        return f"unknown key {quote(key)}: did you mean {quote(close)}?"
    return f"unknown key {quote(key)}: the keys here are {', '.join(known)}"


def _not_among(value: Json, expected: str) -> str:
    words = expected.replace(" or ", ", ").replace("'", "").split(", ")
    close = nearest(value, words) if isinstance(value, str) else None
    hint = f": did you mean {close}?" if close else ""
    return f"expected {either(words)}, got {_shown(value)}{hint}"


def _another_kind(expected: str, value: Json, key: str) -> str:
    if "text" in expected and isinstance(value, float):
        return f"expected {expected}, got a number: put it in quotes as you wrote it"  # 3.10 is 3.1 by now
    unit = " of seconds" if expected == "a number" and key.endswith("_s") else ""
    return f"expected {expected}{unit}, got {_shown(value)}" + _hint(expected, value)


def _hint(expected: str, value: Json) -> str:
    if "text" in expected and isinstance(value, bool | int):
        return f": write {quote(_shown_scalar(value))} in quotes"
    if "number" in expected and isinstance(value, str) and value.isdecimal():
        return ": write it without quotes"
    if "mapping" in expected and isinstance(value, str) and (match := _GLUED_KEY.match(value)):
        return f": a blank belongs after the colon: write {quote(f'{match[1]}: {match[2]}')}"
    if expected == "a list" and isinstance(value, dict):
        first = next(iter(value), "name")
        return f": begin each entry with a dash, as in {quote(f'- {first}: ...')}"
    return ""


def _shown(value: Json) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"the text {quote(value)}"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the number {value}" if not isinstance(value, bool) else _shown_scalar(value)


def _shown_scalar(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def _keys_that_hold(model: type[BaseModel], key: str) -> Iterator[str]:
    """The keys whose own mapping may have this one."""
    for name, field in model.model_fields.items():
        if any(is_model(member) and key in _keys(member) for member in members(field.annotation)):
            yield field.alias or name


def _models_at(model: type[BaseModel], problem: Problem) -> list[type[BaseModel]]:
    """What the mapping may be in which an unknown key stands."""
    models = [candidate for candidate in annotations_at(model, problem.path[:-1]) if is_model(candidate)]
    return [candidate for candidate in models if candidate.__name__ in problem.branch] or models
