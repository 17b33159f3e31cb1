"""A shipped policy that would allow what was denied: one line in place of many rules, and wider than they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ci_agent.policy.checks.recorded import RecordedCall
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.file.shipped import shipped_policy_names
from ci_agent.policy.rules import PolicySource, Rule

MIN_CALLS: Final = 3
"""For fewer calls their own rules say more plainly what is granted."""


@dataclass(frozen=True, slots=True)
class Extension:
    policy: str
    """The name for `extends`."""
    calls: tuple[RecordedCall, ...]
    """The denied calls that it would allow."""


def fitting_extension(
    policy_of: Mapping[str, Policy], denied: Sequence[RecordedCall], allowed: Sequence[RecordedCall]
) -> Extension | None:
    """The smallest shipped policy that allows the most of the denied calls, and forbids none that are allowed.

    None: there is none that allows three or more.
    """
    if len(denied) < MIN_CALLS:
        return None
    best: Extension | None = None
    for name, rules in sorted(_others(next(iter(policy_of.values())).source), key=lambda each: len(each[1])):
        wider = {transcript: _with(policy, rules) for transcript, policy in policy_of.items()}
        helped = tuple(call for call in denied if _allows(wider, call))
        is_better = len(helped) >= MIN_CALLS and (best is None or len(helped) > len(best.calls))
        if is_better and all(_allows(wider, call) for call in allowed):
            best = Extension(name, helped)
    return best


def _others(source: PolicySource) -> list[tuple[str, list[Rule]]]:
    """The shipped policies that it does not extend, with their rules as they are inherited."""
    taken = {rule.id.rpartition("/")[0] for rule in source.rules} | {source.name}
    return [
        (name, [replace(rule, id=f"{name}/{rule.id}") for rule in load_policy_source(name).rules])
        for name in shipped_policy_names()
        if not any(name in each.split("/") for each in taken)
    ]


def _with(policy: Policy, rules: Sequence[Rule]) -> Policy:
    source = replace(policy.source, rules=(*policy.source.rules, *rules))
    return replace(
        compile_policy(source, policy.site.workspace, around=policy.site.around),
        site=policy.site,
    )


def _allows(policy_of: Mapping[str, Policy], call: RecordedCall) -> bool:
    return policy_of[call.transcript].decide(call.tool, call.arguments).effect == "allow"
