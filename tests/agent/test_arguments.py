import re
import subprocess
import sys
import time
from typing import Any

import pytest

from ci_agent.agent.arguments import InvalidArgumentsError, find_problems, read_arguments
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import Json, JsonObject
from ci_agent.tool import OnUpdate, Tool, ToolResult

EDIT: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "edits": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                "required": ["old", "new"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}

ANYTHING: JsonObject = {"type": "object"}


def never_runs(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
    pytest.fail("the tool ran")


def edit(parameters: JsonObject = EDIT, **fields: Any) -> Tool:
    return Tool("edit", "", parameters, never_runs, **fields)


def refusal(raw: str, tool: Tool) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        read_arguments(tool, raw)
    return str(caught.value)


def problems_of(field_schema: Json, value: Json) -> list[str]:
    return find_problems({"properties": {"x": field_schema}}, {"x": value})


# Parsing


@pytest.mark.parametrize("raw", ["", " ", "\n\t ", "{}", " {} "])
def test_blank_text_is_an_empty_object(raw: str) -> None:
    assert read_arguments(edit(ANYTHING), raw) == {}


@pytest.mark.parametrize("raw", ["null", "[]", '"{}"', "1", "true", '[{"path": "x"}]'])
def test_anything_but_an_object_is_refused_and_shown(raw: str) -> None:
    assert refusal(raw, edit(ANYTHING)) == (
        f"The arguments of edit must be one JSON object; {raw} came instead. Nothing was executed."
    )


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ('{"path": "a.txt", "cont', "Unterminated string starting at: line 1 column 19 (char 18)"),
        ('{"path": "a.txt"', "Expecting ',' delimiter: line 1 column 17 (char 16)"),
        ("{'path': 'a.txt'}", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('{"a": 1} {"b": 2}', "Extra data: line 1 column 10 (char 9)"),
        ('{"a": 1, "a": 2}', 'the key "a" appears twice in one object'),
        ('{"x": {"a\\n": 1, "a\\n": 2}}', 'the key "a\\n" appears twice in one object'),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": ' + "9" * 10_000 + "}", "an integer of 10000 digits is too long"),
        ("[" * 100_000, "nested more than 100 levels deep"),
        ('{"a":' * 100_000, "nested more than 100 levels deep"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_not_strict_json_is_refused_with_the_place_and_never_completed(raw: str, problem: str) -> None:
    assert refusal(raw, edit(ANYTHING)) == (
        f"The arguments of edit are not valid JSON: {problem}. "
        "Nothing was executed. Send the call again with one complete JSON object."
    )


def test_a_huge_duplicate_key_does_not_make_a_huge_message() -> None:
    key = "k" * 1_000_000
    assert len(refusal(f'{{"{key}": 1, "{key}": 2}}', edit(ANYTHING))) < 500


def test_lone_surrogates_are_taken_as_they_are() -> None:
    assert read_arguments(edit(ANYTHING), r'{"path": "\ud800"}') == {"path": "\ud800"}


# Validation


def test_valid_arguments_come_out_as_they_went_in() -> None:
    raw = '{"path": "a.txt", "edits": [{"old": "x", "new": ""}]}'
    assert read_arguments(edit(), raw) == {"path": "a.txt", "edits": [{"old": "x", "new": ""}]}


def test_every_offending_field_is_named_with_what_was_expected_and_what_came() -> None:
    assert refusal('{"pth": "a.txt", "edits": [{"old": 5, "olds": "x"}]}', edit()) == (
        "The arguments of edit do not satisfy its schema. Nothing was executed.\n"
        "- edits[0].old: expected string, got 5\n"
        "- edits[0].new: missing, and required\n"
        "- edits[0].olds: unknown field; did you mean old?\n"
        "- path: missing, and required\n"
        "- pth: unknown field; did you mean path?\n"
        "Correct these fields and send the call again."
    )


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "string"}, 5, "expected string, got 5"),
        ({"type": "string"}, None, "expected string, got null"),
        ({"type": "integer"}, "5", 'expected integer, got "5"'),
        ({"type": "integer"}, True, "expected integer, got true"),
        ({"type": "integer"}, 1.5, "expected integer, got 1.5"),
        ({"type": "boolean"}, 0, "expected boolean, got 0"),
        ({"type": ["integer", "null"]}, "x", 'expected integer or null, got "x"'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", 'expected integer or null, got "x"'),
        ({"oneOf": [{"const": 1}, {"enum": [2, 3]}]}, 4, "expected 1 or one of 2, 3, got 4"),
        (
            {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
            4,
            "expected exactly one of the allowed forms to fit, got 4",
        ),
        (
            {"anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "string"}}}]},
            {"b": 1},
            "fits none of the allowed forms (a: missing, and required; or b: expected string, got 1)",
        ),
        ({"enum": ["a", "b"]}, "c", 'expected one of "a", "b", got "c"'),
        ({"const": {"a": 1}}, 1, 'expected {"a": 1}, got 1'),
        ({"minimum": 1}, 0, "expected at least 1, got 0"),
        ({"maximum": 1}, 2, "expected at most 1, got 2"),
        ({"exclusiveMinimum": 0}, 0, "expected more than 0, got 0"),
        ({"exclusiveMaximum": 9}, 9, "expected less than 9, got 9"),
        ({"multipleOf": 5}, 7, "expected a multiple of 5, got 7"),
        ({"minLength": 1}, "", 'expected a length of at least 1, got ""'),
        ({"maxLength": 1}, "ab", 'expected a length of at most 1, got "ab"'),
        ({"minItems": 1}, [], "expected a length of at least 1, got []"),
        ({"maxItems": 1}, [1, 2], "expected a length of at most 1, got [1, 2]"),
        ({"minProperties": 1}, {}, "expected at least 1 fields, got {}"),
        ({"maxProperties": 0}, {"a": 1}, 'expected at most 0 fields, got {"a": 1}'),
        ({"pattern": "^a+$"}, "b", 'expected text that matches "^a+$", got "b"'),
        ({"uniqueItems": True}, [1, 1.0], "expected items that all differ, got [1, 1.0]"),
        ({"not": {"type": "string"}}, "x", 'expected not {"type": "string"}, got "x"'),
        (False, 1, "must not be given"),
        ({"type": "string"}, ["x" * 500], f'expected string, got ["{"x" * 78}...'),
        ({"type": "integer"}, "a\x1b\u202e\ud800é", r'expected integer, got "a\u001b\u202e\ud800é"'),
    ],
)
def test_what_was_expected_and_what_came(schema: Json, value: Json, problem: str) -> None:
    assert problems_of(schema, value) == [f"x: {problem}"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.0),
        ({"type": "number"}, 1),
        ({"uniqueItems": True}, [1, True, "1", None, [1], [True], {"a": 1}, {"a": True}]),
        ({"uniqueItems": False}, [1, 1]),
        ({"pattern": "b"}, "abc"),
        ({"pattern": "^a"}, 5),
        ({"pattern": r"^\p{L}+\/$"}, "é/"),
        ({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}, {"x-a": "b"}),
        ({"additionalProperties": {"type": "integer"}}, {"a": 1}),
        ({"format": "email"}, "nobody"),
        (True, object),
    ],
)
def test_what_json_schema_allows_is_allowed(schema: Json, value: Json) -> None:
    assert problems_of(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "arguments", "problems"),
    [
        ({"additionalProperties": False}, {"a": 1}, ["a: unknown field; there are none here"]),
        (
            {"properties": {"path": {}, "limit": {}}, "additionalProperties": False},
            {"zzz": 1},
            ["zzz: unknown field; known are limit, path"],
        ),
        (
            {"properties": {"path": {}}, "additionalProperties": False},
            {"PATH": 1, "p\n": 2},
            ["PATH: unknown field; did you mean path?", r"p\n: unknown field; known are path"],
        ),
        (
            {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
            {"x-a": 1, "y": 1},
            ["x-a: expected string, got 1", "y: unknown field; there are none here"],
        ),
        ({"additionalProperties": {"type": "integer"}}, {"a": "b"}, ['a: expected integer, got "b"']),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, None),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, None),
        ({"unevaluatedProperties": False}, {"a": 1}, None),
        (False, {}, ["the arguments: expected nothing, got {}"]),
    ],
)
def test_fields_that_are_unknown_or_missing(
    schema: JsonObject, arguments: JsonObject, problems: list[str] | None
) -> None:
    found = find_problems(schema, arguments)
    assert (found == problems) if problems is not None else (len(found) == 1 and found[0].startswith("the arguments: "))


def test_the_list_of_problems_is_bounded_and_says_that_there_are_more() -> None:
    found = find_problems({"additionalProperties": False}, {f"f{number}": 1 for number in range(11)})
    assert found == [*(f"f{number}: unknown field; there are none here" for number in range(10)), "and more"]
    found = find_problems({"additionalProperties": False}, {f"f{number}": 1 for number in range(10)})
    assert len(found) == 10
    assert "and more" not in found


def test_references_inside_a_schema_are_followed_also_to_its_root() -> None:
    tree = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"name": {"$ref": "#/$defs/name"}, "children": {"items": {"$ref": "#"}}},
        "$defs": {"name": {"type": "string"}},
        "additionalProperties": False,
    }
    found = find_problems(tree, {"name": "a", "children": [{"name": 1, "nme": "b"}]})
    assert found == ["children[0].name: expected string, got 1", "children[0].nme: unknown field; did you mean name?"]


# Schemas that are no schemas


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"type": "text"},
        {"properties": []},
        {"$ref": "#"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://schemas.invalid/remote.json"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"path": {"$ref": "remote.json"}}},
        {"enum": {1, 2}},
        {"const": float("nan"), "type": object()},
        None,
        [],
        "object",
    ],
    ids=lambda schema: re.sub(" at 0x[0-9a-f]+", "", str(schema)),
)
def test_a_schema_that_cannot_be_used_is_a_message_and_no_crash(schema: Any) -> None:
    message = refusal('{"path": "x"}', edit(schema))
    assert message.startswith("The arguments of edit could not be checked against its schema (")
    assert message.endswith("). Nothing was executed. Do without this tool.")
    assert "\n" not in message


def test_a_schema_that_changes_is_not_checked_from_memory() -> None:
    schema: JsonObject = {"properties": {}}
    assert find_problems(schema, {"a": 1}) == []
    schema["additionalProperties"] = False
    assert find_problems(schema, {"a": 1}) == ["a: unknown field; there are none here"]


def test_a_number_that_cannot_be_checked_is_a_message_and_no_crash() -> None:
    schema = {"properties": {"x": {"multipleOf": 0.1}}}
    assert "could not be checked" in refusal('{"x": 1' + "0" * 400 + "}", edit(schema))


# Texts that were chosen to keep a check busy


@pytest.mark.parametrize(
    ("field_schema", "value"),
    [
        ({"pattern": r"^(\w+\s?)*$"}, "a" * 50_000 + "!"),
        ({"pattern": "(a*)*b"}, "a" * 50_000),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 50_000 + "!": 1}),
        ({"uniqueItems": True, "items": {"type": "string"}}, [item for n in range(50_000) for item in (n, str(n))]),
        ({"uniqueItems": True, "maxItems": 9}, [{"n": n} for n in range(50_000)]),
        ({"additionalProperties": False}, {f"f{number}": 1 for number in range(50_000)}),
        ({"properties": {"path": {}}, "additionalProperties": False}, {"path" * 50_000: 1}),
    ],
    ids=["words", "stars", "names", "mixed items", "objects", "many unknown", "long unknown"],
)
def test_no_arguments_keep_the_loop_busy(field_schema: JsonObject, value: Json) -> None:
    started = time.process_time()
    assert problems_of(field_schema, value) != []
    assert time.process_time() - started < 30  # what is not linear takes hours


def test_an_endless_list_that_satisfies_the_schema_is_given_up() -> None:
    item = {"type": "object", "properties": {"old": {"type": "string"}}, "additionalProperties": False}
    items = ",".join(['{"old": ""}'] * 200_000)
    message = refusal('{"x": [' + items + "]}", edit({"properties": {"x": {"type": "array", "items": item}}}))
    assert "could not be checked against its schema (" in message
    assert "TooManyStepsError: more than 100,000 steps" in message


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]
)
def test_no_draft_that_a_part_of_a_schema_names_brings_slow_patterns_back(draft: str) -> None:
    part = {"$schema": draft, "pattern": "^(a+)+$"}
    assert problems_of({"allOf": [part]}, "a" * 50_000 + "!") != []


@pytest.mark.parametrize("pattern", ["^(?!-)", r"(a)\1", "(?<=a)b"])
def test_a_pattern_that_cannot_be_checked_in_linear_time_is_left_to_the_tool(
    pattern: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert problems_of({"pattern": pattern}, "-") == []
    nested = {"patternProperties": {pattern: {"type": "string"}}, "additionalProperties": False}
    assert problems_of(nested, {"-": 1}) == []
    assert capfd.readouterr() == ("", "")


def test_a_lone_surrogate_matches_no_pattern() -> None:
    assert problems_of({"pattern": "."}, "\ud800") == [r'x: expected text that matches ".", got "\ud800"']


# Repair


def test_a_repair_comes_before_the_check_for_an_object_and_before_the_schema() -> None:
    repaired = {"path": "a.txt", "edits": [{"old": "x", "new": "y"}]}
    tool = edit(prepare_arguments=lambda sent: repaired if sent == "a.txt" else sent)
    assert read_arguments(tool, '"a.txt"') == repaired
    assert "must be one JSON object; 5 came instead" in refusal("5", tool)
    assert "path: missing" in refusal("{}", tool)


def test_a_repair_is_not_asked_about_text_that_is_no_json() -> None:
    assert "not valid JSON" in refusal('{"path": "a', edit(prepare_arguments=lambda _sent: pytest.fail("asked")))


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (ToolError("give `old` and `new`"), "give `old` and `new`"),
        (KeyError("old"), "KeyError: 'old'"),
        ({"path": {1, 2}}, "TypeError: Object of type set is not JSON serializable"),
        ({"path": float("nan")}, "ValueError: Out of range float values are not JSON compliant"),
    ],
)
def test_a_repair_that_fails_or_makes_no_json_is_a_message(outcome: Any, message: str) -> None:
    def repair(_sent: Json) -> Json:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    text = refusal("{}", edit(prepare_arguments=repair))
    assert text.startswith(f"The arguments of edit could not be understood: {message}")
    assert text.endswith(". Nothing was executed.")


# Cost


def test_jsonschema_is_imported_when_a_call_is_checked_and_not_before() -> None:
    script = (
        "import sys; import ci_agent.agent.loop; from ci_agent.agent.arguments import find_problems;"
        "before = 'jsonschema' in sys.modules; find_problems({}, {}); print(before, 'jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
