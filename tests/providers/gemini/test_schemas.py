"""JSON Schemas as Gemini takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.gemini.schemas import gemini_schema


def test_what_the_api_knows_stays() -> None:
    schema: JsonObject = {
        "type": "object",
        "description": "All.",
        "properties": {
            "a": {"type": ["string", "null"], "enum": ["x", "y"]},
            "b": {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1, "maxItems": 9},
            "c": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/node"}]},
        },
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    assert gemini_schema(schema) == schema


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        ({"title": "A", "type": "string", "examples": ["x"]}, {"type": "string"}),
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": 3}, {"enum": [3]}),
        (
            {"type": "boolean", "const": True},
            {"type": "boolean", "description": 'Must also satisfy this JSON Schema: {"enum": [true]}'},
        ),
        (
            {"type": "number", "exclusiveMinimum": 0, "description": "How many."},
            {
                "type": "number",
                "description": 'How many. Must also satisfy this JSON Schema: {"exclusiveMinimum": 0}',
            },
        ),
        (
            {"type": "string", "format": "date", "pattern": "^2"},
            {
                "type": "string",
                "description": 'Must also satisfy this JSON Schema: {"format": "date", "pattern": "^2"}',
            },
        ),
        ({"type": "integer", "default": 10}, {"type": "integer", "description": "Default: 10."}),
        (
            {"type": "object", "properties": {"any": True, "none": False}},
            {"type": "object", "properties": {"any": {}, "none": {"description": "Must be left out."}}},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/definitions/b"}},
                "definitions": {"b": {"type": "null"}},
            },
            {"type": "object", "properties": {"a": {"type": "null"}}},
        ),
        (
            {"type": "array", "items": {"$ref": "#/$defs/b", "description": "One."}, "$defs": {"b": {"type": "null"}}},
            {"type": "array", "items": {"type": "null", "description": "One."}},
        ),
    ],
)
def test_what_it_does_not_know_is_said_instead(schema: JsonObject, reduced: JsonObject) -> None:
    assert gemini_schema(schema) == reduced


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "enum", "const", "$ref", "anyOf", "allOf", "title", "$defs"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "items", "$ref", "anyOf", "definitions"]), JSON))
def test_any_object_is_reduced_and_no_original_is_changed(schema: dict[str, Json]) -> None:
    before = repr(schema)
    gemini_schema(schema)
    assert repr(schema) == before
