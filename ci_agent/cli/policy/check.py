"""`ci-agent policy check`: lint, tests and examples."""

import click

from ci_agent.cli.options import EXIT_NEGATIVE, echo_json, format_option, workspace_option
from ci_agent.compose import load_policy
from ci_agent.policy.checkup import check_policy
from ci_agent.reports.policy_check import check_json, render_check
from ci_agent.tools.table import tools_without_a_run


@click.command("check", epilog="Example: ci-agent policy check policies/*.yml")
@click.argument("policies", metavar="NAME|FILE...", nargs=-1, required=True)
@workspace_option
@format_option
def check_command(policies: tuple[str, ...], workspace: str, output_format: str) -> int:
    """Load each policy, look for what is odd in it, and try its own tests and examples.

    Exits 3 when a policy is invalid, 1 for a lint error or a failing test. Warnings alone are no failure.
    """
    schemas = {name: tool.parameters for name, tool in tools_without_a_run().items()}
    loaded = [load_policy(policy, workspace=workspace) for policy in policies]
    checked = [check_policy(policy.source, policy.site.workspace, policy.site.around, schemas) for policy in loaded]
    if output_format == "json":
        echo_json([check_json(policy) for policy in checked])
    else:
        click.echo("\n".join(render_check(policy) for policy in checked))
    return 0 if all(policy.passed for policy in checked) else EXIT_NEGATIVE
