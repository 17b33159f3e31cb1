from collections.abc import Callable

from ci_agent.policy.lint import LintFinding

Lint = Callable[..., list[LintFinding]]


def test_errors_come_first_and_the_rest_in_the_order_of_the_file(lint: Lint) -> None:
    rules = """\
rules:
  - {id: any, allow: bash, command: "**"}
  - {id: net, allow: fetch}
  - {id: typo, allow: x__y, args: {a: {const: 1}}}
  - {id: twice, allow: fetch}
"""
    schema = {"type": "object", "additionalProperties": False, "properties": {"b": {"type": "string"}}}
    assert [(finding.severity, finding.rule_id, finding.code) for finding in lint(rules, x__y=schema)] == [
        ("error", "typo", "matches-nothing"),
        ("warning", "any", "grants-everything"),
        ("warning", "net", "grants-everything"),
        ("warning", "net", "trifecta"),
        ("warning", "twice", "redundant"),
        ("warning", "twice", "grants-everything"),
    ]


def test_what_a_base_says_is_not_repeated(lint: Lint) -> None:
    assert lint("extends: test-and-fix") == []


def test_a_policy_without_oddities_has_no_findings(lint: Lint) -> None:
    rules = """\
rules:
  - {id: look, allow: [read, grep, find, ls]}
  - {id: source, allow: [write, edit], path: src/**}
  - {id: history, allow: bash, command: ["git {status,diff,log} **", "head **"]}
  - {id: docs, allow: fetch, host: [docs.python.org, "*.readthedocs.io"]}
  - {id: secrets, deny: [read, write, edit], path: ["**/.env", "**/.env.*"], because: secrets stay out}
"""
    assert lint(rules) == []
