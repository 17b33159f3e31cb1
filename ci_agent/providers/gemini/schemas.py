"""JSON Schemas as Gemini takes them in `parametersJsonSchema` and `responseJsonSchema`.

A keyword that it does not know fails the whole request with some models and is ignored by others, so what is taken out
is said in the description. Every value is checked against all of the schema when it comes.
"""

import json

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.schema_references import map_subschemas, said, subschemas, without_references

_KEYWORDS = {
    "$anchor",
    "$defs",
    "$id",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "required",
    "type",
}
"""From the API's reference, less `title` and `format`, which some models refuse."""
_ANNOTATIONS = {"$comment", "$schema", "$vocabulary", "default", "deprecated", "examples", "readOnly", "title"}
"""Keywords that say nothing about which values are valid."""


def gemini_schema(schema: JsonObject) -> JsonObject:
    return _reduced(schema if _refers_plainly(schema) else without_references(schema))


def _reduced(schema: JsonObject) -> JsonObject:
    respelt = _respelt(schema)
    kept = {key: value for key, value in respelt.items() if _is_taken(key, value)}
    dropped = {key: value for key, value in respelt.items() if key not in kept and key not in _ANNOTATIONS}
    reduced = map_subschemas(kept, _reduced)
    if "default" in respelt:
        reduced = said(reduced, f"Default: {json.dumps(respelt['default'], ensure_ascii=False)}.")
    if dropped:
        reduced = said(reduced, f"Must also satisfy this JSON Schema: {json.dumps(dropped, ensure_ascii=False)}")
    return reduced


def _is_taken(key: str, value: Json) -> bool:
    if key == "enum":
        values = value if isinstance(value, list) else [None]
        return all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in values)
    return key in _KEYWORDS


def _respelt(schema: JsonObject) -> JsonObject:
    result = dict(schema)
    if "const" in result and "enum" not in result:
        result["enum"] = [result.pop("const")]
    if isinstance(result.get("properties"), dict):
        result["properties"] = {name: _as_object(part) for name, part in result["properties"].items()}
    return result


def _as_object(schema: Json) -> Json:
    """`true` allows anything, `false` nothing."""
    if isinstance(schema, bool):
        return {} if schema else {"description": "Must be left out."}
    return schema


def _refers_plainly(schema: JsonObject) -> bool:
    """Whether all references are of the kind that the API follows: into `$defs`, and alone in their place."""
    if "definitions" in schema:
        return False
    reference = schema.get("$ref")
    if reference is not None and not (str(reference).startswith("#/$defs/") and set(schema) == {"$ref"}):
        return False
    return all(_refers_plainly(part) for part in subschemas(schema))
