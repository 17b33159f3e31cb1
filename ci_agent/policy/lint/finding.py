"""What lint reports, and what it looks at to find it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.policy.own_tests import Decide
from ci_agent.policy.rules import PolicySource, Rule

Severity: TypeAlias = Literal["error", "warning"]
"""`error`: the rule cannot mean what it says. `warning`: it may be meant, and somebody should have thought of it."""

LintCode: TypeAlias = Literal[
    "unknown-tool",  # a tool of a server, and no server is configured
    "matches-nothing",  # no call that the tool's schema admits can pass a test of an argument
    "redundant",  # another rule grants the same already
    "shadowed",  # a deny rule forbids everything that the rule would grant
    "grants-everything",  # every command, every tool of every server, every host
    "runs-any-code",  # a wildcard on an interpreter, a shell or a launcher
    "narrow-deny",  # a deny rule that leaves open what it seems to forbid: further words, what is in a folder
    "no-word-boundary",  # `git*` is about gitk too
    "environment",  # a variable that makes programs run something else
    "edits-what-runs",  # one rule may write what another one runs
    "writes-repository",  # .git or the workflows of CI
    "trifecta",  # text that anybody may have written, secrets, and a way out
]


@dataclass(frozen=True, slots=True)
class Witness:
    """A call that shows what a finding says; the policy has decided it before the finding was reported."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class LintFinding:
    severity: Severity
    code: LintCode
    message: str
    """One line that begins with the rule's id."""
    rule_id: str
    source: str
    """`file:line` of the rule."""
    witness: Witness | None = None
    """None when the finding speaks of no call."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The policy that is looked at, with the means to ask what it would decide."""

    source: PolicySource
    decide: Decide
    decide_by: Callable[[Sequence[Rule]], Decide]
    """The decisions of a policy that consists of these rules alone."""
    schemas: Mapping[str, JsonObject]
    """Schemas of the arguments of all tools that are configured, by name."""
    is_folder: Callable[[str], bool]
    """Whether a path of the workspace is a folder that exists."""

    @property
    def own_rules(self) -> list[Rule]:
        """Those of the policy's own file; what a base says is found when the base is looked at."""
        return [rule for rule in self.source.rules if is_own(rule)]

    def rule(self, rule_id: str | None) -> Rule | None:
        return next((rule for rule in self.source.rules if rule.id == rule_id), None)

    def allows(self, witness: Witness) -> bool:
        return self.decide(witness.tool, witness.arguments).effect == "allow"

    def first_allowed(self, witnesses: Sequence[Witness]) -> Witness | None:
        return next((witness for witness in witnesses if self.allows(witness)), None)


def is_own(rule: Rule) -> bool:
    return "/" not in rule.id


def warning(code: LintCode, rule: Rule, message: str, witness: Witness | None = None) -> LintFinding:
    return LintFinding("warning", code, f"{rule.id}: {message}", rule.id, rule.source, witness)
