"""Short names for what tests of the policy do most."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from ci_agent.hooks import Decision
from ci_agent.policy.decide import Policy

MakePolicy: TypeAlias = Callable[..., Policy]
"""The fixture `policy`: rules in YAML become a policy for the fixture `workspace`."""

Put: TypeAlias = Callable[..., Path]
"""The fixture `put`."""


def bash(policy: Policy, command: str) -> Decision:
    return policy.decide("bash", {"command": command})
