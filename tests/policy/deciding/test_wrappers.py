"""Wrappers that need no rule of their own: what reaches them must be granted all the same."""

import pytest
from policy_calls import MakePolicy

RULES = """
- {id: look, allow: bash, command: ["git status", "cat **"]}
"""


@pytest.mark.parametrize(
    "command",
    [
        "LD_PRELOAD=./x.so timeout; git status",
        "git status; LD_PRELOAD=./x.so nice",
        "PATH=. stdbuf -oL; git status",
        "env LD_PRELOAD=./x.so nice; git status",
        "LD_PRELOAD=./x.so timeout --help; git status",
    ],
)
def test_a_wrapper_that_starts_nothing_is_a_program_like_any_other(policy: MakePolicy, command: str) -> None:
    decision = policy(RULES).decide("bash", {"command": command})
    assert (decision.effect, decision.code) == ("deny", "default")


@pytest.mark.parametrize("command", ["timeout 5 cat < ../x", "nice cat < /etc/passwd", "nohup timeout 5 cat < ../x"])
def test_the_input_of_a_wrapper_is_the_input_of_what_it_starts(policy: MakePolicy, command: str) -> None:
    decision = policy(RULES).decide("bash", {"command": command})
    assert (decision.effect, decision.code) == ("deny", "default")
    assert decision.fact is not None
    assert decision.fact.kind == "read"


@pytest.mark.parametrize("command", ["timeout 5 cat < x", "nice nohup cat x", "timeout 5 git status"])
def test_a_granted_command_may_stand_behind_a_wrapper(policy: MakePolicy, command: str) -> None:
    assert policy(RULES).decide("bash", {"command": command}).effect == "allow"
