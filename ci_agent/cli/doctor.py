"""`ci-agent doctor`: whether a run would start here, and what is missing."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from ci_agent.cancellation import CancelToken
from ci_agent.cli.destinations import find_destination
from ci_agent.cli.help_groups import RUN_GROUPS, GroupedCommand
from ci_agent.cli.model_options import read_model_settings
from ci_agent.cli.options import echo_json, format_option, given_environment
from ci_agent.cli.pull_requests import refuse_flags_of_a_pull_request
from ci_agent.cli.run import run_command
from ci_agent.cli.schedule import look_at_schedule
from ci_agent.cli.variables import misspelt_variables
from ci_agent.cli.wanted_run import read_wanted_run
from ci_agent.ending import untaken_proposals
from ci_agent.errors import CIAgentError, ConfigurationError
from ci_agent.process import open_processes
from ci_agent.readiness import Check, Wanted, check_readiness, would_start
from ci_agent.run_precautions import look_at_start
from ci_agent.terminal import printable

_SHOWN: Final = frozenset(
    {
        *("prompt", "task", "inputs", "input_files", "policy", "model", "fallback_model", "base_url", "api_key_file"),
        *("models_file", "ca_file", "allow_http", "trust_head", "workspace", "transcript", "sandbox", "config"),
    }
)
"""Parameters of `run` that decide whether it starts; the others are taken too, and left out of the help."""

_HELP: Final = {
    "task": "The task file of the run; PROMPT is then FILES.",
    "model": "The model that would be asked.",
    "transcript": "Where the record would go.",
    "trust_head": "A pull request's own task, policy and prompts would be taken.",
    "sandbox": "The sandbox that the run would have: any, one for certain, or none.",
}
"""Where what `run` says of an option is not what it means here."""

_ANY_PROMPT: Final = ("What is here?",)


def _parameters_of_run() -> Iterator[click.Parameter]:
    """So that the command line of a run, its config file and its variables can be looked at as they are."""
    for parameter in run_command.params:
        own = copy.copy(parameter)
        own.required = False
        if isinstance(own, click.Option):
            own.hidden = own.name not in _SHOWN
            own.help = _HELP.get(own.name or "", own.help)
        yield own


@click.command(
    "doctor",
    cls=GroupedCommand,
    groups={"This command": ("--offline", "--format"), **RUN_GROUPS},
    params=list(_parameters_of_run()),
    epilog="""\b
Examples:
  ci-agent doctor --policy review --model anthropic:claude-sonnet-5
  ci-agent doctor --task tasks/review.yaml --offline
""",
)
@click.option("--offline", is_flag=True, help="Connect to nothing.")
@format_option
def doctor_command(**flags: Any) -> int:
    """Say what is ready for a run and what is missing. Exits 0 only when it would start, else 3.

    Write it in the place of `run`: it takes all options of `run`, those that are not shown here too.

    Keys are looked for and never shown. Unless --offline, the model's server is connected to, and asked nothing.
    """
    checks = []
    for check in _checks(flags):
        checks.append(check)
        if flags["output_format"] == "text":
            click.echo(f"{check.status:<8} {check.name:<11} {printable(check.text)}")
    if flags["output_format"] == "json":
        echo_json({"ready": would_start(checks), "checks": [asdict(check) for check in checks]})
    else:
        click.echo("A run would start." if would_start(checks) else "A run would not start: see what is missing.")
    return 0 if would_start(checks) else ConfigurationError.exit_code


def _checks(flags: Mapping[str, Any]) -> Iterator[Check]:
    for problem, is_slip in misspelt_variables(run_command, given_environment()):
        yield Check("variable", "missing" if is_slip else "warning", problem)
    wanted = Wanted(
        flags["policy"],
        flags["model"],
        flags["workspace"],
        read_model_settings(flags),
        given_environment(),
        offline=flags["offline"],
        sandbox=flags["sandbox"],
    )
    told: list[str] = []
    for check in check_readiness(wanted):
        told += [check.text] if check.status == "missing" else []
        yield check
    if flags["policy"] and flags["model"]:
        yield from (check for check in _rehearsal(flags) if not any(text in check.text for text in told))


def _rehearsal(flags: Mapping[str, Any]) -> Iterator[Check]:
    """All that a run looks at between its command line and its first record, in the same way."""
    has_prompt = flags["prompt"] or flags["prompt_file"] or flags["task"]
    try:
        refuse_flags_of_a_pull_request(flags, given_environment())
        schedule = look_at_schedule(flags, given_environment())
        asked = flags if has_prompt else {**flags, "prompt": _ANY_PROMPT}
        settings = read_wanted_run(asked, schedule).settings
        if flags["transcript"] is not None:
            find_destination(Path(flags["transcript"]), "transcript")
        for warning in filter(None, [untaken_proposals(settings)]):
            yield Check("proposals", "warning", warning)
        with open_processes() as processes:
            for warning in look_at_start(settings, processes, CancelToken()):
                yield Check("place", "warning", warning)
    except CIAgentError as error:
        yield Check("run", "missing", str(error))
    except click.ClickException as error:
        yield Check("run", "missing", error.format_message())
