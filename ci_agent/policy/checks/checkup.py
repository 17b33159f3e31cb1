"""Everything that can be found out about a policy without a run: lint findings, its tests, its rules' examples."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.lint.finding import LintFinding
from ci_agent.policy.lint.lint import lint_policy
from ci_agent.policy.own_tests import Decide, TestResult, refuse_invalid, run_policy_tests, run_rule_examples
from ci_agent.policy.protected import Surroundings
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    source: PolicySource
    findings: tuple[LintFinding, ...]
    results: tuple[TestResult, ...]

    @property
    def passed(self) -> bool:
        """No lint error (warnings are no errors) and no failing test or example."""
        return all(result.passed for result in self.results) and not any(
            finding.severity == "error" for finding in self.findings
        )


def check_policy(
    source: PolicySource, workspace: Workspace, around: Surroundings, schemas: Mapping[str, JsonObject]
) -> CheckedPolicy:
    """Lint and test a policy as it would decide in a workspace; `schemas` are those of all tools, by name."""

    def compile_source(of: PolicySource) -> Decide:
        return compile_policy(of, workspace, around=around).decide

    results = run_own_tests(compile_policy(source, workspace, around=around), schemas)
    findings = lint_policy(source, compile_source, schemas, lambda path: (workspace.root / path).is_dir())
    return CheckedPolicy(source, tuple(findings), tuple(results))


def run_own_tests(policy: Policy, schemas: Mapping[str, JsonObject]) -> list[TestResult]:
    """The tests of the policy's file, then the examples of its rules, each by its rule alone.

    `schemas`: those of all tools, by name; a call that breaks its tool's schema fails its test.
    """

    def decide_by(rule: Rule) -> Decide:
        alone = replace(policy.source, rules=(rule,))
        compiled = compile_policy(alone, policy.site.workspace, around=policy.site.around)
        return refuse_invalid(compiled.decide, schemas)

    decide = refuse_invalid(policy.decide, schemas)
    return [*run_policy_tests(policy.source, decide), *run_rule_examples(policy.source, decide_by)]
