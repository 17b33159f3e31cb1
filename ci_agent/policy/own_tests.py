"""A policy's own tests and the examples of its rules, tried against what the policy decides."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent.agent.arguments import find_problems
from ci_agent.hooks import Decision, Effect
from ci_agent.json_types import JsonObject
from ci_agent.policy.file.calls import SHORTHANDS, example_calls
from ci_agent.policy.rules import PolicySource, PolicyTest, Rule

Decide: TypeAlias = Callable[[str, JsonObject], Decision]
"""A tool's name and a call's arguments to the decision, as `Policy.decide`."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """How one test or one example went."""

    __test__ = False  # not a test class of pytest

    kind: Literal["test", "example"]
    source: str
    """`file:line` of the test, or of the rule whose example it is."""
    call: str
    """The call in one line, as a person would write it."""
    expected: str
    """`allow`, `deny by no-secrets`, `a match of inspect`..."""
    decision: Decision
    passed: bool

    @property
    def problem(self) -> str | None:
        """What went wrong, in one line; None when nothing did."""
        if self.decision.code == "arguments":
            return f"this call can never be made: {self.call}"
        return None if self.passed else f"expected {self.expected}, got {_answer(self.decision)}: {self.call}"


def run_policy_tests(source: PolicySource, decide: Decide) -> list[TestResult]:
    """Try every test of the policy's own file, in its order."""
    return [_run_test(test, decide(test.tool, test.arguments)) for test in source.tests]


def run_rule_examples(source: PolicySource, decide_by: Callable[[Rule], Decide]) -> list[TestResult]:
    """Try the examples of the rules that stand in the policy's own file, each with its rule alone.

    `decide_by` gives the decisions of a policy that consists of one rule. An allow rule matches a call that it grants
    by itself, a deny rule one that it forbids.
    """
    return [result for rule in source.rules if "/" not in rule.id for result in _run_examples(rule, decide_by(rule))]


def refuse_invalid(decide: Decide, schemas: Mapping[str, JsonObject]) -> Decide:
    """As `decide`, with code `arguments` for a call that a run refuses before it asks the policy.

    `schemas`: those of the tools' arguments, by name; a call of any other tool is taken as it is. A test that gets
    this code fails whatever it expects: a denial that comes before the policy says nothing about it.
    """

    def decide_valid(tool: str, arguments: JsonObject) -> Decision:
        problems = find_problems(schemas[tool], arguments) if tool in schemas else []
        if problems:
            return Decision(effect="deny", code="arguments", reason="; ".join(problems))
        return decide(tool, arguments)

    return decide_valid


def describe_call(tool: str, arguments: JsonObject) -> str:
    """`bash: git push`, or `github__search: {"query": "x"}`; on one line."""
    shorthand = SHORTHANDS.get(tool)
    shown = {key: value for key, value in arguments.items() if not shorthand or key not in shorthand.placeholders}
    if shorthand and list(shown) == [shorthand.argument] and isinstance(shown[shorthand.argument], str):
        return f"{tool}: {_one_line(shown[shorthand.argument])}"
    return f"{tool}: {json.dumps(shown, ensure_ascii=False)}"


def _run_test(test: PolicyTest, decision: Decision) -> TestResult:
    return TestResult(
        kind="test",
        source=test.source,
        call=describe_call(test.tool, test.arguments),
        expected=f"{test.effect} by {test.by}" if test.by else test.effect,
        decision=decision,
        passed=_is_expected(test, decision),
    )


def _is_expected(test: PolicyTest, decision: Decision) -> bool:
    by_whom = test.by is None or test.by in _deciding(decision)
    return decision.code != "arguments" and decision.effect == test.effect and by_whom


def _run_examples(rule: Rule, decide: Decide) -> Iterator[TestResult]:
    for examples, must_match in ((rule.examples.match, True), (rule.examples.no_match, False)):
        for example in examples:
            for tool, arguments in example_calls(rule.tools, example):
                decision = decide(tool, arguments)
                yield TestResult(
                    kind="example",
                    source=rule.source,
                    call=describe_call(tool, arguments),
                    expected=f"{'a' if must_match else 'no'} match of {rule.id}",
                    decision=decision,
                    passed=decision.code != "arguments" and _matches(rule.effect, rule.id, decision) == must_match,
                )


def _matches(effect: Effect, rule_id: str, decision: Decision) -> bool:
    return decision.effect == effect and decision.code == "rule" and decision.rule_id == rule_id


def _deciding(decision: Decision) -> set[str | None]:
    """What `by` may name: the rule or the code; of an allowed call every rule that granted a part of it."""
    granting = {fact.granted_by for fact in decision.facts} if decision.effect == "allow" else set()
    return {decision.rule_id, decision.code, *granting}


def _answer(decision: Decision) -> str:
    return f"{decision.effect} by {decision.rule_id or decision.code}"


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)
