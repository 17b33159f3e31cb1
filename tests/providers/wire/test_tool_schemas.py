"""Schemas as an API takes them: nothing that the model must know is lost on the way."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.tool_schemas import is_strict, openapi_subset, without_top_level_alternatives

MUST = "Must also satisfy this JSON Schema: "


def an_object(**properties: Json) -> JsonObject:
    return {"type": "object", "properties": properties}


def openapi_of(schema: JsonObject) -> Json:
    return openapi_subset(an_object(p=schema))["properties"]["p"]


# Without alternatives at the root


def test_a_plain_object_stays_as_it_is() -> None:
    schema = an_object(a={"anyOf": [{"type": "string"}, {"type": "null"}]}) | {"additionalProperties": False}
    assert without_top_level_alternatives(schema) == schema
    assert without_top_level_alternatives({}) == an_object()


def test_alternatives_stand_side_by_side_and_are_said_in_words() -> None:
    one, other = an_object(a={"type": "string"}) | {"required": ["a", "c"]}, an_object(b={}) | {"required": ["c"]}
    schema = an_object(c={}, d={}) | {"required": ["d"], "description": "Either.", "oneOf": [one, other]}
    assert without_top_level_alternatives(schema) == {
        "type": "object",
        "properties": {"b": {}, "a": {"type": "string"}, "c": {}, "d": {}},
        "required": ["d", "c"],
        "description": f"Either. {MUST}{json.dumps({'oneOf': [one, other]})}",
    }


def test_what_all_of_them_require_is_required() -> None:
    schema = {"allOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}}}
    assert without_top_level_alternatives(schema)["required"] == ["a", "b"]


def test_references_at_the_root_are_followed() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": an_object(a={"$ref": "#/$defs/B"}), "B": {"type": "string"}}}
    assert without_top_level_alternatives(schema) == an_object(a={"type": "string"})


# OpenAPI


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        ({"type": "string", "pattern": "^a+$", "minLength": 1}, {"type": "string", "pattern": "^a+$", "minLength": 1}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"enum": ["x", "y"]}, {"type": "string", "enum": ["x", "y"]}),
        ({"enum": [1, 2]}, {"type": "integer", "description": MUST + '{"enum": [1, 2]}'}),
        ({"const": True}, {"type": "boolean", "description": MUST + '{"const": true}'}),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": MUST + '{"format": "uri"}'}),
        (
            {"type": "number", "exclusiveMinimum": 0, "description": "Size."},
            {"type": "number", "description": f'Size. {MUST}{{"exclusiveMinimum": 0}}'},
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": "string", "description": "Any JSON value."}}),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {
                "anyOf": [{"type": "string"}, {"type": "integer"}],
                "description": "Exactly one of the alternatives may hold.",
            },
        ),
        (
            {"type": "object", "properties": {}, "additionalProperties": False, "$comment": "x"},
            {"type": "object", "properties": {}, "description": "No other properties are allowed."},
        ),
    ],
)
def test_keywords_that_openapi_lacks_are_respelt_or_said_in_words(schema: JsonObject, reduced: JsonObject) -> None:
    assert openapi_of(schema) == reduced


def test_references_are_replaced_by_what_they_mean_and_end_where_they_go_round() -> None:
    node = an_object(next={"$ref": "#/$defs/node", "description": "The rest."}, value={"$ref": "#/$defs/v~1w"})
    schema = an_object(list={"$ref": "#/$defs/node"}) | {"$defs": {"node": node, "v/w": {"type": "integer"}}}
    assert openapi_subset(schema) == an_object(
        list=an_object(next={"type": "object", "description": "The rest."}, value={"type": "integer"})
    )


@pytest.mark.parametrize(
    "reference", ["#/$defs/none", "https://schemas.example/a.json", "#anchor", "#/properties/p/x/0"]
)
def test_a_reference_into_nowhere_is_said(reference: str) -> None:
    assert openapi_of({"$ref": reference}) == {"description": f"As defined by {reference}."}


def test_references_that_multiply_each_other_are_cut() -> None:
    levels = {f"l{n}": an_object(**{f"p{i}": {"$ref": f"#/$defs/l{n + 1}"} for i in range(10)}) for n in range(10)}
    schema = {"$ref": "#/$defs/l0", "$defs": levels | {"l10": {"type": "string"}}}
    assert len(json.dumps(openapi_subset(schema))) < 500_000


def test_long_chains_of_references_and_deep_schemas_are_cut() -> None:
    chain = {f"l{n}": an_object(p={"$ref": f"#/$defs/l{n + 1}"}) for n in range(400)}
    assert "Nested too deep" in json.dumps(openapi_subset({"$ref": "#/$defs/l0", "$defs": chain}))
    deep: JsonObject = {"type": "string"}
    for _ in range(90):
        deep = {"type": "array", "items": deep}
    assert "Nested too deep" in json.dumps(openapi_subset(deep))
    assert not is_strict(deep)


# Strict


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"a": {"type": ["string", "null"], "format": "date"}},
        {"a": {"type": "array", "items": an_object() | {"required": [], "additionalProperties": False}}},
        {"a": {"anyOf": [{"type": "string", "pattern": "^a$"}, {"type": "null"}]}, "b": {"enum": ["x"]}},
        {"a": {"$ref": "#/$defs/a"}},
    ],
)
def test_schemas_inside_the_subset_are_strict(properties: JsonObject) -> None:
    assert is_strict(an_object(**properties) | {"required": list(properties), "additionalProperties": False})


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": "string", "minLength": 1},
        {"type": "string", "default": "x"},
        {"type": "string", "format": "uri"},
        {"type": "string", "format": ["date"]},
        {"type": "string", "pattern": "(?=a)"},
        {"type": "array"},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"type": "object"},
        {"type": ["object", "null"]},
        an_object(b={"type": "string"}) | {"additionalProperties": False},
        an_object(b={"type": "string"}) | {"required": ["b"]},
        {"oneOf": [{"type": "string"}]},
        {"allOf": [{"type": "string"}]},
        {"not": {"type": "string"}},
        {"$ref": "#/$defs/a", "description": "x"},
        {"$ref": "other.json"},
    ],
)
def test_schemas_outside_the_subset_are_not(part: JsonObject) -> None:
    assert not is_strict(an_object(a=part) | {"required": ["a"], "additionalProperties": False})


def test_a_root_that_is_no_closed_object_is_not_strict() -> None:
    closed = an_object(a={"type": "string"}) | {"required": ["a"], "additionalProperties": False}
    assert is_strict(closed)
    assert not is_strict({"anyOf": [closed]})
    assert not is_strict(closed | {"required": []})
    assert not is_strict(closed | {"type": ["object", "null"]})


# Whatever it is

KEYWORDS = (
    "type properties items anyOf oneOf allOf not $ref $defs enum const required additionalProperties pattern format "
    "description if prefixItems default"
)
VALUE = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["object", "array", "null", "#/$defs/a", "#", "x"])
)
SCHEMA = st.recursive(
    VALUE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS.split(), "a"]), inner, max_size=4)
        | st.fixed_dictionaries({"$defs": st.fixed_dictionaries({"a": inner})})
    ),
    max_leaves=15,
)

OPENAPI = {
    *("anyOf", "description", "enum", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum"),
    *("minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties", "required", "type"),
}


def assert_is_openapi(schema: JsonObject) -> None:
    assert set(schema) <= OPENAPI
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for part in [*parts, *([schema["items"]] if "items" in schema else [])]:
        assert_is_openapi(part)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS.split()), SCHEMA, max_size=4))
def test_any_schema_is_reduced_to_one_that_the_api_takes(schema: JsonObject) -> None:
    before = json.dumps(schema)
    assert_is_openapi(openapi_subset(schema))
    flat = without_top_level_alternatives(schema)
    assert (flat["type"], isinstance(flat["properties"], dict)) == ("object", True)
    assert not {"anyOf", "oneOf", "allOf"} & set(flat)
    assert is_strict(schema) in (True, False)
    assert json.dumps(schema) == before
