"""Every fact of a call held against the rules: who grants it, who forbids it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.compiled.reaching import file_refusal
from ci_agent.policy.compiled.rule_index import (
    MAX_NEAREST,
    RuleIndex,
    ToolRules,
    canonical_order,
    in_order,
    strictest_first,
)
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.facts import ExecFact, Fact, FileFact, ToolFact, UnknownFact
from ci_agent.policy.gathering.second_names import SecondNames
from ci_agent.policy.gathering.shell_facts import shell_facts
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS, tool_facts
from ci_agent.policy.judging.denials import Denials, Forbidden
from ci_agent.policy.judging.grants import Refusal, exec_refusal, redirect_refusal, tool_refusal
from ci_agent.policy.judging.judge_arguments import CallArguments

_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, and what it is decided by."""

    rules: RuleIndex
    arguments: CallArguments
    exhausted: frozenset[str] = frozenset()
    """Ids of allow rules that grant nothing any more."""

    @property
    def tool(self) -> str:
        return self.arguments.tool


class Verdict(NamedTuple):
    fact: Fact
    granted_by: CompiledRule | None
    forbidden: tuple[Forbidden, ...] = ()
    """Each part that a deny rule forbids, those first whose denial does most to the run."""

    @property
    def holds(self) -> bool:
        """Nothing stands in the way of this fact."""
        if self.forbidden:
            return False
        return self.granted_by is not None or (isinstance(self.fact, ExecFact) and not self.fact.needs_rule)


def judge(call: Call) -> list[Verdict]:
    """A verdict for each fact, in the order of the call; BoundExceededError when the disk holds too much to look at."""
    budget, site, arguments = DiskBudget(), call.arguments.site, call.arguments
    denials = Denials(call.rules, arguments, budget, SecondNames(site.workspace.root, budget))
    facts = (
        shell_facts(site, arguments.values, budget)
        if call.tool == "bash"
        else tool_facts(site, call.tool, arguments.values)
    )
    grants_any = bool(call.rules.for_tool(call.tool).allow)
    verdicts: dict[int, Verdict] = {}
    granting: dict[str, CompiledRule] = {}
    for fact in sorted(facts, key=lambda each: isinstance(each, FileFact)):
        rule = _granting_rule(call, fact, granting.values()) if grants_any else None
        if rule is not None and isinstance(fact, ExecFact):
            granting[rule.id] = rule
        forbidden = denials.of(fact)
        if len(forbidden) > 1:
            forbidden.sort(key=lambda each: strictest_first(each.rule))
        verdicts[id(fact)] = Verdict(fact, rule, tuple(forbidden))
    return [verdicts[id(fact)] for fact in facts]


def nearest(call: Call, fact: ExecFact | ToolFact | FileFact) -> tuple[CompiledRule, Refusal] | None:
    """The allow rule that came closest to granting a fact, and where it stopped matching; None where none is about
    the program that would run."""
    best: tuple[CompiledRule, Refusal] | None = None
    for rule in _worth_explaining(call, fact):
        refusal = _refusal(call, rule, fact)
        is_near = refusal is not None and (refusal.progress > 0 or not isinstance(fact, ExecFact))
        if refusal is not None and is_near and (best is None or refusal.progress > best[1].progress):
            best = (rule, refusal)
    return best


def _granting_rule(call: Call, fact: Fact, granting: Iterable[CompiledRule]) -> CompiledRule | None:
    if isinstance(fact, UnknownFact):
        return None
    for rule in _candidates(call, fact):
        if rule.id not in call.exhausted and _refusal(call, rule, fact) is None:
            return rule
    if isinstance(fact, FileFact) and fact.effect == "read":
        # The input of a group or a loop is within reach of the commands that it is for.
        reading = (rule for rule in granting if file_refusal(rule.reach or (), fact) is None)
        return min(reading, key=canonical_order, default=None)
    return None


def _refusal(call: Call, rule: CompiledRule, fact: ExecFact | ToolFact | FileFact) -> Refusal | None:
    if isinstance(fact, ExecFact):
        return exec_refusal(rule, fact, call.arguments)
    if isinstance(fact, ToolFact):
        return tool_refusal(rule, fact, call.arguments)
    return redirect_refusal(rule, fact)


def _candidates(call: Call, fact: ExecFact | ToolFact | FileFact) -> list[CompiledRule]:
    rules = call.rules.for_tool(_granting_tool(call, fact))
    if isinstance(fact, ExecFact):
        return _about_command(rules, fact)
    if isinstance(fact, FileFact):
        return _about_path(rules, fact)
    if fact.name in FILE_TOOLS:
        return _about_path(rules, fact.files[0])
    if fact.requests:
        return rules.hosts.candidates(fact.requests[0].url)
    return rules.arguments.candidates(fact.arguments)


def _about_command(rules: ToolRules, command: ExecFact) -> list[CompiledRule]:
    named = rules.programs.near(command)
    if len(named) > _FEW and command.files:
        # A rule must reach every file of the command. Where few reach the first, those few are all.
        near = list(islice(rules.paths.near(command.files[0].names), _FEW + 1))
        if len(near) <= _FEW:
            return in_order([rule for _, rule in near])
    return in_order(named)


def _about_path(rules: ToolRules, file: FileFact) -> list[CompiledRule]:
    return in_order([rule for _, rule in rules.paths.near(file.names)])


def _worth_explaining(call: Call, fact: ExecFact | ToolFact | FileFact) -> list[CompiledRule]:
    rules = call.rules.for_tool(_granting_tool(call, fact))
    if isinstance(fact, ExecFact):
        return [*rules.programs.candidates(fact), *rules.programs.about_program(fact)]
    return [*_candidates(call, fact), *rules.allow[:MAX_NEAREST]]


def _granting_tool(call: Call, fact: ExecFact | ToolFact | FileFact) -> str:
    if isinstance(fact, FileFact):
        return "read" if fact.effect == "read" else "write"
    return call.tool
