"""A decision for a person: the answer, what the call would do, and which rule says what about it."""

import shlex

from ci_agent.hooks import Decision, FactVerdict, NearestRule
from ci_agent.terminal import printable


def render_decision(decision: Decision) -> str:
    """Several lines: the effect with its code, each fact with its rule, the reason, the rule that came closest."""
    lines = [f"{decision.effect}  ({_decided_by(decision)})"]
    lines += _fact_table(decision.facts)
    if decision.effect == "deny":
        lines += [f"  {printable(line)}" for line in decision.reason.split("\n")]
    if decision.nearest is not None:
        lines.append(_nearest_line(decision.nearest, decision.reason))
    elif decision.code == "default" and decision.fact is not None and decision.fact.kind == "exec":
        lines.append(_missing_command(decision.fact.value))
    return "\n".join(lines)


def _missing_command(command: str) -> str:
    """No rule is about the program: what to write if it is wanted."""
    try:
        program = shlex.quote(shlex.split(command)[0])
    except (ValueError, IndexError):
        program = command.partition(" ")[0]
    return f"  to allow it: add {printable(f'`{program} **`')} to the commands of a rule that allows bash"


def _nearest_line(nearest: NearestRule, reason: str) -> str:
    """Where the rule stands; why it does not fit only when the reason has not said it."""
    why = "" if nearest.stopped_at in reason else f": {printable(nearest.stopped_at)}"
    return f"  nearest rule: {nearest.rule_id} ({nearest.source}){why}"


def _decided_by(decision: Decision) -> str:
    if decision.rule_id is None:
        return decision.code
    return f"{decision.code} {decision.rule_id}" + (f", {decision.source}" if decision.source else "")


def _fact_table(facts: tuple[FactVerdict, ...]) -> list[str]:
    width = max((len(fact.kind) for fact in facts), default=0)
    return [f"  {fact.kind:<{width}}  {printable(fact.value)}  {_verdict(fact)}" for fact in facts]


def _verdict(fact: FactVerdict) -> str:
    if fact.forbidden_by is not None:
        return f"forbidden by {fact.forbidden_by}"
    return f"granted by {fact.granted_by}" if fact.granted_by is not None else "not granted"
