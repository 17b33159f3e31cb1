"""What a denial says to write instead, when nobody knows what a call would do; and that it then passes."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

_RULES = """
- {id: tools, allow: bash, command: ["{echo,cat,tee,mkdir,mktemp,git,helm,make} **"], paths: [".", "**"]}
- {id: files, allow: write, path: "build/**"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    put("README.md")
    subprocess.run(["git", "init", "-q"], cwd=workspace.root, check=True)
    return policy(_RULES)


@pytest.mark.parametrize(
    ("denied", "advice", "better"),
    [
        ('echo "v=1" >> "$GITHUB_OUTPUT"', "print the value instead", 'echo "v=1"'),
        ("echo hi | tee -a ${GITHUB_STEP_SUMMARY}", "print the value instead", "echo hi"),
        ("t=$(mktemp); echo a > $t", "in place of what mktemp prints", "mkdir -p build && echo a > build/t"),
        ('t=$(git describe --tags); git log "$t..HEAD"', "begin the revision with refs/tags/",
         't=$(git describe --tags); git log "refs/tags/$t..HEAD" --'),
        ('cat "$X"', "Spell the value", "cat README.md"),
        ('make "$X"', "Spell the value", "make all"),
        ("n=$(cat README.md); echo $((n + 1))", "let awk calculate", "echo $((1 + 1))"),
    ],
)  # fmt: skip
def test_a_denial_says_what_to_write_and_that_passes(decided: Policy, denied: str, advice: str, better: str) -> None:
    decision = decided.decide("bash", {"command": denied})
    assert decision.effect == "deny"
    assert advice in decision.reason
    assert decided.decide("bash", {"command": better}).effect == "allow"


def test_the_command_that_doubts_an_option_is_called_as_it_was_written(decided: Policy) -> None:
    reason = decided.decide("bash", {"command": 'helm template "$X"'}).reason
    assert '"$X" may be an option of helm template' in reason
