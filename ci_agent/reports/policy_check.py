"""What `policy check` found, for a person and for a program."""

from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.checkup import CheckedPolicy
from ci_agent.policy.lint.finding import LintFinding, Witness
from ci_agent.policy.own_tests import TestResult, describe_call
from ci_agent.spelling import counted
from ci_agent.terminal import printable


def render_check(checked: CheckedPolicy) -> str:
    """A line for each finding and each failing test, and one that counts."""
    failed = [result for result in checked.results if not result.passed]
    lines = [_finding_line(finding) for finding in checked.findings]
    lines += [line for result in failed for line in failure_lines(result)]
    lines.append(f"{checked.source.name}: {_counts(checked, len(failed))}")
    return "\n".join(lines)


def check_json(checked: CheckedPolicy) -> JsonObject:
    """The same for a program."""
    return {
        "policy": checked.source.name,
        "sha256": checked.source.sha256,
        "rules": len(checked.source.rules),
        "passed": checked.passed,
        "findings": [_finding_json(finding) for finding in checked.findings],
        "tests": [result_json(result) for result in checked.results],
    }


def failure_lines(result: TestResult) -> list[str]:
    """What a failed test or example expected and got, and beneath it the reason of a denial."""
    lines = [f"{result.source}: {result.kind} failed: {printable(result.problem or '')}"]
    if result.decision.effect == "deny":
        lines.append(f"    {printable(result.decision.reason)}")
    return lines


def _finding_line(finding: LintFinding) -> str:
    witness = f" (for example {_witness_text(finding.witness)})" if finding.witness else ""
    return f"{finding.source}: {finding.severity}: {printable(finding.message)}{printable(witness)} [{finding.code}]"


def _witness_text(witness: Witness) -> str:
    return describe_call(witness.tool, witness.arguments)


def _counts(checked: CheckedPolicy, failed: int) -> str:
    rules, tests = len(checked.source.rules), len(checked.results)
    errors = sum(finding.severity == "error" for finding in checked.findings)
    warnings = len(checked.findings) - errors
    return (
        f"{counted(rules, 'rule')}, {counted(tests, 'test')} ({failed} failed), "
        f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    )


def _finding_json(finding: LintFinding) -> JsonObject:
    witness = finding.witness and {"tool": finding.witness.tool, "args": finding.witness.arguments}
    return {
        "severity": finding.severity,
        "code": finding.code,
        "rule_id": finding.rule_id,
        "source": finding.source,
        "message": finding.message,
        "witness": witness,
    }


def result_json(result: TestResult) -> JsonObject:
    """One test or example."""
    return {
        "kind": result.kind,
        "source": result.source,
        "call": result.call,
        "expected": result.expected,
        "got": result.decision.effect,
        "code": result.decision.code,
        "rule_id": result.decision.rule_id,
        "reason": result.decision.reason,
        "passed": result.passed,
    }
