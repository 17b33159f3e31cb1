"""Schemas that would fetch, loop, or stall the check of an answer are refused before the run."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from ci_agent.agent.arguments import find_problems
from ci_agent.errors import ConfigurationError
from ci_agent.output_schema import check_output_schema

NOT_IN_IT = r"which is not in it: nothing is fetched"


@pytest.fixture
def requests() -> Iterator[list[str]]:
    """The paths that a real server was asked for; the first item is its address."""
    seen: list[str] = []

    class Canary(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Canary) as server:
        seen.append(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield seen
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("where", [lambda ref: ref, lambda ref: {"properties": {"a": {"items": ref}}}])
def test_a_schema_that_refers_to_a_server_is_refused_and_nothing_is_fetched(
    requests: list[str], keyword: str, where: Any
) -> None:
    with pytest.raises(ConfigurationError, match=NOT_IN_IT):
        check_output_schema(where({keyword: f"{requests[0]}/canary.json"}))
    assert requests[1:] == []


def test_a_server_that_is_named_as_the_schemas_own_address_is_not_asked(requests: list[str]) -> None:
    check_output_schema(
        {"$id": f"{requests[0]}/s", "$schema": f"{requests[0]}/draft", "$ref": "#/$defs/a", "$defs": {"a": {}}}
    )
    with pytest.raises(ConfigurationError, match=NOT_IN_IT):
        check_output_schema({"$id": f"{requests[0]}/s", "$ref": "canary"})
    assert requests[1:] == []


@pytest.mark.parametrize(
    "ref", ["file:///etc/hostname", "../x.json", "#/$defs/gone", "#gone", "#/properties/%zz", "http://["]
)
def test_a_reference_into_nowhere_is_refused(ref: str) -> None:
    with pytest.raises(ConfigurationError, match=NOT_IN_IT):
        check_output_schema({"properties": {"a": {"$ref": ref}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        {"$anchor": "x", "if": {"anyOf": [{}, {"$ref": "#x"}]}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$dynamicAnchor": "x", "then": {"$dynamicRef": "#x"}},
    ],
    ids=str,
)
def test_a_schema_that_leads_back_to_itself_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="leads back to itself"):
        check_output_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$ref": "#"}},
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
        {"$defs": {"tree": {"prefixItems": [True, {"$ref": "#/$defs/tree"}]}}, "$ref": "#/$defs/tree"},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object"}}},
        {"definitions": {"old": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/old"}}},
        {"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]},
    ],
    ids=str,
)
def test_a_schema_of_trees_and_shared_parts_is_fine(schema: dict[str, Any]) -> None:
    check_output_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": r"(a)\1"},
        {"items": {"patternProperties": {"^(?!x)": {}}}},
        {"definitions": {"a": {"pattern": "(?=a)"}}, "$ref": "#/definitions/a"},
        {"unevaluatedProperties": False, "patternProperties": {"^(a+)+$": {}}},
    ],
    ids=str,
)
def test_a_pattern_that_could_stall_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"linear time|unevaluatedProperties"):
        check_output_schema(schema)


def test_a_hostile_text_costs_a_pattern_linear_time() -> None:
    schema = {"pattern": "^(a+)+$", "$schema": "http://json-schema.org/draft-07/schema#"}
    for form in (schema, {"allOf": [schema]}, {"additionalProperties": schema}):
        check_output_schema(form)
        text = "a" * 50_000 + "!"
        assert find_problems({"items": form}, [text, {"x": text}])


@pytest.mark.parametrize("depth", [95, 2_000])
def test_a_schema_that_is_nested_too_deep_is_refused(depth: int) -> None:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"allOf": [schema]}
    with pytest.raises(ConfigurationError, match="nested too deep"):
        check_output_schema(schema)


def test_a_long_chain_of_references_is_refused() -> None:
    links = {f"a{number}": {"$ref": f"#/$defs/a{number + 1}"} for number in range(2_000)}
    with pytest.raises(ConfigurationError, match="nested too deep"):
        check_output_schema({"$defs": {**links, "a2000": {}}})


def test_references_that_multiply_each_other_are_given_up() -> None:
    twice = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(20)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**twice, "a20": {"type": "string"}}}
    check_output_schema(schema)
    with pytest.raises(Exception, match=r"more than 100,000 steps"):
        find_problems(schema, "x")


def test_the_message_about_a_wrong_schema_is_short() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_output_schema({"type": "x" * 100_000})
    assert len(str(caught.value)) < 400
