"""A call decided as in a run, without running it: schema first, then the policy."""

from collections.abc import Collection, Mapping

from ci_agent.agent.arguments import InvalidArgumentsError, read_arguments
from ci_agent.agent.prepare import not_offered
from ci_agent.hooks import Decision
from ci_agent.json_types import parse_json
from ci_agent.policy.decide import Policy
from ci_agent.tool import Tool


def explain_call(
    policy: Policy, tools: Mapping[str, Tool], name: str, raw_arguments: str, offered: Collection[str] | None = None
) -> Decision:
    """The decision on a call whose arguments are JSON text, as a model would send them.

    Arguments that a run would refuse before it asks the policy are denied with code `arguments`; those of a tool
    that is not among `tools` are taken as they are. `offered`: the tools of the run; None: all.
    """
    try:
        arguments = read_arguments(tools[name], raw_arguments) if name in tools else parse_json(raw_arguments)
    except InvalidArgumentsError as error:
        return Decision(effect="deny", code="arguments", reason=str(error))
    except ValueError as error:
        return Decision(effect="deny", code="arguments", reason=f"The arguments are not valid JSON: {error}.")
    if not isinstance(arguments, dict):
        return Decision(effect="deny", code="arguments", reason="The arguments must be one JSON object.")
    decision = policy.decide(name, arguments)
    if decision.effect == "allow" and offered is not None and name in tools and name not in offered:
        return not_offered(name, offered)
    return decision
