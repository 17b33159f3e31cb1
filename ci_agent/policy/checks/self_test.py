"""A policy put to the test: its own tests and examples, hostile variants of them, and which rules they exercise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.checkup import run_own_tests
from ci_agent.policy.decide import Policy
from ci_agent.policy.own_tests import TestResult
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.policy.variants import VariantResult, try_variants

MAX_VARIANTS: Final = 100_000
"""About five hundred rules without a test of their own; those that come later in the file are then left out."""


@dataclass(frozen=True, slots=True)
class RuleUse:
    rule: Rule
    exercised: bool
    """A test or an example made it grant or forbid something."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    source: PolicySource
    results: tuple[TestResult, ...]
    tried: int
    """Variants that were tried."""
    variants: tuple[VariantResult, ...]
    """Those of them that are allowed."""
    is_complete: bool
    """No variant was left out because there are so many."""
    rules: tuple[RuleUse, ...]
    """Those of the policy's own file; what a base says is tested in the base."""

    @property
    def coverage_percent(self) -> float:
        """Of the own rules, how many are exercised; 100 when there are none."""
        exercised = sum(use.exercised for use in self.rules)
        return 100 * exercised / len(self.rules) if self.rules else 100.0

    @property
    def passed(self) -> bool:
        """No test or example fails and no variant is allowed. How much is exercised is another question."""
        return all(result.passed for result in self.results) and all(
            variant.outcome != "allowed" for variant in self.variants
        )


def self_test(policy: Policy, schemas: Mapping[str, JsonObject]) -> SelfTest:
    """Try a policy in the workspace that it was compiled for. Nothing runs, nothing is written.

    `schemas`: those of all tools, by name.
    """
    results = run_own_tests(policy, schemas)
    tried, allowed = 0, []
    for tried, variant in enumerate(islice(try_variants(policy), MAX_VARIANTS + 1), 1):
        if variant.outcome != "denied" and tried <= MAX_VARIANTS:
            allowed.append(variant)
    return SelfTest(
        source=policy.source,
        results=tuple(results),
        tried=min(tried, MAX_VARIANTS),
        variants=tuple(allowed),
        is_complete=tried <= MAX_VARIANTS,
        rules=tuple(_uses(policy.source, results)),
    )


def _uses(source: PolicySource, results: Iterable[TestResult]) -> Iterable[RuleUse]:
    exercised: set[str | None] = set()
    for result in results:
        facts = result.decision.facts
        exercised.add(result.decision.rule_id)
        exercised.update(rule_id for fact in facts for rule_id in (fact.granted_by, fact.forbidden_by))
    return (RuleUse(rule, rule.id in exercised) for rule in source.rules if "/" not in rule.id)
