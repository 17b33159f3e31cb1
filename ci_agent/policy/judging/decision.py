"""Verdicts become a decision: which one it hangs on, and what to say about it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ci_agent.hooks import Decision, DecisionCode, FactVerdict, NearestRule, OnDenied
from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.compiled.rule_index import strictest_first
from ci_agent.policy.describe import doing, kind_of, one_line, value_of
from ci_agent.policy.facts import ExecFact, Fact, FileFact, NetFact, ToolFact, UnknownFact
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.judging.advice import advice
from ci_agent.policy.judging.denials import Forbidden
from ci_agent.policy.judging.grants import Refusal
from ci_agent.policy.judging.judge import Call, Verdict, nearest
from ci_agent.policy.rules import Rule

KnownFact: TypeAlias = ExecFact | ToolFact | FileFact | NetFact

MAX_OTHERS: Final = 3
"""Further denied parts of a call that its reason names; how many more there are it says."""

MAX_FACTS: Final = 500
"""Facts that a decision lists; of a call with more, those that another rule grants or forbids are added."""


def decision_of(call: Call, verdicts: Sequence[Verdict], on_denied: OnDenied) -> Decision:
    """Allowed when every fact is granted and none is forbidden. A deny rule speaks first, then what is not known."""
    facts = _listed(verdicts)
    forbidden = [each for verdict in verdicts for each in verdict.forbidden]
    if forbidden:
        first = min(forbidden, key=lambda each: strictest_first(each.rule))
        return _and_others(_by_rule(first, facts), verdicts)
    unknown = next((verdict.fact for verdict in verdicts if isinstance(verdict.fact, UnknownFact)), None)
    if unknown is not None:
        decision = _and_others(_unknown(unknown, facts, on_denied), verdicts)
        return _advised(decision, advice(unknown, [verdict.fact for verdict in verdicts]))
    refused = next((verdict for verdict in verdicts if not verdict.holds), None)
    if refused is not None:
        others = [verdict for verdict in verdicts if verdict is not refused]
        return _and_others(_ungranted(call, refused.fact, facts, on_denied), others)
    granting = next((verdict.granted_by for verdict in verdicts if verdict.granted_by is not None), None)
    if granting is None:
        return denied("unparsable", "nothing would be run, so nothing can be allowed", on_denied, facts)
    return Decision(
        "allow",
        "rule",
        f"Allowed by policy rule {granting.id}.",
        rule_id=granting.id,
        source=granting.rule.source,
        facts=facts,
    )


def denied(code: DecisionCode, why: str, on_denied: OnDenied, facts: tuple[FactVerdict, ...] = ()) -> Decision:
    """A denial that hangs on no fact."""
    return Decision("deny", code, one_line(f"Blocked: {why}"), facts=facts, on_denied=on_denied)


def exhausted(rule: Rule, decision: Decision, on_denied: OnDenied) -> Decision:
    """The denial of a call that only this rule would allow, and its calls are used up."""
    calls = "1 call" if rule.max_calls == 1 else f"{rule.max_calls} calls"
    why = f"policy rule {rule.id} allows {calls}, and no more are left"
    return Decision(
        "deny",
        "limit",
        one_line(_with_advice(f"Blocked: {why}", rule)),
        rule_id=rule.id,
        source=rule.source,
        facts=decision.facts,
        because=rule.because,
        instead=rule.instead,
        on_denied=rule.on_denied or on_denied,
    )


def _by_rule(forbidden: Forbidden, facts: tuple[FactVerdict, ...]) -> Decision:
    rule, about = forbidden.rule, forbidden.about
    what = f"{doing(about)}{_way_out(forbidden.among)}"
    why = rule.rule.because or f"it forbids {what}"
    if rule.rule.because and (len(facts) > 1 or forbidden.among):
        why = f"{why.rstrip('.')} ({what})"
    return Decision(
        "deny",
        "rule",
        one_line(_with_advice(f"Blocked by policy rule {rule.id}: {why}", rule.rule)),
        rule_id=rule.id,
        source=rule.rule.source,
        fact=FactVerdict(kind_of(about), value_of(about), forbidden_by=rule.id),
        facts=facts,
        argument=_argument(about),
        span=_span(about),
        because=rule.rule.because,
        instead=rule.rule.instead,
        on_denied=rule.on_denied,
    )


def _way_out(among: FileFact | None) -> str:
    """Why a file that nobody named is meant, and how to leave it out: whatever a rule says, it cannot know that."""
    if among is None:
        return ""
    if among.selection.untracked or among.selection.unignored:
        certain = "" if among.selection.unignored else " for certain"
        return f", because git does not track it and nothing ignores it{certain}: name paths without it, as in -- src"
    if among.tracked and among.effect == "write":
        return ", because git tracks it and may change it: name paths without it, as in git restore -- src"
    if among.tracked:
        return ", because it is tracked: use --stat or --name-only, or name paths without it, as in -- src"
    narrower = " or leave it out" if among.effect == "read" else ""
    return f", because it lies beneath {among.shown}: name a folder without it{narrower}"


def _unknown(fact: UnknownFact, facts: tuple[FactVerdict, ...], on_denied: OnDenied) -> Decision:
    lead = "what this would do cannot be known: " if fact.code == "unparsable" else ""
    return Decision(
        "deny",
        fact.code,
        one_line(f"Blocked: {lead}{fact.why}"),
        fact=FactVerdict("unknown", value_of(fact)),
        facts=facts,
        argument=fact.argument,
        span=fact.span,
        on_denied=on_denied,
    )


def _ungranted(call: Call, fact: Fact, facts: tuple[FactVerdict, ...], on_denied: OnDenied) -> Decision:
    if isinstance(fact, UnknownFact):
        raise TypeError("what is not known is denied before what is not granted")
    found = nearest(call, fact)
    about = fact if found is None or found[1].about is None else found[1].about
    return Decision(
        "deny",
        found[1].code if found else "default",
        one_line(_no_grant(about, found)),
        fact=FactVerdict(kind_of(about), value_of(about)),
        facts=facts,
        argument=_argument(about),
        span=_span(about),
        nearest=found and NearestRule(found[0].id, found[0].rule.source, one_line(found[1].why)),
        instead=found[0].rule.instead if found else None,
        on_denied=on_denied,
    )


def _no_grant(about: KnownFact, found: tuple[CompiledRule, Refusal] | None) -> str:
    lead = f"Blocked: no policy rule allows {doing(about)}"
    if found is None:
        return lead
    rule, refusal = found
    return _with_advice(f"{lead}. The nearest, {rule.id}, does not fit: {refusal.why}", rule.rule)


def _and_others(decision: Decision, verdicts: Sequence[Verdict]) -> Decision:
    """The reason goes on with what else stands in the way, so that one answer is enough to mend the call."""
    said = decision.fact and (decision.fact.kind, decision.fact.value)
    parts = (part for part in _denied_parts(verdicts) if (kind_of(part), value_of(part)) != said)
    others = list(dict.fromkeys(_naming(part) for part in parts))
    if not others:
        return decision
    more = f", and {len(others) - MAX_OTHERS} more" if len(others) > MAX_OTHERS else ""
    reason = f"{decision.reason.rstrip('.')}. Also denied: {', '.join(others[:MAX_OTHERS])}{more}"
    return replace(decision, reason=one_line(reason))


def _denied_parts(verdicts: Sequence[Verdict]) -> Iterator[KnownFact | UnknownFact]:
    for verdict in verdicts:
        yield from (forbidden.about for forbidden in verdict.forbidden)
        if not verdict.forbidden and not verdict.holds:
            yield verdict.fact


def _naming(part: KnownFact | UnknownFact) -> str:
    return f"what cannot be known ({part.why})" if isinstance(part, UnknownFact) else doing(part)


def _advised(decision: Decision, sentence: str) -> Decision:
    return replace(decision, reason=one_line(f"{decision.reason}. {sentence}")) if sentence else decision


def _with_advice(reason: str, rule: Rule) -> str:
    return f"{reason.rstrip('.')}. Instead: {rule.instead}" if rule.instead else reason


def _listed(verdicts: Sequence[Verdict]) -> tuple[FactVerdict, ...]:
    """Each part once, with the rules that grant and forbid it."""
    kept: dict[tuple[str, str, str | None, str | None], None] = {}
    rules: set[str | None] = {None}
    for part, granted_by, forbidden_by in _parts(verdicts):
        if len(kept) < MAX_FACTS or not (granted_by in rules and forbidden_by in rules):
            kept[kind_of(part), value_of(part), granted_by, forbidden_by] = None
            rules.update((granted_by, forbidden_by))
    return tuple([FactVerdict(*each) for each in kept])


def _parts(verdicts: Sequence[Verdict]) -> Iterator[tuple[KnownFact | UnknownFact, str | None, str | None]]:
    for verdict in verdicts:
        granted_by = verdict.granted_by.id if verdict.granted_by else None
        if not verdict.forbidden:
            yield from [(part, granted_by, None) for part in _shown(verdict.fact)]
            continue
        forbidding = {id(each.about): each.rule.id for each in reversed(verdict.forbidden)}
        for part in _shown(verdict.fact):
            yield part, granted_by, forbidding.pop(id(part), None)
        # What is forbidden beneath a folder, or in a call that has no other facts.
        for each in verdict.forbidden:
            if id(each.about) in forbidding:
                yield each.about, None, forbidding.pop(id(each.about))


def _shown(fact: Fact) -> tuple[KnownFact | UnknownFact, ...]:
    """The fact with its parts; a file tool's call and a wrapper that needs no rule say nothing beside theirs."""
    if isinstance(fact, ExecFact):
        return (fact, *fact.files, *fact.requests) if fact.needs_rule else fact.files + fact.requests
    if isinstance(fact, ToolFact):
        parts = fact.files + fact.requests
        return parts if fact.name in FILE_TOOLS or fact.requests else (fact, *parts)
    return (fact,)


def _argument(about: KnownFact) -> str | None:
    if isinstance(about, ExecFact):
        return "command"
    return None if isinstance(about, ToolFact) else about.argument


def _span(about: KnownFact) -> tuple[int, int] | None:
    return None if isinstance(about, ToolFact) else about.span
