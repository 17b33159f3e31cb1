"""`ci-agent policy explain`: calls decided as in a run, with what they would do."""

import json
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import click

from ci_agent.call_summary import summarise_arguments
from ci_agent.cli.offered_tools import tool_names
from ci_agent.cli.options import blamed_on, echo_json, format_option, policy_option, workspace_option
from ci_agent.errors import EXIT_NEGATIVE
from ci_agent.explain import explain_call
from ci_agent.hooks import Decision
from ci_agent.json_types import Json, parse_json
from ci_agent.policy.decide import Policy
from ci_agent.policy.file.calls import BUILTIN_TOOLS, expand_call
from ci_agent.policy.suggest import smallest_rules
from ci_agent.ready_policy import load_policy
from ci_agent.reports.decision import render_decision
from ci_agent.spelling import did_you_mean, nearest
from ci_agent.strict_yaml import Place, raise_problems
from ci_agent.terminal import printable, shortened
from ci_agent.text_files import read_text_file
from ci_agent.tools.table import tools_without_a_run
from ci_agent.transcript.as_json import decision_json


@dataclass(frozen=True, slots=True)
class _Call:
    line: int
    """Where in the file of calls, counted from 1."""
    tool: str
    raw_arguments: str
    arguments: Json


@click.command(
    "explain",
    epilog="""\b
Examples:
  ci-agent policy explain --policy review 'git push'
  ci-agent policy explain --policy review --tool read .env
  ci-agent policy explain --policy review --tool bash --args '{"command": "git push"}'
  ci-agent policy explain --policy review --calls calls.jsonl --format json
""",
)
@policy_option
@click.argument("value", required=False)
@click.option("--tool", metavar="NAME", help="The tool of the call; with VALUE alone, bash.")
@click.option("--args", "arguments", metavar="JSON", help="The call's arguments, a JSON object.")
@click.option("--tools", metavar="NAME,NAME", help="As in a run that offers these tools alone.")
@click.option("--calls", metavar="FILE", help='Decide a call a line: {"tool": ..., "args": ...}')
@click.option("--expect", type=click.Choice(["allow", "deny"]), help="Exit 1 when the decision is another one.")
@workspace_option
@format_option
def explain_command(  # noqa: PLR0913, PLR0917 - one for each option
    policy_name: str,
    value: str | None,
    tool: str | None,
    arguments: str | None,
    tools: str | None,
    calls: str | None,
    expect: str | None,
    workspace: str,
    output_format: str,
) -> int:
    """Decide a call as in a run, and say why. Nothing is executed.

    VALUE stands for the command, path or url of the tool, as a bare value does in a policy's tests.
    Prints every effect that the call would have, with the rule that grants or forbids it.
    """
    if value is not None:
        tool, arguments = _of_value(value, tool, arguments, calls)
    if (calls is None) == (tool is None or arguments is None):
        raise click.UsageError("Give a command, or --tool and --args for one call, or --calls for a file of them.")
    with blamed_on("policy_name"):
        policy = load_policy(policy_name, workspace=workspace)
    known = tools_without_a_run()
    offered = tool_names(tools)
    if calls is None:
        _note_unknown([tool or ""], known)
        _refuse_word(tool or "", arguments or "")
        decisions = [explain_call(policy, known, tool or "", arguments or "", offered)]
        _show(decisions[0], output_format)
        if output_format == "text" and decisions[0].code == "default":
            _show_smallest_rules(policy, tool or "", arguments or "")
    else:
        read = _read_calls(calls)
        _note_unknown([call.tool for call in read], known)
        decisions = [explain_call(policy, known, call.tool, call.raw_arguments, offered) for call in read]
        for call, decision in zip(read, decisions, strict=True):
            _show_line(call, decision, output_format)
    return EXIT_NEGATIVE if expect and any(decision.effect != expect for decision in decisions) else 0


def _of_value(value: str, tool: str | None, arguments: str | None, calls: str | None) -> tuple[str, str]:
    """The tool, and its arguments as a model would send them."""
    if arguments is not None or calls is not None:
        raise click.UsageError("Give a bare value, or --args, or --calls: each of them says which call is meant.")
    name = tool or "bash"
    if name not in BUILTIN_TOOLS:
        hint = did_you_mean(name, BUILTIN_TOOLS) or ". Give --args."
        raise click.UsageError(f"A bare value stands for an argument of a built-in tool, and {name!r} is none{hint}")
    return name, json.dumps(expand_call(name, value))


def _note_unknown(names: Iterable[str], tools: Collection[str]) -> None:
    """A tool that is not built in may be one that is configured elsewhere, or a slip."""
    for name in dict.fromkeys(names):
        meant = None if name in tools else nearest(name, tools)
        if meant:
            click.echo(f"note: {printable(name)} is no built-in tool; did you mean {meant}?", err=True)


def _refuse_word(tool: str, arguments: str) -> None:
    """Broken JSON is decided as in a run; who gives a mere word has forgotten the braces."""
    if not arguments.lstrip().startswith(("{", "[")):
        key = {"bash": "command", "fetch": "url"}.get(tool, "path")
        meant = shortened(json.dumps({key: arguments[:100]}), 100)
        raise click.UsageError(f"--args takes a JSON object, such as {printable(shlex.quote(meant))}")


def _read_calls(file: str) -> list[_Call]:
    """The calls of a file; InvalidFileError that names every line that is none."""
    calls: list[_Call] = []
    problems: list[tuple[Place, str]] = []
    for number, line in enumerate(read_text_file(file, "calls file").splitlines(), 1):
        if line.strip():
            try:
                calls.append(_read_call(number, line))
            except ValueError as error:
                problems.append((Place(number, 1), str(error)))
    raise_problems(file, problems)
    return calls


def _read_call(number: int, line: str) -> _Call:
    try:
        call = parse_json(line)
    except ValueError as error:
        raise ValueError(f"the line is not JSON: {error}") from error
    if not isinstance(call, dict) or call.keys() != {"tool", "args"} or not isinstance(call["tool"], str):
        raise ValueError('a call is written {"tool": NAME, "args": {...}}')
    return _Call(number, call["tool"], json.dumps(call["args"]), call["args"])


def _show(decision: Decision, output_format: str) -> None:
    if output_format == "json":
        echo_json(decision_json(decision))
    else:
        click.echo(render_decision(decision))


def _show_smallest_rules(policy: Policy, tool: str, arguments: str) -> None:
    given = parse_json(arguments)
    rules = smallest_rules(policy, tool, given) if isinstance(given, dict) else ()
    if rules:
        click.echo("\n# as little as would allow it, to go beneath `rules:`\n" + "\n".join(rules))


def _show_line(call: _Call, decision: Decision, output_format: str) -> None:
    if output_format == "json":
        echo_json({**decision_json(decision), "line": call.line}, indent=None)
    else:
        shown = summarise_arguments(call.arguments, call.raw_arguments)
        click.echo(f"{call.line}  {printable(call.tool)}  {shown}  {decision.effect}  {printable(decision.reason)}")
