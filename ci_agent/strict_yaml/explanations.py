"""What is wrong with a value in a file, as a sentence that says what to write instead."""

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ci_agent.json_types import Json
from ci_agent.spelling import nearest
from ci_agent.strict_yaml.problems import EXPECTED, Problem
from ci_agent.strict_yaml.text import quote

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
        unit = " of seconds" if expected == "a number" and str(problem.path[-1]).endswith("_s") else ""
        return f"expected {expected}{unit}, got {_shown(error['input'])}" + _hint(str(expected), error["input"])
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
    return f"expected {_either(words)}, got {_shown(value)}{hint}"


def _hint(expected: str, value: Json) -> str:
    if "text" in expected and isinstance(value, bool | int | float):
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


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def _keys_that_hold(model: type[BaseModel], key: str) -> Iterator[str]:
    """The keys whose own mapping may have this one."""
    for name, field in model.model_fields.items():
        if any(_is_model(member) and key in _keys(member) for member in _members(field.annotation)):
            yield field.alias or name


def _models_at(model: type[BaseModel], problem: Problem) -> list[type[BaseModel]]:
    """What the mapping may be in which an unknown key stands."""
    candidates: list[Any] = [model]
    for step in problem.path[:-1]:
        candidates = [inner for candidate in candidates for inner in _step_into(candidate, step)]
    models = [candidate for candidate in candidates if _is_model(candidate)]
    return [candidate for candidate in models if candidate.__name__ in problem.branch] or models


def _step_into(candidate: Any, step: str | int) -> Iterator[Any]:
    if _is_model(candidate):
        for name, field in candidate.model_fields.items():
            if step in (name, field.alias):
                yield from _members(field.annotation)
    else:
        for argument in get_args(candidate)[-1:]:
            yield from _members(argument)


def _members(annotation: Any) -> Iterator[Any]:
    """The members of a union, through annotations and type aliases."""
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)
