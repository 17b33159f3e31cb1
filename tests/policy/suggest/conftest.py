from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.recorded import RecordedAnswer, RecordedCall
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.policy.suggest import Suggestions, suggest_rules
from ci_agent.workspace import Workspace, open_workspace

Suggest: TypeAlias = Callable[..., Suggestions]
MakePolicy: TypeAlias = Callable[[str], Policy]

BASE = """
policy: 1
rules:
  - {id: git, allow: bash, command: git status}
  - {id: no-env, deny: [read, write], path: "**/.env"}
  - {id: no-push, deny: bash, command: git push **}
"""

SCHEMAS: dict[str, JsonObject] = {
    name: {"type": "object"} for name in ("read", "write", "edit", "grep", "find", "ls", "bash", "fetch")
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("work", "work/src", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "src" / "a.py").write_text("text\n")
    return open_workspace(tmp_path / "work")


@pytest.fixture
def policy(workspace: Workspace) -> MakePolicy:
    """A policy of this text in the workspace, beside a home folder."""
    around = Surroundings(home=workspace.root.parent / "home")
    return lambda text: compile_policy(load_policy_source(text=text), workspace, around=around)


@pytest.fixture
def suggest(policy: MakePolicy) -> Suggest:
    """`suggest({tool: call}, ...)`: what is suggested when these calls, written as in a policy, were denied.

    Every suggestion is pasted into the policy's text, and read by the loader: its calls are then allowed.
    """

    def run(*written: dict[str, Any], base: str = BASE) -> Suggestions:
        calls = []
        for seq, call in enumerate(written, 1):
            ((tool, value),) = call.items()
            arguments = value if isinstance(value, dict) else expand_call(tool, value)
            calls.append(RecordedCall("t.json", seq, tool, arguments, RecordedAnswer("deny", "default", None, "No.")))
        found = suggest_rules({"t.json": policy(base)}, calls, SCHEMAS)
        pasted = policy("\n".join([base.rstrip(), *(suggestion.yaml for suggestion in found.suggestions)]))
        helped = {call.seq for suggestion in found.suggestions for call in suggestion.calls}
        effects = {call.seq: pasted.decide(call.tool, call.arguments).effect for call in calls}
        assert {seq for seq, effect in effects.items() if effect == "allow"} == helped | {
            call.seq for call in found.already_allowed
        }
        assert {each.call.seq for each in found.not_suggested}.isdisjoint(helped)
        return found

    return run
