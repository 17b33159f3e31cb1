"""The policies that come with the package: each holds what it promises, in any workspace."""

from pathlib import Path

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.file.shipped import shipped_policy_names, shipped_policy_path
from ci_agent.policy.lint import lint_policy
from ci_agent.policy.own_tests import Decide, run_policy_tests
from ci_agent.policy.rules import PolicySource
from ci_agent.workspace import Workspace, open_workspace

NAMES = ["deny-all", "edit-source", "read-only", "review", "test-and-fix"]

SCHEMAS: dict[str, JsonObject] = {
    name: {"type": "object"} for name in ("read", "write", "edit", "grep", "find", "ls", "bash", "fetch")
}

FILES = (
    *("README.md", "CHANGELOG.md", "Makefile", "package.json", ".env", ".env.example", ".git/config", ".git/HEAD"),
    *("src/main.py", "services/.env", "tests/test_main.py", "deploy/server.key", ".github/workflows/ci.yml"),
)


@pytest.fixture(params=["empty", "lived in"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    for name in FILES if request.param == "lived in" else ():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n")
    return open_workspace(tmp_path)


def test_these_are_shipped() -> None:
    assert shipped_policy_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_policy_passes_its_own_tests(name: str, workspace: Workspace) -> None:
    source = load_policy_source(name)
    results = run_policy_tests(source, compile_policy(source, workspace).decide)
    assert [result.problem for result in results if not result.passed] == []
    assert len(results) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_policy_has_nothing_for_lint_but_what_it_admits(name: str, workspace: Workspace) -> None:
    def decide(source: PolicySource) -> Decide:
        return compile_policy(source, workspace).decide

    findings = lint_policy(load_policy_source(name), decide, SCHEMAS)
    expected = ["edits-what-runs"] if name == "test-and-fix" else []
    assert [finding.code for finding in findings] == expected
    assert all(code in shipped_policy_path(name).read_text() for code in expected)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_leaves_possible_before_its_first_key(name: str) -> None:
    comment = shipped_policy_path(name).read_text().partition("policy: 1")[0]
    assert all(line.startswith("#") or not line for line in comment.splitlines())
    assert "ossible" in comment


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_that_extends_deny_all_allows_nothing(name: str, workspace: Workspace) -> None:
    source = load_policy_source(text=f"policy: 1\nextends: [{', '.join({name: 0, 'deny-all': 0})}]")
    decide = compile_policy(source, workspace).decide
    calls = [(test.tool, test.arguments) for test in load_policy_source(name).tests]
    assert {decide(tool, arguments).effect for tool, arguments in calls} == {"deny"}
