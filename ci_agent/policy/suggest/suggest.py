"""Denied calls in, the narrowest rules that would allow them out, each with its evidence and what comes with it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.hooks import DecisionCode
from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.recorded import RecordedAnswer, RecordedCall
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.lint.finding import LintFinding, Witness
from ci_agent.policy.lint.lint import lint_policy
from ci_agent.policy.own_tests import Decide
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.policy.suggest.extensions import Extension, fitting_extension
from ci_agent.policy.suggest.grouping import Proposal, group_rules
from ci_agent.policy.suggest.needs import NotSuggestedError, needed_rules
from ci_agent.policy.suggest.witnesses import other_calls
from ci_agent.policy.suggest.yaml_text import rule_yaml

_ID: Final = "suggested-"
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Suggestion:
    rule: Rule
    yaml: str
    """An item of `rules:`, ready to be pasted."""
    calls: tuple[RecordedCall, ...]
    """The denied calls that it is for, at least in part."""
    also_allows: tuple[Witness, ...]
    """Some of the other calls that the policy denies and would allow with the rule."""
    findings: tuple[LintFinding, ...]
    """What lint says of the policy with the rule in it, and does not say without."""


@dataclass(frozen=True, slots=True)
class NotSuggested:
    """A denied call for which no rule is proposed."""

    call: RecordedCall
    code: DecisionCode
    """Of the denial under the policy as it is now."""
    why: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    suggestions: tuple[Suggestion, ...]
    not_suggested: tuple[NotSuggested, ...]
    already_allowed: tuple[RecordedCall, ...]
    """Denied when they were recorded, allowed by the policy as it is now."""
    extension: Extension | None = None
    """A shipped policy that would do in place of rules."""


def suggest_rules(
    policy_of: Mapping[str, Policy], calls: Iterable[RecordedCall], schemas: Mapping[str, JsonObject]
) -> Suggestions:
    """Rules for the calls that were denied and still are, because nothing grants them.

    `policy_of`: the policy for each transcript, compiled for its workspace; all of the same source. `schemas`: those
    of all tools, for lint. A rule is proposed only after it has been read back by the loader and has allowed its calls.
    """
    draft = _Draft(policy_of)
    allowed: list[RecordedCall] = []
    for call in calls:
        if call.answer.effect == "deny":
            draft.take(call)
        elif draft.policy(call).decide(call.tool, call.arguments).effect == "allow":
            allowed.append(call)
    proposals = draft.proposals()
    while draft.refuse_what_is_still_denied(proposals):
        proposals = draft.proposals()
    suggestions = _suggestions(proposals, policy_of, schemas) if proposals else ()
    extension = fitting_extension(policy_of, [call for call, _ in draft.needs], allowed)
    return Suggestions(tuple(suggestions), tuple(draft.not_suggested), tuple(draft.already_allowed), extension)


def smallest_rules(policy: Policy, tool: str, arguments: JsonObject) -> tuple[str, ...]:
    """Items of `rules:` that together allow one denied call, and as little else as can be; empty when none are
    proposed: what is forbidden, protected or not understood is for a person to decide."""
    answer = RecordedAnswer("deny", "default", None, "")
    draft = _Draft({"": policy})
    draft.take(RecordedCall("", 1, tool, arguments, answer))
    proposals = draft.proposals()
    if not proposals or draft.refuse_what_is_still_denied(proposals):
        return ()
    return tuple(rule_yaml(proposal.rule) for proposal in proposals)


@dataclass(slots=True)
class _Draft:
    policy_of: Mapping[str, Policy]
    needs: list[tuple[RecordedCall, list[Rule]]] = field(default_factory=list)
    not_suggested: list[NotSuggested] = field(default_factory=list)
    already_allowed: list[RecordedCall] = field(default_factory=list)

    def policy(self, call: RecordedCall) -> Policy:
        return self.policy_of[call.transcript]

    def take(self, call: RecordedCall) -> None:
        decision = self.policy(call).decide(call.tool, call.arguments)
        if decision.effect == "allow":
            self._take_allowed(call)
        elif decision.code != "default":
            self.not_suggested.append(NotSuggested(call, decision.code, decision.reason))
        else:
            self._take_ungranted(call)

    def _take_allowed(self, call: RecordedCall) -> None:
        if call.answer.code == "limit":
            self.not_suggested.append(NotSuggested(call, "limit", call.answer.reason))
        else:
            self.already_allowed.append(call)

    def _take_ungranted(self, call: RecordedCall) -> None:
        try:
            rules = needed_rules(self.policy(call), call.tool, call.arguments)
            _read_back([replace(rule, id=f"{_ID}{number}") for number, rule in enumerate(rules)])
        except NotSuggestedError as error:
            self.not_suggested.append(NotSuggested(call, "default", str(error)))
        except ConfigurationError:
            self.not_suggested.append(NotSuggested(call, "default", "no rule can be written that spells it"))
        else:
            self.needs.append((call, rules))

    def proposals(self) -> list[Proposal]:
        """The needs of all calls, grouped; the rules have their ids."""
        calls_of: dict[str, tuple[Rule, list[RecordedCall]]] = {}
        for call, rules in self.needs:
            for rule in rules:
                calls_of.setdefault(repr(rule), (rule, []))[1].append(call)
        grouped = group_rules([Proposal(rule, tuple(calls)) for rule, calls in calls_of.values()])
        taken = {rule.id for policy in self.policy_of.values() for rule in policy.source.rules}
        return [_named(proposal, taken) for proposal in grouped]

    def refuse_what_is_still_denied(self, proposals: Sequence[Proposal]) -> bool:
        """Whether a call is denied even with all that is proposed; it is then not suggested any more."""
        wider = _extended(self.policy_of, _read_back([proposal.rule for proposal in proposals]))
        kept = []
        for call, needed in self.needs:
            decision = wider[call.transcript].decide(call.tool, call.arguments)
            if decision.effect == "allow":
                kept.append((call, needed))
            else:
                self.not_suggested.append(NotSuggested(call, decision.code, decision.reason))
        refused = len(kept) < len(self.needs)
        self.needs = kept
        return refused


def _extended(policy_of: Mapping[str, Policy], rules: Sequence[Rule]) -> dict[str, Policy]:
    """Each transcript's policy with more rules; compiled once for each workspace."""
    compiled: dict[Path, Policy] = {}
    for policy in policy_of.values():
        root = policy.site.workspace.root
        if root not in compiled:
            source = replace(policy.source, rules=(*policy.source.rules, *rules))
            compiled[root] = compile_policy(source, policy.site.workspace, around=policy.site.around)
    return {name: replace(compiled[policy.site.workspace.root], site=policy.site) for name, policy in policy_of.items()}


def _read_back(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules as the loader reads what is printed; ConfigurationError when it does not read the very same."""
    if not rules:
        return ()
    text = "\n".join(["policy: 1", "rules:", *map(rule_yaml, rules)])
    read = load_policy_source(text=text, known_tools=[tool for rule in rules for tool in rule.tools]).rules
    if [replace(rule, source="") for rule in read] != list(rules):
        raise ConfigurationError("a rule would be read back as another one")
    return read


def _named(proposal: Proposal, taken: set[str]) -> Proposal:
    """With an id that says what it is about; `taken` grows by it."""
    rule = proposal.rule
    about = rule.command[0][0] if rule.command else rule.tools[0]
    name = base = _ID + (_NOT_IN_IDS.sub("-", about.rpartition("/")[2]).strip("-.") or rule.tools[0])[:60]
    number = 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return replace(proposal, rule=replace(rule, id=name))


def _suggestions(
    proposals: Sequence[Proposal], policy_of: Mapping[str, Policy], schemas: Mapping[str, JsonObject]
) -> Iterator[Suggestion]:
    rules = _read_back([proposal.rule for proposal in proposals])
    wider = _extended(policy_of, rules)
    findings = _lint(next(iter(wider.values())), schemas)
    for proposal, rule in zip(proposals, rules, strict=True):
        where = proposal.calls[0].transcript
        yield Suggestion(
            rule=rule,
            yaml=rule_yaml(proposal.rule),
            calls=proposal.calls,
            also_allows=tuple(other_calls(proposal, rule, policy_of[where], wider[where])),
            findings=tuple(each for each in findings if each.rule_id == rule.id or f"{rule.id} " in each.message),
        )


def _lint(policy: Policy, schemas: Mapping[str, JsonObject]) -> list[LintFinding]:
    def compile_source(source: PolicySource) -> Decide:
        return compile_policy(source, policy.site.workspace, around=policy.site.around).decide

    return lint_policy(policy.source, compile_source, schemas)
