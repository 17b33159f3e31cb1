"""Deriving the variants of a policy and trying them: what is allowed is a finding, unless it is granted on purpose."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ci_agent.hooks import Decision
from ci_agent.policy.decide import Policy
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.lint.finding import Witness, is_own
from ci_agent.policy.lint.samples import command_call
from ci_agent.policy.own_tests import describe_call
from ci_agent.policy.variants.arguments import argument_variants
from ci_agent.policy.variants.bases import Base, allowed_bases, forbidden_bases
from ci_agent.policy.variants.command_words import simple_commands, word_variants
from ci_agent.policy.variants.denies import deny_variants, forbidden_files
from ci_agent.policy.variants.options import levels_of, option_variants
from ci_agent.policy.variants.shell_text import text_variants
from ci_agent.policy.variants.tools import fetch_variants, file_variants, type_variants
from ci_agent.policy.variants.variant import Trick, Variant, choose_canary

Outcome: TypeAlias = Literal["denied", "granted", "allowed"]
"""`granted`: allowed, and a rule says so in plain words. `allowed`: it is, and none does."""

_MAX_LINES: Final = 6
"""Of the command lines that one rule grants, so many are made hostile as text: the tricks are the same for all."""


@dataclass(frozen=True, slots=True)
class VariantResult:
    base: Base
    trick: Trick
    call: Witness
    decision: Decision
    outcome: Outcome
    granted_by: str | None = None
    """Id of the rule that says so in plain words; None: the outcome is another one."""

    @property
    def problem(self) -> str | None:
        """What went wrong, in one line; None when nothing did."""
        if self.outcome != "allowed":
            return None
        hostile = describe_call(self.call.tool, self.call.arguments)
        base = describe_call(self.base.call.tool, self.base.call.arguments)
        verb = "forbids" if self.base.rule.effect == "deny" else "allows"
        return (
            f"expected deny, got allow by {self.decision.rule_id}: {hostile}; "
            f"made from {base}, which {self.base.rule.id} {verb}"
        )


def try_variants(policy: Policy) -> Iterator[VariantResult]:
    """Every variant of every call that the policy's own rules and tests name, each once, in the order of the file.

    A call that the policy itself does not decide as its author means it yields no variants: its test fails.
    """
    trial = _Trial(policy, choose_canary(policy.source))
    for base, variants in _derived(trial):
        for variant in variants:
            yield from trial.tried(base, variant)


@dataclass(slots=True)
class _Trial:
    policy: Policy
    canary: str
    calls: set[str] = field(default_factory=set)
    """Variants that have been tried."""
    lines: Counter[str] = field(default_factory=Counter)
    """How many command lines of each rule have been made hostile."""
    programs: set[tuple[str | None, ...]] = field(default_factory=set)
    """Rules with the programs and subcommands whose options have been tried."""

    def decide(self, call: Witness) -> Decision:
        return self.policy.decide(call.tool, call.arguments)

    def tried(self, base: Base, variant: Variant) -> Iterator[VariantResult]:
        key = json.dumps([variant.call.tool, variant.call.arguments], sort_keys=True)
        if key not in self.calls:
            self.calls.add(key)
            decision = self.decide(variant.call)
            granted_by = self._granted_by(variant, decision) if decision.effect == "allow" else None
            outcome: Outcome = "denied" if decision.effect == "deny" else "granted" if granted_by else "allowed"
            yield VariantResult(base, variant.trick, variant.call, decision, outcome, granted_by)

    def _granted_by(self, variant: Variant, decision: Decision) -> str | None:
        granting = {decision.rule_id, *(fact.granted_by for fact in decision.facts)}
        saying = [rule.id for rule in self.policy.source.rules if rule.id in granting and variant.says(rule)]
        if saying:
            return saying[0]
        plainly = None if variant.plain is None else self.decide(variant.plain)
        return plainly.rule_id if plainly is not None and plainly.effect == "allow" else None


def _derived(trial: _Trial) -> Iterator[tuple[Base, Iterable[Variant]]]:
    site = trial.policy.site
    allowed = [*allowed_bases(trial.policy)]
    for base in allowed:
        yield base, _variants(trial, base)
    commands = dict.fromkeys(words for base in allowed for words, _ in _granted_commands(trial, base.call))
    for rule in trial.policy.source.rules:
        if rule.effect == "deny" and is_own(rule):
            for base in forbidden_bases(trial.policy, rule):
                yield base, deny_variants(site, rule, base.call)
                yield base, forbidden_files(site, rule, commands)


def _variants(trial: _Trial, base: Base) -> Iterator[Variant]:
    site, call = trial.policy.site, base.call
    yield from type_variants(call)
    if base.rule.args or base.rule.only:
        yield from argument_variants(site, base.rule, call, trial.canary)
    if call.tool == "bash":
        yield from _command_variants(trial, base)
    elif call.tool in FILE_TOOLS:
        yield from file_variants(site, call, trial.canary)
    elif call.tool == "fetch":
        yield from fetch_variants(call, trial.canary)


def _command_variants(trial: _Trial, base: Base) -> Iterator[Variant]:
    trial.lines[base.rule.id] += 1
    if trial.lines[base.rule.id] <= _MAX_LINES:
        yield from text_variants(base.call.arguments["command"], trial.canary)
    for words, rule_id in _granted_commands(trial, base.call):
        yield from word_variants(trial.policy.site, words, trial.canary)
        program = (rule_id, words[0], *(level.parsed.profile.name for level in levels_of(words)))
        if program not in trial.programs:
            trial.programs.add(program)
            yield from option_variants(words, trial.canary)


def _granted_commands(trial: _Trial, call: Witness) -> Iterator[tuple[Sequence[str], str | None]]:
    """The simple commands of a line that are allowed by themselves too, each with the rule that grants it."""
    if call.tool == "bash":
        for words in simple_commands(trial.policy.site, str(call.arguments.get("command"))):
            decision = trial.decide(command_call(words))
            if decision.effect == "allow":
                yield words, decision.rule_id
