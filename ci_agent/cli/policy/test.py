"""`ci-agent policy test`: tests, examples and hostile variants."""

import click

from ci_agent.cli.options import format_option, workspace_option
from ci_agent.cli.policy.several import Examination, examine_each
from ci_agent.policy.checks.self_test import self_test
from ci_agent.reports.policy_test import render_self_test, self_test_json
from ci_agent.tools.table import tools_without_a_run


@click.command(
    "test",
    epilog="""\b
Examples:
  ci-agent policy test policy.yml
  ci-agent policy test --min-coverage 100 policies/*.yml
""",
)
@click.argument("policies", metavar="NAME|FILE...", nargs=-1, required=True)
@click.option(
    "--min-coverage",
    metavar="PERCENT",
    type=click.FloatRange(0, 100),
    help="Exit 1 when tests and examples exercise fewer of a file's own rules.",
)
@workspace_option
@format_option
def test_command(policies: tuple[str, ...], min_coverage: float | None, workspace: str, output_format: str) -> int:
    """Try each policy's tests and examples, and hostile variants of the calls that they allow or forbid.

    A variant is such a call with a trick in it: `; id` behind a command, a variable before it, an option that runs
    something, a path that climbs, a URL with a user name. It fails when it is allowed, unless the policy grants in
    plain words what the trick is for. Exits 1 for a failure, 3 when a policy is invalid; the others are tried all the
    same.
    """
    wanted_percent = min_coverage or 0
    schemas = {name: tool.parameters for name, tool in tools_without_a_run().items()}
    examination = Examination(
        lambda policy: self_test(policy, schemas),
        lambda tested: tested.passed and tested.coverage_percent >= wanted_percent,
        lambda tested: render_self_test(tested, min_coverage),
        self_test_json,
    )
    return examine_each(policies, workspace, output_format, examination)
