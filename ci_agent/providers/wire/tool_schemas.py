"""JSON Schemas reduced to what an API takes.

What is taken out is said in the description instead, so that the model knows it; the schema itself stays the tool's
own, and every call is checked against all of it before anything runs.
"""

import json
from collections.abc import Iterable

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.schema_references import map_subschemas, said, subschemas, without_references

_ALTERNATIVES = ("allOf", "anyOf", "oneOf")

_OPENAPI_KEYWORDS = {
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "type",
}
_JSON_TYPES: dict[type, str] = {bool: "boolean", float: "number", int: "integer", str: "string"}
_OPENAPI_FORMATS = {"date-time", "enum", "double", "float", "int32", "int64"}
_ANNOTATIONS = {"$anchor", "$comment", "$id", "$schema", "$vocabulary", "deprecated", "examples", "readOnly", "title"}
"""Keywords that say nothing about which values are valid."""

_STRICT_KEYWORDS = {
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
}
_STRICT_FORMATS = {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}
_STRICT_MAX_DEPTH = 5
_STRICT_MAX_PROPERTIES = 100


def without_top_level_alternatives(schema: JsonObject) -> JsonObject:
    """An object schema whose root has no allOf, anyOf or oneOf, nor a reference; for Anthropic and OpenAI.

    The properties of all alternatives stand side by side; required is only what is required in any case.
    """
    root = without_references(schema) if _refers(schema) else schema
    properties = root.get("properties")
    plain = {key: root[key] for key in root if key not in _ALTERNATIVES}
    plain |= {"type": "object", "properties": properties if isinstance(properties, dict) else {}}
    for keyword in _ALTERNATIVES:
        branches = root.get(keyword)
        if isinstance(branches, list):
            plain = _with_branches(plain, keyword, branches)
    return plain


def openapi_subset(schema: JsonObject) -> JsonObject:
    """The subset of OpenAPI 3.0 that Gemini's `parameters` are; any other keyword would fail the whole request."""
    return _openapi(without_references(schema))


def is_strict(schema: JsonObject) -> bool:
    """Whether OpenAI can hold a model to the schema: with a keyword outside of its subset it refuses the request."""
    if schema.get("type") != "object" or "anyOf" in schema or "$ref" in schema:
        return False
    every = list(_every(schema))
    properties = sum(len(part["properties"]) for part in every if isinstance(part.get("properties"), dict))
    deep = _object_depth(schema) > _STRICT_MAX_DEPTH
    return not deep and properties <= _STRICT_MAX_PROPERTIES and all(_is_strict_here(part) for part in every)


def _must(keywords: JsonObject) -> list[str]:
    """What the model is told in place of keywords."""
    sentences = ["No other properties are allowed."] if keywords.get("additionalProperties") is False else []
    others = {key: value for key, value in keywords.items() if key != "additionalProperties" or value is not False}
    if others:
        sentences.append(f"Must also satisfy this JSON Schema: {json.dumps(others, ensure_ascii=False)}")
    return sentences


# Without alternatives at the root


def _refers(schema: JsonObject) -> bool:
    lists = [schema[keyword] for keyword in _ALTERNATIVES if isinstance(schema.get(keyword), list)]
    return any(isinstance(part, dict) and "$ref" in part for part in [schema, *(one for some in lists for one in some)])


def _with_branches(plain: JsonObject, keyword: str, branches: list[Json]) -> JsonObject:
    objects = [branch for branch in branches if isinstance(branch, dict)]
    properties = dict(plain["properties"])
    for branch in objects:
        found = branch.get("properties")
        properties = (found if isinstance(found, dict) else {}) | properties
    required = [*_names(plain), *(name for name in _required_by(keyword, objects) if name not in _names(plain))]
    merged = plain | {"properties": properties} | ({"required": required} if required else {})
    return said(merged, *_must({keyword: branches}))


def _required_by(keyword: str, branches: list[JsonObject]) -> list[str]:
    names = [_names(branch) for branch in branches]
    if keyword == "allOf":
        return list(dict.fromkeys(name for some in names for name in some))
    return [name for name in names[0] if all(name in some for some in names)] if names else []


def _names(schema: JsonObject) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


# OpenAPI


def _openapi(schema: JsonObject) -> JsonObject:
    result: JsonObject = {}
    dropped: JsonObject = {}
    for key, value in _respelt(schema).items():
        if _fits_openapi(key, value, schema):
            result[key] = value
        elif key not in _ANNOTATIONS:
            dropped[key] = value
    reduced = map_subschemas(result, _openapi)
    if reduced.get("type") == "array":
        reduced.setdefault("items", {"type": "string", "description": "Any JSON value."})
    return said(reduced, *_must(dropped))


def _respelt(schema: JsonObject) -> JsonObject:
    """The same in keywords that OpenAPI 3.0 has, where it has them."""
    result = dict(schema)
    kinds = result.get("type")
    if isinstance(kinds, list) and kinds:
        result |= _respelt_types(result.pop("type"), taken="anyOf" in result)
    if _are_schemas(result.get("oneOf")) and "anyOf" not in result:
        alternatives = result.pop("oneOf")
        result = said(result | {"anyOf": alternatives}, "Exactly one of the alternatives may hold.")
    if isinstance(result.get("const"), str) and "enum" not in result:
        result["enum"] = [result.pop("const")]
    if "type" not in result:
        result |= _implied_type(result)
    return result


def _respelt_types(kinds: list[Json], *, taken: bool) -> JsonObject:
    others = [kind for kind in kinds if kind != "null"]
    nullable: JsonObject = {"nullable": True} if "null" in kinds else {}
    if len(others) == 1:
        return {"type": others[0]} | nullable
    return {"type": kinds} if taken else {"anyOf": [{"type": kind} for kind in others]} | nullable


def _implied_type(schema: JsonObject) -> JsonObject:
    if isinstance(schema.get("properties"), dict):
        return {"type": "object"}
    if "items" in schema:
        return {"type": "array"}
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    kinds = {_JSON_TYPES.get(type(value)) for value in values} if isinstance(values, list) else set()
    return {"type": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}


def _fits_openapi(key: str, value: Json, schema: JsonObject) -> bool:
    match key:
        case "type":
            return isinstance(value, str) and value != "null"
        case "enum":
            return _are_texts(value) and schema.get("type", "string") == "string"
        case "format":
            return isinstance(value, str) and value in _OPENAPI_FORMATS
        case "items":
            return isinstance(value, dict)
        case "properties":
            return isinstance(value, dict) and all(isinstance(part, dict) for part in value.values())
        case "anyOf":
            return _are_schemas(value)
    return key in _OPENAPI_KEYWORDS


def _are_schemas(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) for part in value)


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


# OpenAI's strict subset


def _every(schema: JsonObject) -> Iterable[JsonObject]:
    yield schema
    for part in subschemas(schema):
        yield from _every(part)


def _object_depth(schema: JsonObject) -> int:
    deepest = max((_object_depth(part) for part in subschemas(schema)), default=0)
    return deepest + (schema.get("type") == "object" or "properties" in schema)


def _is_strict_here(schema: JsonObject) -> bool:
    if "$ref" in schema:
        reference = schema["$ref"]
        return set(schema) == {"$ref"} and isinstance(reference, str) and reference.startswith("#")
    if not set(schema) <= _STRICT_KEYWORDS or str(schema.get("format", "date")) not in _STRICT_FORMATS:
        return False
    if not ({"type", "anyOf", "enum", "const"} & set(schema)) or "(?" in str(schema.get("pattern", "")):
        return False
    return _is_strict_object(schema) and _is_strict_array(schema)


def _is_strict_object(schema: JsonObject) -> bool:
    kinds = schema.get("type")
    if "properties" not in schema and "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return True
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not all(isinstance(part, dict) for part in properties.values()):
        return False
    return schema.get("additionalProperties") is False and sorted(_names(schema)) == sorted(properties)


def _is_strict_array(schema: JsonObject) -> bool:
    kinds = schema.get("type")
    is_array = "array" in (kinds if isinstance(kinds, list) else [kinds])
    return not is_array or isinstance(schema.get("items"), dict)
