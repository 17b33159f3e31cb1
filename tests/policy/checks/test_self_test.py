"""A policy put to the test: results, variants, and which rules something exercises."""

from pathlib import Path

import pytest

from ci_agent.policy.checks.self_test import self_test
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.file.shipped import shipped_policy_names
from ci_agent.tools.table import tools_without_a_run
from ci_agent.workspace import open_workspace

SCHEMAS = {name: tool.parameters for name, tool in tools_without_a_run().items()}

RULES = """
rules:
  - {id: look, allow: read}
  - {id: list, allow: bash, command: ls}
  - {id: edit, allow: edit, path: src/**, examples: {match: src/a, no_match: a}}
  - {id: secrets, deny: read, path: "**/.env"}
  - {id: unused, allow: find}
"""


def policy(text: str, workspace: Path) -> Policy:
    return compile_policy(load_policy_source(text=f"policy: 1\n{text}"), open_workspace(workspace))


def test_a_rule_is_exercised_when_a_test_or_an_example_makes_it_grant_or_forbid_something(tmp_path: Path) -> None:
    tests = "tests: [{allow: {read: a}}, {deny: {read: .env}}, {deny: {bash: ls; git push}}]"
    tested = self_test(policy(RULES + tests, tmp_path), SCHEMAS)
    assert [(use.rule.id, use.exercised) for use in tested.rules] == [
        *(("look", True), ("list", True), ("edit", True), ("secrets", True), ("unused", False)),
    ]
    assert (tested.coverage_percent, tested.passed) == (80.0, True)
    assert [result.call for result in tested.results] == [
        *("read: a", "read: .env", "bash: ls; git push", "edit: src/a", "edit: a"),
    ]


def test_rules_of_a_base_are_tested_in_the_base(tmp_path: Path) -> None:
    tested = self_test(policy("extends: read-only\ntests: [{allow: {read: a}}]", tmp_path), SCHEMAS)
    assert (tested.rules, tested.coverage_percent, tested.passed) == ((), 100.0, True)


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{id: a, allow: read}]\ntests: [{deny: {read: a}}]",
        "rules: [{id: a, allow: read, path: b, examples: {match: c}}]",
        """
rules: [{id: a, allow: db__query}, {id: b, deny: db__query, args: {sql: {regex: "DROP .*"}}}]
tests: [{deny: {db__query: {sql: DROP it}}}]
""",
    ],
    ids=["test", "example", "variant"],
)
def test_a_policy_with_a_failure_does_not_pass(text: str, tmp_path: Path) -> None:
    assert not self_test(policy(text, tmp_path), SCHEMAS).passed


@pytest.mark.parametrize("name", shipped_policy_names())
def test_a_shipped_policy_passes_with_every_rule_exercised(name: str, tmp_path: Path) -> None:
    tested = self_test(compile_policy(load_policy_source(name), open_workspace(tmp_path)), SCHEMAS)
    assert [variant.problem for variant in tested.variants if variant.problem] == []
    assert (tested.passed, tested.coverage_percent) == (True, 100.0)
    assert (tested.tried > 100, tested.is_complete) == (True, True)


def test_a_policy_with_very_many_variants_says_that_not_all_were_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ci_agent.policy.checks.self_test.MAX_VARIANTS", 10)
    tested = self_test(policy("rules: [{id: a, allow: read}]", tmp_path), SCHEMAS)
    assert (tested.tried, tested.is_complete) == (10, False)


def test_a_call_that_a_run_refuses_before_it_asks_the_policy_fails_its_test_and_exercises_nothing(
    tmp_path: Path,
) -> None:
    text = """
rules: [{id: look, allow: read, path: a, examples: {match: {path: a, limt: 1}, no_match: {file: b}}}]
tests:
  - allow: {read: {path: a, foo: 1}}
  - deny: {read: {path: 5}}
  - deny: {read: {file: b}}
"""
    tested = self_test(policy(text, tmp_path), SCHEMAS)
    assert [(result.problem, result.decision.reason) for result in tested.results] == [
        (f"this call can never be made: read: {call}", reason)
        for call, reason in (
            ('{"path": "a", "foo": 1}', "foo: unknown field; known are limit, offset, path"),
            ('{"path": 5}', "path: expected string, got 5"),
            ('{"file": "b"}', "path: missing, and required; file: unknown field; known are limit, offset, path"),
            ('{"path": "a", "limt": 1}', "limt: unknown field; did you mean limit?"),
            ('{"file": "b"}', "path: missing, and required; file: unknown field; known are limit, offset, path"),
        )
    ]
    assert (tested.passed, tested.coverage_percent) == (False, 0.0)


def test_a_call_of_a_tool_that_is_not_known_is_taken_as_it_is(tmp_path: Path) -> None:
    tested = self_test(policy("rules: [{id: a, allow: db__get}]\ntests: [{allow: {db__get: {x: 1}}}]", tmp_path), {})
    assert (tested.passed, tested.coverage_percent) == (True, 100.0)
