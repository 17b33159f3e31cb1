"""`ci-agent doctor`: whether a run would start here, and what is missing."""

from dataclasses import asdict
from typing import Any

import click

from ci_agent.cli.model_options import model_options, read_model_settings
from ci_agent.cli.options import echo_json, format_option, given_environment, option
from ci_agent.cli.task_options import task_options
from ci_agent.readiness import Wanted, check_readiness, would_start
from ci_agent.terminal import printable

EXIT_CONFIGURATION = 3


@click.command(
    "doctor",
    epilog="""\b
Examples:
  ci-agent doctor --policy review --model anthropic:claude-sonnet-5
  ci-agent doctor --task tasks/review.yaml --offline
""",
)
@task_options
@option("--policy", metavar="NAME|FILE", help="A shipped policy's name, or a policy file.")
@model_options
@option("--workspace", metavar="DIR", default=".", show_default=True, help="The folder that tools may touch.")
@click.option("--offline", is_flag=True, help="Connect to nothing.")
@format_option
def doctor_command(**flags: Any) -> int:
    """Say what is ready for a run and what is missing. Exits 0 only when it would start, else 3.

    Keys are looked for and never shown. Unless --offline, the model's server is connected to, and asked nothing.
    """
    wanted = Wanted(
        flags["policy"],
        flags["model"],
        flags["workspace"],
        read_model_settings(flags),
        given_environment(),
        offline=flags["offline"],
    )
    checks = []
    for check in check_readiness(wanted):
        checks.append(check)
        if flags["output_format"] == "text":
            click.echo(f"{check.status:<8} {check.name:<11} {printable(check.text)}")
    if flags["output_format"] == "json":
        echo_json({"ready": would_start(checks), "checks": [asdict(check) for check in checks]})
    else:
        click.echo("A run would start." if would_start(checks) else "A run would not start: see what is missing.")
    return 0 if would_start(checks) else EXIT_CONFIGURATION
