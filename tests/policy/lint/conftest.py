from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.lint import LintFinding, lint_policy
from ci_agent.policy.own_tests import Decide
from ci_agent.policy.rules import PolicySource
from ci_agent.workspace import open_workspace

Lint: TypeAlias = Callable[..., list[LintFinding]]

SCHEMAS: dict[str, JsonObject] = {
    name: {"type": "object"} for name in ("read", "write", "edit", "grep", "find", "ls", "bash", "fetch", "propose")
}


@pytest.fixture
def lint(tmp_path: Path) -> Lint:
    """`lint(rules, **more_schemas)`: what lint says of these rules, in an empty workspace, with the real engine.

    Every witness is decided once more: it must be what the finding says, allowed, or denied when it is shadowed.
    """
    workspace = open_workspace(tmp_path)

    def compile_source(source: PolicySource) -> Decide:
        return compile_policy(source, workspace).decide

    def run(rules: str, **more_schemas: JsonObject) -> list[LintFinding]:
        schemas = {**SCHEMAS, **more_schemas}
        source = load_policy_source(text=f"policy: 1\n{rules}", known_tools=schemas)
        findings = lint_policy(source, compile_source, schemas, lambda path: (tmp_path / path).is_dir())
        for finding in findings:
            if finding.witness:
                decision = compile_source(source)(finding.witness.tool, finding.witness.arguments)
                assert decision.effect == ("deny" if finding.code == "shadowed" else "allow"), finding
        return findings

    return run
