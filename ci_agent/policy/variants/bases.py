"""The calls that variants are made from: those that the policy decides as its author means them."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_agent.policy.decide import Policy
from ci_agent.policy.file.calls import example_calls
from ci_agent.policy.lint.finding import Witness, is_own
from ci_agent.policy.lint.samples import FILLING, command_call, sample_calls
from ci_agent.policy.rules import Rule
from ci_agent.policy.variants.denies import forbidden_samples


@dataclass(frozen=True, slots=True)
class Base:
    call: Witness
    rule: Rule
    """The rule that grants or forbids it."""
    source: str
    """`file:line` of the test or the rule that it comes from."""


def allowed_bases(policy: Policy) -> Iterator[Base]:
    """Allow tests and examples; for own rules that neither exercises, calls made from their patterns."""
    tests = [
        (Witness(test.tool, test.arguments), test.source) for test in policy.source.tests if test.effect == "allow"
    ]
    own = [rule for rule in policy.source.rules if rule.effect == "allow" and is_own(rule)]
    exercised: set[str | None] = set()
    for call, place in (*tests, *(each for rule in own for each in _examples(rule))):
        decision = policy.decide(call.tool, call.arguments)
        if decision.effect == "allow":
            exercised |= {decision.rule_id, *(fact.granted_by for fact in decision.facts)}
            yield Base(call, _rule(policy, decision.rule_id), place)
    for rule in own:
        if rule.id not in exercised:
            for sample in sample_calls(rule):
                # The pattern `**` names no program; any will do.
                call = command_call([FILLING]) if sample.arguments == {"command": ""} else sample
                decision = policy.decide(call.tool, call.arguments)
                if decision.effect == "allow":
                    yield Base(call, _rule(policy, decision.rule_id), rule.source)


def forbidden_bases(policy: Policy, rule: Rule) -> Iterator[Base]:
    """Tests, examples and samples that this deny rule decides."""
    tests = [(Witness(test.tool, test.arguments), test.source) for test in policy.source.tests]
    samples = [(call, rule.source) for call in forbidden_samples(rule)]
    for call, place in (*tests, *_examples(rule), *samples):
        decision = policy.decide(call.tool, call.arguments)
        if decision.effect == "deny" and decision.rule_id == rule.id:
            yield Base(call, rule, place)


def _examples(rule: Rule) -> Iterator[tuple[Witness, str]]:
    for example in rule.examples.match:
        for tool, arguments in example_calls(rule.tools, example):
            yield Witness(tool, arguments), rule.source


def _rule(policy: Policy, rule_id: str | None) -> Rule:
    return next(rule for rule in policy.source.rules if rule.id == rule_id)
