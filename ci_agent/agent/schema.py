"""JSON Schema 2020-12 over arguments that a stranger chose: nothing is fetched, and no text keeps a pattern busy."""

import functools
import json
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import re2
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry

from ci_agent.json_types import Json, JsonObject

SCHEMAS_KEPT = 1024

MAX_STEPS = 100_000
"""Keywords held against values before a check is given up: about a second. Without it, references that multiply each
other and endless lists would keep the check busy."""


class TooManyStepsError(Exception):
    """A check that would take too long; nothing is known of the value."""


def errors_of(schema: JsonObject, value: Json) -> Iterator[ValidationError]:
    """Where a value breaks a schema. Raises TooManyStepsError, RecursionError for nesting that is too deep, and what
    `validator_for` raises."""
    validator = validator_for(schema)
    _steps.left = MAX_STEPS
    yield from validator.iter_errors(value)


def validator_for(schema: JsonObject) -> Validator:
    """The validator of a tool's schema, built once for each schema. Raises what a schema that is no schema provokes:
    jsonschema's SchemaError, or TypeError and ValueError where it is not even JSON."""
    return _build_validator(json.dumps(schema))


def check_schema(schema: JsonObject) -> None:
    """Raise jsonschema's SchemaError for what is no schema."""
    # Without the usual format checker, which would hold patterns against Python's syntax.
    Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))


@functools.lru_cache(SCHEMAS_KEPT)
def _build_validator(schema_json: str) -> Validator:
    schema = json.loads(schema_json)
    check_schema(schema)
    _forget_drafts(schema)
    validator: Validator = _BoundedValidator(schema, registry=Registry())
    return validator


def _forget_drafts(value: Json) -> None:
    """Take every `$schema` away: what it stands in would leave our keywords for those of the draft that it names."""
    if isinstance(value, dict):
        if isinstance(value.get("$schema"), str):
            del value["$schema"]
        for part in value.values():
            _forget_drafts(part)
    elif isinstance(value, list):
        for part in value:
            _forget_drafts(part)


def is_linear(pattern: str) -> bool:
    """Whether a pattern can be checked in linear time."""
    return _compile(pattern) is not None


class _Steps(threading.local):
    left = MAX_STEPS


_steps = _Steps()


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def check(validator: Any, wanted: Any, instance: Json, schema: JsonObject) -> Any:
        _steps.left -= 1
        if _steps.left < 0:
            raise TooManyStepsError(f"more than {MAX_STEPS:,} steps")
        return keyword(validator, wanted, instance, schema)

    return check


def _pattern(validator: Any, pattern: str, instance: Json, _schema: JsonObject) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and _matches(pattern, instance) is False:
        yield ValidationError("does not match")


def _properties(
    validator: Any, properties: JsonObject, instance: Json, _schema: JsonObject
) -> Iterator[ValidationError]:
    """As the standard keyword, with the error for a field that is forbidden (`"field": false`) at its place."""
    if not validator.is_type(instance, "object"):
        return
    for field, subschema in properties.items():
        if field in instance and subschema is False:
            yield ValidationError("is forbidden", path=[field], instance=instance[field])
        elif field in instance:
            yield from validator.descend(instance[field], subschema, path=field, schema_path=field)


def _pattern_properties(
    validator: Any, patterns: JsonObject, instance: Json, _schema: JsonObject
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for field, value in instance.items():
            if _matches(pattern, field):
                yield from validator.descend(value, subschema, path=field, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Json, instance: Json, schema: JsonObject
) -> Iterator[ValidationError]:
    """As the standard keyword, with one error at the place of each unknown field."""
    if not validator.is_type(instance, "object"):
        return
    patterns = schema.get("patternProperties", {})
    for field, value in instance.items():
        if field in schema.get("properties", {}) or any(_matches(pattern, field) is not False for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError("is unknown", path=[field], instance=value)
        else:
            yield from validator.descend(value, allowed, path=field)


def _required(validator: Any, names: list[str], instance: Json, _schema: JsonObject) -> Iterator[ValidationError]:
    """As the standard keyword, with the error at the place of the missing field."""
    if validator.is_type(instance, "object"):
        for name in names:
            if name not in instance:
                yield ValidationError("is missing", path=[name])


def _unique_items(validator: Any, wanted: bool, instance: Json, _schema: JsonObject) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array") and len({_identity(item) for item in instance}) < len(instance):
        yield ValidationError("has items that are equal")


def _matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None when that cannot be told in linear time.

    RE2 knows neither look-around nor back-references. Python's `re` does, but a text can be chosen that keeps it busy
    for ever, and then nothing ends the run. Such a pattern is left to the tool.
    """
    expression = _compile(pattern)
    if expression is None:
        return None
    try:
        return expression.search(text) is not None
    except UnicodeEncodeError:  # a lone surrogate, which no pattern means
        return False


@functools.lru_cache(SCHEMAS_KEPT)
def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _identity(value: Json) -> Hashable:
    """Equal for values that JSON Schema holds to be equal: 1 and 1.0 are, 1 and true are not."""
    match value:
        case dict():
            return "object", frozenset((name, _identity(item)) for name, item in value.items())
        case list():
            return "array", tuple(_identity(item) for item in value)
        case bool():
            return "boolean", value
        case _:
            return value  # type: ignore[no-any-return]  # what is left is None, a number or a string


_KEYWORDS = {
    **Draft202012Validator.VALIDATORS,
    "pattern": _pattern,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "required": _required,
    "uniqueItems": _unique_items,
}

_BoundedValidator = extend(  # type: ignore[no-untyped-call]  # its stubs leave it without types
    Draft202012Validator, {name: _counted(keyword) for name, keyword in _KEYWORDS.items()}
)
