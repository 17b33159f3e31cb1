"""`ci-agent policy test`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Write = Callable[[str], str]

RULES = """
rules:
  - {id: look, allow: bash, command: "git {status,log} **"}
  - {id: query, allow: db__query}
  - {id: no-drop, deny: db__query, args: {sql: {regex: "(?i)DROP .*"}}}
  - {id: notes, allow: write, path: "notes/**"}
tests:
  - allow: {bash: "git log --oneline"}
  - allow: {db__query: {sql: select 1}}
  - deny: {db__query: {sql: DROP it}}
"""

HOLE = RULES.replace("(?i)", "")


def test_tests_hold_variants_are_denied_and_rules_that_nothing_exercises_are_named(
    ci_agent: Any, policy: Write
) -> None:
    done = ci_agent("policy", "test", policy(RULES))
    unexercised, summary = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert unexercised == "policy.yml:7: not exercised: no test and no example needs rule notes"
    assert summary.startswith("policy.yml: 3 tests (0 failed), ")
    assert " variants (0 failed" in summary
    assert summary.endswith(", 3 of 4 rules exercised (75%)")


def test_failures_come_first_each_with_its_place_and_the_exit_code_is_1(ci_agent: Any, policy: Write) -> None:
    done = ci_agent("policy", "test", policy(HOLE + "  - allow: {bash: git push}\n"))
    failing = done.stdout.splitlines()[:4]
    assert done.returncode == 1
    assert failing[0].startswith("policy.yml:12: test failed: expected allow, got deny by default: bash: git push")
    assert failing[1].startswith("    Blocked: no policy rule allows running `git push`. The nearest, look, ")
    assert failing[2] == (
        "policy.yml:11: variant failed (other spelling): expected deny, got allow by query: "
        'db__query: {"sql": "drop it"}; made from db__query: {"sql": "DROP it"}, which no-drop forbids'
    )
    assert failing[3].startswith("policy.yml:11: variant failed (other spelling): ")


@pytest.mark.parametrize(("percent", "code"), [("75", 0), ("76", 1), ("100", 1), ("101", 2), ("x", 2)])
def test_less_coverage_than_wanted_is_a_failure(ci_agent: Any, policy: Write, percent: str, code: int) -> None:
    done = ci_agent("policy", "test", "--min-coverage", percent, policy(RULES))
    assert done.returncode == code
    assert done.stdout.rstrip().endswith(f"(75%, at least {percent}% wanted)") is (code != 2)


def test_a_program_gets_the_variants_that_are_allowed_with_their_decision(ci_agent: Any, policy: Write) -> None:
    done = ci_agent("policy", "test", "--format", "json", policy(HOLE))
    (tested,) = json.loads(done.stdout)
    assert (done.returncode, tested["policy"], tested["passed"], len(tested["tests"])) == (1, "policy.yml", False, 3)
    assert (tested["variants"]["tried"] > 100, tested["variants"]["complete"]) == (True, True)
    first = tested["variants"]["allowed"][0]
    assert first["decision"].pop("facts")
    assert first == {
        "trick": "other spelling",
        "source": "policy.yml:11",
        "rule_id": "no-drop",
        "made_from": {"tool": "db__query", "args": {"sql": "DROP it"}},
        "tool": "db__query",
        "args": {"sql": "drop it"},
        "granted_by": None,
        "decision": {
            "effect": "allow",
            "code": "rule",
            "rule_id": "query",
            "source": "policy.yml:5",
            "reason": "Allowed by policy rule query.",
            "fact": None,
            "argument": None,
            "span": None,
            "nearest": None,
            "because": None,
            "instead": None,
            "on_denied": "record",
        },
    }
    assert tested["coverage"] == {
        "percent": 75.0,
        "rules": [
            {"rule_id": rule_id, "source": f"policy.yml:{line}", "exercised": rule_id != "notes"}
            for line, rule_id in enumerate(("look", "query", "no-drop", "notes"), 4)
        ],
    }


def test_shipped_policies_pass(ci_agent: Any) -> None:
    done = ci_agent("policy", "test", "--min-coverage", "100", "deny-all", "read-only", "edit-source")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)


def test_an_invalid_policy_exits_3(ci_agent: Any, policy: Write) -> None:
    done = ci_agent("policy", "test", policy("rules: [{id: a, alow: read}]\n"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
