"""A call made hostile, and what would show that a policy allows it on purpose."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.rules import PolicySource, Rule

Trick: TypeAlias = Literal[
    "another command",  # appended, piped into, substituted, or started by a launcher
    "redirection",
    "environment",  # a variable that makes programs run something else
    "hazard option",  # an option that runs, loads or writes something
    "path",  # out of the workspace, or to what is protected
    "look-alike path",
    "hidden character",
    "URL",
    "argument",  # one more, one less, or another type
    "other spelling",  # of what a deny rule forbids
]

RuleTest: TypeAlias = Callable[[Rule], bool]

_CANARY: Final = "ci-agent-canary"


def never(_rule: Rule) -> bool:
    """No rule can grant such a variant in plain words."""
    return False


@dataclass(frozen=True, slots=True)
class Variant:
    """A call with a trick in it. The policy must deny it, unless it grants in plain words what the trick is for."""

    trick: Trick
    call: Witness
    plain: Witness | None = None
    """The same effect without a trick: where the policy allows that, the variant shows nothing."""
    says: RuleTest = never
    """Whether a rule that grants the variant, or a part of it, says so in plain words."""


def choose_canary(source: PolicySource) -> str:
    """A name for programs, files, hosts and arguments that no rule mentions."""
    rules = repr(source.rules)
    name, number = _CANARY, 1
    while name in rules:
        number += 1
        name = f"{_CANARY}-{number}"
    return name
