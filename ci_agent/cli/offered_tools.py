"""`--tools`: which tools a run offers."""

import click

from ci_agent.spelling import did_you_mean
from ci_agent.tools.table import TOOL_NAMES


def tool_names(text: str | None) -> tuple[str, ...] | None:
    """The tools that are named; None: the flag was not given. Raises BadParameter for one that is not there."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        problem = "it names no tool: leave it out to offer all that the policy can allow, or take the policy deny-all"
        raise click.BadParameter(problem, param_hint="--tools")
    for name in names:
        if name not in TOOL_NAMES:
            hint = did_you_mean(name, TOOL_NAMES)
            raise click.BadParameter(
                f"there is no tool {name!r}{hint} (tools: {', '.join(TOOL_NAMES)})", param_hint="--tools"
            )
    return names
