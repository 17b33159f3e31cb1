"""The policy as the loop's hook: decides each call, and counts those that a rule limits."""

from collections import Counter

from ci_agent.hooks import BeforeToolCall, Decision, ProposedToolCall
from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import Policy
from ci_agent.policy.judging.decision import exhausted


class CallCounter:
    """Decides calls by a policy and counts, for each rule with `max_calls`, the calls that it has allowed.

    A call counts once for each such rule that a fact of it hangs on. A fact that a rule without `max_calls` grants
    too hangs on none of them; of several rules that count, the first by id is used until it is used up.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._limited = {rule.id: rule for rule in policy.source.rules if rule.max_calls is not None}
        self._counts: Counter[str] = Counter()

    def decide(self, tool: str, arguments: JsonObject) -> Decision:
        """The policy's decision, less the rules whose calls are used up. An allowed call is counted."""
        used_up = frozenset(key for key, rule in self._limited.items() if self._counts[key] >= (rule.max_calls or 0))
        decision = self._policy.decide(tool, arguments, exhausted=used_up)
        if decision.effect == "allow":
            self._counts.update(_granting(decision) & self._limited.keys())
        elif used_up and decision.code in ("default", "hazard"):
            return self._explained(decision, tool, arguments, used_up)
        return decision

    def _explained(self, decision: Decision, tool: str, arguments: JsonObject, used_up: frozenset[str]) -> Decision:
        """Say that calls are used up when that alone is what stands in the way."""
        without_limits = self._policy.decide(tool, arguments)
        spent = sorted(_granting(without_limits) & used_up)
        if without_limits.effect == "deny" or not spent:
            return decision
        return exhausted(self._limited[spent[0]], decision, self._policy.source.on_denied)


def create_before_tool_call(policy: Policy) -> BeforeToolCall:
    """The hook for one run. It is called for one call at a time, and its counts begin at zero."""
    counter = CallCounter(policy)

    def before_tool_call(call: ProposedToolCall) -> Decision:
        return counter.decide(call.tool.name, call.arguments)

    return before_tool_call


def _granting(decision: Decision) -> set[str]:
    return {fact.granted_by for fact in decision.facts if fact.granted_by is not None}
