"""`ci-agent policy check`: lint, tests and examples."""

import click

from ci_agent.cli.options import format_option, workspace_option
from ci_agent.cli.policy.several import Examination, examine_each
from ci_agent.policy.checks.checkup import CheckedPolicy, check_policy
from ci_agent.policy.decide import Policy
from ci_agent.reports.policy_check import check_json, render_check
from ci_agent.tools.table import tools_without_a_run


@click.command("check", epilog="Example: ci-agent policy check policies/*.yml")
@click.argument("policies", metavar="NAME|FILE...", nargs=-1, required=True)
@workspace_option
@format_option
def check_command(policies: tuple[str, ...], workspace: str, output_format: str) -> int:
    """Load each policy, look for what is odd in it, and try its own tests and examples.

    Exits 3 when a policy is invalid (the others are checked all the same), 1 for a lint error or a failing test.
    Warnings alone are no failure.
    """
    schemas = {name: tool.parameters for name, tool in tools_without_a_run().items()}

    def check(policy: Policy) -> CheckedPolicy:
        return check_policy(policy.source, policy.site.workspace, policy.site.around, schemas)

    examination = Examination(check, lambda checked: checked.passed, render_check, check_json)
    return examine_each(policies, workspace, output_format, examination)
