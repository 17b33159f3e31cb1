"""What `policy test` found, for a person and for a program."""

from collections import Counter
from collections.abc import Iterator
from math import floor

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.checks.self_test import SelfTest
from ci_agent.policy.variants import VariantResult
from ci_agent.reports.policy_check import failure_lines, result_json
from ci_agent.spelling import counted
from ci_agent.terminal import printable
from ci_agent.transcript.as_json import decision_json


def render_self_test(tested: SelfTest, min_coverage: float | None) -> str:
    """A line for each failure, then one for each rule that nothing exercises, and one that counts."""
    return "\n".join(
        [*_failures(tested), *_unexercised(tested), f"{tested.source.name}: {_counts(tested, min_coverage)}"]
    )


def self_test_json(tested: SelfTest) -> JsonObject:
    """The same for a program. Of the variants those that are allowed are listed."""
    listed = {
        outcome: [_variant_json(variant) for variant in tested.variants if variant.outcome == outcome]
        for outcome in ("allowed", "granted")
    }
    return {
        "policy": tested.source.name,
        "sha256": tested.source.sha256,
        "passed": tested.passed,
        "tests": [result_json(result) for result in tested.results],
        "variants": {
            "tried": tested.tried,
            "complete": tested.is_complete,
            **listed,
        },
        "coverage": {
            "percent": tested.coverage_percent,
            "rules": [
                {"rule_id": use.rule.id, "source": use.rule.source, "exercised": use.exercised} for use in tested.rules
            ],
        },
    }


def _failures(tested: SelfTest) -> Iterator[str]:
    for result in tested.results:
        if not result.passed:
            yield from failure_lines(result)
    for variant in tested.variants:
        if variant.outcome == "allowed":
            yield f"{variant.base.source}: variant failed ({variant.trick}): {printable(variant.problem or '')}"


def _unexercised(tested: SelfTest) -> Iterator[str]:
    for use in tested.rules:
        if not use.exercised:
            yield f"{use.rule.source}: not exercised: no test and no example needs rule {use.rule.id}"


def _counts(tested: SelfTest, min_coverage: float | None) -> str:
    failed = sum(not result.passed for result in tested.results)
    outcomes = Counter(variant.outcome for variant in tested.variants)
    exercised = sum(use.exercised for use in tested.rules)
    wanted = "" if min_coverage is None else f", at least {min_coverage:g}% wanted"
    first = "" if tested.is_complete else "the first "
    granted = f", {outcomes['granted']} granted plainly" if outcomes["granted"] else ""
    return (
        f"{counted(len(tested.results), 'test')} ({failed} failed), "
        f"{first}{counted(tested.tried, 'variant')} ({outcomes['allowed']} failed{granted}), "
        f"{exercised} of {counted(len(tested.rules), 'rule')} exercised ({floor(tested.coverage_percent)}%{wanted})"
    )


def _variant_json(variant: VariantResult) -> JsonObject:
    base: Json = {"tool": variant.base.call.tool, "args": variant.base.call.arguments}
    return {
        "trick": variant.trick,
        "source": variant.base.source,
        "rule_id": variant.base.rule.id,
        "made_from": base,
        "tool": variant.call.tool,
        "args": variant.call.arguments,
        "granted_by": variant.granted_by,
        "decision": decision_json(variant.decision),
    }
