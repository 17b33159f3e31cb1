"""References inside a JSON Schema replaced by what they refer to, for APIs that follow none."""

from collections.abc import Callable
from urllib.parse import unquote

from ci_agent.json_types import Json, JsonObject

_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MAX_REFERENCES = 500
"""Followed in one schema; references that multiply each other are cut here."""
_MAX_DEPTH = 50
"""Of schemas in schemas, those behind references included."""


def map_subschemas(schema: JsonObject, change: Callable[[JsonObject], Json]) -> JsonObject:
    """The schema with its direct subschemas changed; `true` and `false`, and whatever is no schema, stay."""
    return {key: _map_value(key, value, change) for key, value in schema.items()}


def subschemas(schema: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = []

    def note(subschema: JsonObject) -> JsonObject:
        found.append(subschema)
        return subschema

    map_subschemas(schema, note)
    return found


def without_references(schema: JsonObject) -> JsonObject:
    """The schema with local references replaced and definitions left out.

    Where a reference leads into itself, to another document or nowhere, its place is taken by a schema that allows
    more, with a description that says what it was.
    """
    return _Inlining(schema).inline(schema, (), 0)


def said(schema: JsonObject, *sentences: str) -> JsonObject:
    """The schema with sentences added to its description, where the model reads them."""
    description = schema.get("description")
    first = [description] if isinstance(description, str) and description else []
    return {**schema, "description": " ".join([*first, *sentences])} if sentences else schema


def _map_value(key: str, value: Json, change: Callable[[JsonObject], Json]) -> Json:
    if key in _MAPS and isinstance(value, dict):
        return {name: change(part) if isinstance(part, dict) else part for name, part in value.items()}
    if (key in _LISTS or key == "items") and isinstance(value, list):
        return [change(part) if isinstance(part, dict) else part for part in value]
    return change(value) if key in _SINGLE and isinstance(value, dict) else value


class _Inlining:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MAX_REFERENCES

    def inline(self, schema: JsonObject, inside: tuple[str, ...], depth: int) -> JsonObject:
        """`inside`: the references that led here."""
        if depth > _MAX_DEPTH:
            return {"description": "Nested too deep to be shown here."}
        own = {key: value for key, value in schema.items() if key not in ("$defs", "definitions", "$ref")}
        own = map_subschemas(own, lambda part: self.inline(part, inside, depth + 1))
        reference = schema.get("$ref")
        return own if not isinstance(reference, str) else _joined(self._resolve(reference, inside, depth), own)

    def _resolve(self, reference: str, inside: tuple[str, ...], depth: int) -> JsonObject:
        target = _at(self._root, reference)
        if not isinstance(target, dict):
            return {} if target is True else {"description": f"As defined by {reference}."}
        self._left -= 1
        if reference in inside or self._left < 0:
            kind = target.get("type")
            return {"type": kind if isinstance(kind, str) else "object", "description": f"Nested: as {reference}."}
        return self.inline(target, (*inside, reference), depth + 1)


def _joined(target: JsonObject, own: JsonObject) -> JsonObject:
    """Both hold; what stands beside a reference describes the place where it is used."""
    if set(target) & set(own) - {"description", "title", "default", "examples"}:
        return {"allOf": [target, own]}
    return target | own


def _at(root: JsonObject, reference: str) -> Json:
    if reference != "#" and not reference.startswith("#/"):
        return None
    place: Json = root
    for step in unquote(reference[1:]).split("/")[1:]:
        if not isinstance(place, dict):
            return None
        place = place.get(step.replace("~1", "/").replace("~0", "~"))
    return place
