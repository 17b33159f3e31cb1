from collections.abc import Callable

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.policy.lint import LintFinding

Lint = Callable[..., list[LintFinding]]

SCHEMA: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "repo": {"type": "string", "enum": ["acme/site", "acme/api"]},
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "maybe": {"type": ["string", "null"]},
        "labels": {"type": "array", "items": {"type": "string"}},
        "spec": {"type": "object", "additionalProperties": False, "properties": {"image": {"type": "string"}}},
        "extra": {"type": "object"},
    },
}


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("titel: {const: x}", '"titel" selects nothing: there is no "titel" (did you mean title?) among the arguments'),
        ("spec.tag: {const: x}", '"spec.tag" selects nothing: there is no "tag" among the arguments'),
        ("'title[]': {const: x}", '"title[]" selects nothing: there is no list among the arguments'),
        ("count: {regex: '[0-9]+'}", 'regex cannot judge "count", which is integer among the arguments'),
        ("title: {max: 5}", 'max cannot judge "title", which is string among the arguments'),
        ("'labels': {regex: bug}", 'regex cannot judge "labels", which is array among the arguments'),
        (
            "repo: {enum: [evil/site]}",
            'no value of "repo" passes: it is one of acme/site, acme/api among the arguments',
        ),
    ],
)
def test_a_test_that_no_argument_can_pass_is_an_error(lint: Lint, test: str, problem: str) -> None:
    findings = lint(f"rules:\n  - {{id: a, allow: github__create, args: {{{test}}}}}\n", github__create=SCHEMA)
    assert findings == [
        LintFinding("error", "matches-nothing", f"a: {problem} of github__create", "a", "<text>:3", None)
    ]


@pytest.mark.parametrize(
    "test",
    [
        "title: {regex: '[a-z]+'}",
        "maybe: {regex: x}",
        "count: {min: 1}",
        "'labels[]': {enum: [bug]}",
        "spec.image: {const: x}",
        "extra.anything.at.all: {const: x}",
        "repo: {enum: [acme/site, other/site]}",
        "nothing: {absent: true}",
    ],
)
def test_a_test_that_some_argument_can_pass_is_fine(lint: Lint, test: str) -> None:
    rules = f"rules:\n  - {{id: a, allow: github__create, args: {{{test}}}}}\n"
    assert lint(rules, github__create=SCHEMA) == []


def test_a_schema_that_is_open_says_nothing_of_other_arguments(lint: Lint) -> None:
    rules = "rules:\n  - {id: a, allow: github__create, args: {anything: {const: x}}}\n"
    assert lint(rules, github__create={"type": "object", "properties": {"title": {"type": "string"}}}) == []


def test_a_deny_rule_is_held_to_the_schema_too(lint: Lint) -> None:
    rules = "rules:\n  - {id: a, deny: github__create, args: {titel: {const: x}}}\n"
    assert [finding.severity for finding in lint(rules, github__create=SCHEMA)] == ["error"]


def test_a_tool_of_a_server_that_is_not_configured_cannot_be_checked(lint: Lint) -> None:
    rules = "rules:\n  - {id: a, allow: github__create}\n  - {id: b, deny: ['gitlab__*', gitlab__delete]}\n"
    assert [(finding.severity, finding.code, finding.message) for finding in lint(rules)] == [
        ("warning", "unknown-tool", 'a: whether "github__create" exists is not known: no server is configured here'),
        ("warning", "unknown-tool", 'b: whether "gitlab__delete" exists is not known: no server is configured here'),
    ]


@pytest.mark.parametrize(
    "schema", [{}, {"properties": [1], "type": ["object", 1]}, {"type": 5, "properties": {"a": 1}}]
)
def test_a_schema_that_is_none_is_no_reason_to_fail(lint: Lint, schema: JsonObject) -> None:
    rules = "rules:\n  - {id: a, allow: github__create, args: {a: {const: x}, 'b[].c': {regex: x}}}\n"
    assert lint(rules, github__create=schema) == []
