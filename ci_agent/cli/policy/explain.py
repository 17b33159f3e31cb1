"""`ci-agent policy explain`: calls decided as in a run, with what they would do."""

import json
from collections.abc import Iterator, Mapping

import click

from ci_agent.cli.options import EXIT_NEGATIVE, echo_json, format_option, policy_option, workspace_option
from ci_agent.errors import InvalidFileError
from ci_agent.explain import explain_call
from ci_agent.hooks import Decision
from ci_agent.json_types import parse_json
from ci_agent.policy.decide import Policy
from ci_agent.ready_policy import load_policy
from ci_agent.reports.decision import render_decision
from ci_agent.text_files import read_text_file
from ci_agent.tool import Tool
from ci_agent.tools.table import tools_without_a_run
from ci_agent.transcript.as_json import decision_json


@click.command(
    "explain",
    epilog="""\b
Examples:
  ci-agent policy explain --policy review --tool bash --args '{"command": "git push"}'
  ci-agent policy explain --policy review --calls calls.jsonl --format json
""",
)
@policy_option
@click.option("--tool", metavar="NAME", help="The tool of the call.")
@click.option("--args", "arguments", metavar="JSON", help="The call's arguments, a JSON object.")
@click.option("--calls", metavar="FILE", help='Decide a call a line: {"tool": ..., "args": ...}')
@click.option("--expect", type=click.Choice(["allow", "deny"]), help="Exit 1 when the decision is another one.")
@workspace_option
@format_option
def explain_command(  # noqa: PLR0913, PLR0917 - one for each option
    policy_name: str,
    tool: str | None,
    arguments: str | None,
    calls: str | None,
    expect: str | None,
    workspace: str,
    output_format: str,
) -> int:
    """Decide a call as in a run, and say why. Nothing is executed.

    Prints every effect that the call would have, with the rule that grants or forbids it.
    """
    if (calls is None) == (tool is None or arguments is None):
        raise click.UsageError("Give --tool and --args for one call, or --calls for a file of them.")
    policy = load_policy(policy_name, workspace=workspace)
    tools = tools_without_a_run()
    if calls is None:
        decisions = [explain_call(policy, tools, tool or "", arguments or "")]
    else:
        decisions = list(_decide_calls(policy, tools, calls))
    for decision in decisions:
        _show(decision, output_format, one_line=calls is not None)
    return EXIT_NEGATIVE if expect and any(decision.effect != expect for decision in decisions) else 0


def _decide_calls(policy: Policy, tools: Mapping[str, Tool], file: str) -> Iterator[Decision]:
    for number, line in enumerate(read_text_file(file, "calls file").splitlines(), 1):
        if line.strip():
            name, raw_arguments = _read_call(file, number, line)
            yield explain_call(policy, tools, name, raw_arguments)


def _read_call(file: str, number: int, line: str) -> tuple[str, str]:
    try:
        call = parse_json(line)
    except ValueError as error:
        raise InvalidFileError(file, number, 1, f"the line is not JSON: {error}") from error
    if not isinstance(call, dict) or call.keys() != {"tool", "args"} or not isinstance(call["tool"], str):
        raise InvalidFileError(file, number, 1, 'a call is written {"tool": NAME, "args": {...}}')
    return call["tool"], json.dumps(call["args"])


def _show(decision: Decision, output_format: str, *, one_line: bool) -> None:
    if output_format == "json":
        echo_json(decision_json(decision), indent=None if one_line else 2)
    else:
        click.echo(f"{decision.effect}  {decision.reason}" if one_line else render_decision(decision))
