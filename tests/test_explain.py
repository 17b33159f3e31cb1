"""A call explained is decided as in a run: the schema first, then the policy."""

from pathlib import Path

import pytest

from ci_agent import Policy, load_policy
from ci_agent.explain import explain_call
from ci_agent.tools.table import tools_without_a_run


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    rules = "rules: [{id: e, allow: edit}, {id: x, allow: x__y}]"
    return load_policy(text=f"policy: 1\n{rules}\n", workspace=tmp_path)


def test_arguments_are_repaired_as_in_a_run_before_they_are_judged(policy: Policy) -> None:
    as_text = '{"path": "a.txt", "edits": "[{\\"old\\": \\"a\\", \\"new\\": \\"b\\"}]"}'
    assert explain_call(policy, tools_without_a_run(), "edit", as_text).effect == "allow"


@pytest.mark.parametrize("raw", ['{"path": 1}', "[]", "nonsense", '{"path": "a", "path": "b"}', '{"path": NaN}'])
@pytest.mark.parametrize("tool", ["edit", "x__y"])
def test_what_a_run_would_refuse_before_the_policy_is_denied_with_its_own_code(
    policy: Policy, tool: str, raw: str
) -> None:
    decision = explain_call(policy, tools_without_a_run(), tool, raw)
    if tool == "x__y" and raw == '{"path": 1}':
        assert decision.code != "arguments"  # nobody knows its schema here
    else:
        assert (decision.effect, decision.code) == ("deny", "arguments")
