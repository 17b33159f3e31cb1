from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.hooks import Decision, FactVerdict
from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.own_tests import Decide, TestResult, describe_call, run_policy_tests, run_rule_examples
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.workspace import open_workspace

ALLOWED = Decision("allow", "rule", "Allowed.", rule_id="look")
DENIED = Decision("deny", "default", "Blocked.")


def policy_with(tests: str) -> PolicySource:
    return load_policy_source(text=f"policy: 1\nrules: [{{id: look, allow: read}}]\ntests:\n{tests}")


def always(decision: Decision) -> Decide:
    return lambda _tool, _arguments: decision


def test_each_test_is_tried_with_the_whole_arguments_of_its_call() -> None:
    seen: list[tuple[str, JsonObject]] = []

    def decide(tool: str, arguments: JsonObject) -> Decision:
        seen.append((tool, arguments))
        return ALLOWED

    source = policy_with("  - allow: {read: a}\n  - deny: {write: {path: b, content: c}}\n    by: look\n")
    assert run_policy_tests(source, decide) == [
        TestResult("test", "<text>:4", "read: a", "allow", ALLOWED, passed=True),
        TestResult("test", "<text>:5", "write: b", "deny by look", ALLOWED, passed=False),
    ]
    assert seen == [("read", {"path": "a"}), ("write", {"content": "c", "path": "b"})]


@pytest.mark.parametrize(
    ("by", "decision", "passed"),
    [
        ("default", DENIED, True),
        ("hazard", DENIED, False),
        ("look", DENIED, False),
        ("look", Decision("deny", "rule", "Blocked.", rule_id="look"), True),
        ("limit", Decision("deny", "limit", "Blocked.", rule_id="look"), True),
    ],
)
def test_by_names_the_rule_or_the_code_that_decided(by: str, decision: Decision, passed: bool) -> None:
    (result,) = run_policy_tests(policy_with(f"  - {{deny: {{read: a}}, by: {by}}}"), always(decision))
    assert result.passed is passed


def test_an_allowed_call_is_by_every_rule_that_grants_a_part_of_it() -> None:
    text = "policy: 1\nrules: [{id: a, allow: read}, {id: b, allow: ls}]\ntests: [{allow: {read: x}, by: b}]"
    decision = replace(
        ALLOWED,
        rule_id="a",
        facts=(FactVerdict("read", "/x", granted_by="a"), FactVerdict("read", "/y", granted_by="b")),
    )
    (result,) = run_policy_tests(load_policy_source(text=text), always(decision))
    assert result.passed


@pytest.mark.parametrize(
    ("test", "decision", "problem"),
    [
        ("{allow: {bash: git push}}", DENIED, "expected allow, got deny by default: bash: git push"),
        ("{deny: {read: a}, by: look}", ALLOWED, "expected deny by look, got allow by look: read: a"),
        ("{allow: {read: a}}", ALLOWED, None),
    ],
)
def test_a_failure_says_what_was_expected_and_what_came(test: str, decision: Decision, problem: str | None) -> None:
    (result,) = run_policy_tests(policy_with(f"  - {test}"), always(decision))
    assert result.problem == problem


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("bash", {"command": "git push"}, "bash: git push"),
        ("bash", {"command": "a\nb\x1b"}, 'bash: "a\\nb\\u001b"'),
        ("bash", {"command": "a", "timeout": 5}, 'bash: {"command": "a", "timeout": 5}'),
        ("write", {"content": "", "path": "a"}, "write: a"),
        ("ls", {}, "ls: {}"),
        ("read", {"path": 5}, 'read: {"path": 5}'),
        ("github__search", {"query": "é"}, 'github__search: {"query": "é"}'),
    ],
)
def test_a_call_is_shown_as_a_person_would_write_it(tool: str, arguments: JsonObject, shown: str) -> None:
    assert describe_call(tool, arguments) == shown


# Examples, with the real engine


@pytest.fixture
def decide_by(tmp_path: Path) -> Callable[[Rule], Decide]:
    workspace = open_workspace(tmp_path)

    def alone(rule: Rule) -> Decide:
        source = PolicySource(name="one rule", sha256="", description=None, rules=(rule,))
        return compile_policy(source, workspace).decide

    return alone


EXAMPLES = """\
policy: 1
extends: read-only
rules:
  - id: source
    allow: [write, edit]
    path: src/**
    examples:
      match: [src/a.py, {write: src/b.py}, {path: src/c.py}]
      no_match: [a.py, src/../a.py]
  - id: secrets
    deny: read
    path: "**/.env"
    examples:
      match: [.env, sub/.env]
      no_match: .env.example
  - id: issue
    allow: github__*
    args: {repo: {const: acme/site}}
    examples:
      match: {github__create_issue: {repo: acme/site}}
      no_match: {github__create_issue: {repo: evil/site}}
"""


def test_examples_are_tried_with_each_tool_of_their_rule_alone(decide_by: Callable[[Rule], Decide]) -> None:
    results = run_rule_examples(load_policy_source(text=EXAMPLES), decide_by)
    assert [(result.source, result.call, result.expected, result.passed) for result in results] == [
        ("<text>:4", "write: src/a.py", "a match of source", True),
        ("<text>:4", "edit: src/a.py", "a match of source", True),
        ("<text>:4", "write: src/b.py", "a match of source", True),
        ("<text>:4", "write: src/c.py", "a match of source", True),
        ("<text>:4", "edit: src/c.py", "a match of source", True),
        ("<text>:4", "write: a.py", "no match of source", True),
        ("<text>:4", "edit: a.py", "no match of source", True),
        ("<text>:4", "write: src/../a.py", "no match of source", True),
        ("<text>:4", "edit: src/../a.py", "no match of source", True),
        ("<text>:10", "read: .env", "a match of secrets", True),
        ("<text>:10", "read: sub/.env", "a match of secrets", True),
        ("<text>:10", "read: .env.example", "no match of secrets", True),
        ("<text>:16", 'github__create_issue: {"repo": "acme/site"}', "a match of issue", True),
        ("<text>:16", 'github__create_issue: {"repo": "evil/site"}', "no match of issue", True),
    ]


def test_an_example_that_does_not_hold_fails(decide_by: Callable[[Rule], Decide]) -> None:
    text = """\
policy: 1
rules:
  - {id: look, allow: read, path: src/**, examples: {match: lib/x, no_match: src/x}}
  - {id: secrets, deny: read, path: .env, examples: {match: src/x, no_match: .env}}
"""
    results = run_rule_examples(load_policy_source(text=text), decide_by)
    assert [result.problem for result in results] == [
        "expected a match of look, got deny by default: read: lib/x",
        "expected no match of look, got allow by look: read: src/x",
        "expected a match of secrets, got deny by default: read: src/x",
        "expected no match of secrets, got deny by secrets: read: .env",
    ]
