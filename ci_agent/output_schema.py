"""The schema that a final answer must satisfy, looked through before the run: whole, finite, checked within bounds."""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from ci_agent.errors import ConfigurationError
from ci_agent.git_files import read_named_file
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.spelling import did_you_mean

MAX_OUTPUT_SCHEMA_BYTES = 128 * 1024
"""Beyond, it takes seconds to hold a schema against the schema of schemas."""

_MAX_HEIGHT = 50
"""Schemas one behind the other for the same value; the validator calls itself for each."""

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

_IN_PLACE = ("if", "then", "else", "not")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_REFERENCES = ("$ref", "$dynamicRef")

_Place: TypeAlias = tuple[Any, Any]
"""A schema, and referencing's resolver for what it refers to."""


def read_output_schema(path: str) -> JsonObject:
    """The schema in a file, checked; ConfigurationError names the file."""
    try:
        schema = parse_json(read_named_file(path, "output schema", max_bytes=MAX_OUTPUT_SCHEMA_BYTES))
    except ValueError as error:
        raise ConfigurationError(f"output schema {path!r} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigurationError(f"output schema {path!r} is not a JSON object")
    try:
        check_output_schema(schema)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return schema


def check_output_schema(schema: JsonObject) -> None:
    """Raise ConfigurationError for a schema that is wrong, that refers to what is not in it (nothing is fetched), that
    leads back to itself without an end, or that could keep the check of an answer busy."""
    try:
        _check_form(schema)
        places = list(_places(schema))
        _check_keywords([contents for contents, _ in places if isinstance(contents, dict)])
        _check_ends(places)
    except RecursionError as error:
        raise ConfigurationError("output schema is nested too deep to be checked") from error


def _check_form(schema: JsonObject) -> None:
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - 90 ms that most runs do not need

    from ci_agent.agent.schema import check_schema  # noqa: PLC0415 - loads jsonschema

    try:
        check_schema(schema)
    except SchemaError as error:
        problem = _no_type(error.instance) if error.validator == "anyOf" else error.message
        shown = problem if len(problem) <= 200 else f"{problem[:200]}..."
        raise ConfigurationError(f"output schema is wrong at {error.json_path}: {shown}") from error


def _no_type(given: Json) -> str:
    """What is wrong with a `type`, the only keyword that the schema of schemas lets have two forms."""
    names = given if isinstance(given, list) else [given]
    wrong = next((name for name in names if name not in _TYPES), None)
    if wrong is None:
        return "a type is one name, or a list of different ones"
    hint = did_you_mean(wrong, _TYPES) if isinstance(wrong, str) else ""
    return f"{json.dumps(wrong)} is no type{hint} ({', '.join(_TYPES)})"


def _places(schema: JsonObject) -> Iterator[_Place]:
    """The schema, every schema in it, and what they refer to wherever that stands; each once."""
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    root = DRAFT202012.create_resource(schema)
    waiting: list[_Place] = [(schema, Registry().resolver_with_root(root))]
    seen: set[int] = set()
    while waiting:
        contents, resolver = waiting.pop()
        if id(contents) in seen:
            continue
        seen.add(id(contents))
        yield contents, resolver
        waiting += _referred(contents, resolver)
        for part in DRAFT202012.create_resource(contents).subresources():
            waiting.append((part.contents, resolver.in_subresource(part)))


def _check_keywords(schemas: list[JsonObject]) -> None:
    from ci_agent.agent.schema import is_linear  # noqa: PLC0415 - loads jsonschema

    for schema in schemas:
        for pattern in (*filter(None, [schema.get("pattern")]), *schema.get("patternProperties", ())):
            if not is_linear(pattern):
                raise ConfigurationError(
                    f"output schema has the pattern {pattern[:100]!r}, which cannot be checked in linear time: "
                    "write it as RE2 takes it, without look-around and back-references"
                )
    # For the one, jsonschema matches the other with Python's `re`, which a text can keep busy for ever.
    if any("unevaluatedProperties" in each for each in schemas) and any(
        "patternProperties" in each for each in schemas
    ):
        raise ConfigurationError(
            "output schema uses unevaluatedProperties and patternProperties: leave one of them out"
        )


def _check_ends(places: list[_Place]) -> None:
    """Follow from each schema what the same value must satisfy, until that comes to its end."""
    heights: dict[int, int] = {}
    on_the_way: set[int] = set()

    def follow(place: _Place) -> int:
        key = id(place[0])
        if key in on_the_way:
            raise ConfigurationError("output schema leads back to itself without an end: no answer could be checked")
        if key not in heights:
            on_the_way.add(key)
            heights[key] = 1 + max(map(follow, _same_value(place)), default=0)
            on_the_way.remove(key)
        return heights[key]

    for place in places:
        if follow(place) > _MAX_HEIGHT:
            raise RecursionError


def _same_value(place: _Place) -> Iterator[_Place]:
    """The schemas that are asked about the same value as this one."""
    schema, resolver = place
    if isinstance(schema, bool):
        return
    yield from _referred(schema, resolver)
    parts = [schema[keyword] for keyword in _IN_PLACE if keyword in schema]
    parts += [part for keyword in _IN_PLACE_LISTS for part in schema.get(keyword, ())]
    parts += schema.get("dependentSchemas", {}).values()
    yield from ((part, resolver) for part in parts)


def _referred(schema: Any, resolver: Any) -> Iterator[_Place]:
    if isinstance(schema, dict):
        yield from (_resolve(resolver, schema[keyword]) for keyword in _REFERENCES if keyword in schema)


def _resolve(resolver: Any, reference: str) -> _Place:
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - comes with jsonschema

    try:
        resolved = resolver.lookup(reference)
    except (Unresolvable, ValueError) as error:
        raise ConfigurationError(
            f"output schema refers to {reference[:100]!r}, which is not in it: nothing is fetched"
        ) from error
    if not isinstance(resolved.contents, dict | bool):
        raise ConfigurationError(f"output schema refers to {reference[:100]!r}, which is no schema")
    return resolved.contents, resolved.resolver
