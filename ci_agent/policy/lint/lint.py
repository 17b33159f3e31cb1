"""All that lint looks for, in one list."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ci_agent.json_types import JsonObject
from ci_agent.policy.lint.arguments import find_useless_rules
from ci_agent.policy.lint.finding import LintFinding, Subject
from ci_agent.policy.lint.narrow import find_narrow_patterns
from ci_agent.policy.lint.overlap import find_overlaps
from ci_agent.policy.lint.slips import find_slips
from ci_agent.policy.lint.trifecta import find_trifecta
from ci_agent.policy.lint.wide import find_wide_grants
from ci_agent.policy.lint.writes import find_dangerous_writes
from ci_agent.policy.own_tests import Decide
from ci_agent.policy.rules import PolicySource, Rule


def lint_policy(
    source: PolicySource,
    compile_source: Callable[[PolicySource], Decide],
    schemas: Mapping[str, JsonObject],
    is_folder: Callable[[str], bool] = lambda _path: False,
) -> list[LintFinding]:
    """What is odd about the rules of the policy's own file, errors first, then in the order of the file.

    `compile_source`: a policy to what it decides, in the workspace that matters. `schemas`: those of the arguments of
    all tools that are configured, by name. `is_folder`: whether a path of that workspace is one. A finding that speaks
    of a call carries one that the policy really allows, or, for `shadowed`, denies.
    """

    def decide_by(rules: Sequence[Rule]) -> Decide:
        return compile_source(replace(source, rules=tuple(rules)))

    subject = Subject(source, compile_source(source), decide_by, schemas, is_folder)
    findings = chain(
        find_useless_rules(subject),
        find_narrow_patterns(subject),
        find_slips(subject),
        find_overlaps(subject),
        find_wide_grants(subject),
        find_dangerous_writes(subject),
        find_trifecta(subject),
    )
    order = {rule.id: position for position, rule in enumerate(source.rules)}
    return sorted(findings, key=lambda finding: (finding.severity, order[finding.rule_id]))
