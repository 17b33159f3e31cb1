"""`ci-agent policy explain`: calls decided as in a run, with what they would do."""

import json
import shlex
from dataclasses import dataclass

import click

from ci_agent.call_summary import summarise_arguments
from ci_agent.cli.offered_tools import tool_names
from ci_agent.cli.options import (
    blamed_on,
    echo_json,
    format_option,
    policy_option,
    read_text_or_stdin,
    workspace_option,
)
from ci_agent.errors import EXIT_NEGATIVE
from ci_agent.explain import explain_call
from ci_agent.hooks import Decision
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.policy.decide import Policy
from ci_agent.policy.file.calls import BUILTIN_TOOLS, expand_call
from ci_agent.policy.file.consistency import require_tool
from ci_agent.policy.own_tests import describe_call
from ci_agent.policy.suggest import smallest_rules
from ci_agent.ready_policy import load_policy
from ci_agent.reports.decision import render_decision
from ci_agent.spelling import did_you_mean
from ci_agent.strict_yaml import Place, raise_problems
from ci_agent.terminal import printable, shortened
from ci_agent.tools.table import tools_without_a_run
from ci_agent.transcript.as_json import decision_json


@dataclass(frozen=True, slots=True)
class _Call:
    line: int
    """Where in the file of calls, counted from 1; 0: on the command line."""
    tool: str
    raw_arguments: str
    arguments: JsonObject


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
@click.option("--calls", metavar="FILE", help='Decide a call a line, {"tool": ..., "args": ...}; - is stdin.')
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
    Prints every effect that the call would have, with the rule that grants or forbids it. Exits 1 when the call can
    never be made, since its tool takes no such arguments, and 2 for a tool or arguments that are none: 3 where they
    stand in a file of calls.
    """
    if value is not None:
        tool, arguments = _of_value(value, tool, arguments, calls)
    of_a_file = calls is not None and tool is None and arguments is None
    of_one_call = calls is None and tool is not None and arguments is not None
    if not of_a_file and not of_one_call:
        raise click.UsageError("Give a command, or --tool and --args for one call, or --calls for a file of them.")
    with blamed_on("policy_name"):
        policy = load_policy(policy_name, workspace=workspace)
    known = tools_without_a_run()
    offered = tool_names(tools)
    if calls is None:
        call = _given_call(tool or "", arguments or "")
        decisions = [explain_call(policy, known, call.tool, call.raw_arguments, offered)]
        _show(call, decisions[0], output_format)
        if output_format == "text" and decisions[0].code == "default":
            _show_smallest_rules(policy, call)
    else:
        read = _read_calls(calls)
        decisions = [explain_call(policy, known, call.tool, call.raw_arguments, offered) for call in read]
        for call, decision in zip(read, decisions, strict=True):
            _show_line(call, decision, output_format)
    return 0 if all(_answers(decision, expect) for decision in decisions) else EXIT_NEGATIVE


def _answers(decision: Decision, expect: str | None) -> bool:
    """False for what is not expected, and for a call that can never be made: its denial says nothing of the policy."""
    return decision.code != "arguments" and expect in (None, decision.effect)


def _of_value(value: str, tool: str | None, arguments: str | None, calls: str | None) -> tuple[str, str]:
    """The tool, and its arguments as a model would send them."""
    if arguments is not None or calls is not None:
        raise click.UsageError("Give a bare value, or --args, or --calls: each of them says which call is meant.")
    name = tool or "bash"
    if name not in BUILTIN_TOOLS:
        hint = did_you_mean(name, BUILTIN_TOOLS) or ". Give --args."
        raise click.UsageError(f"A bare value stands for an argument of a built-in tool, and {name!r} is none{hint}")
    return name, json.dumps(expand_call(name, value))


def _given_call(tool: str, raw_arguments: str) -> _Call:
    """The one call of the command line; UsageError where no model could send anything of the kind."""
    try:
        require_tool(tool, BUILTIN_TOOLS)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tool") from error
    try:
        arguments = parse_json(raw_arguments)
    except ValueError as error:
        problem = f"; this is none: {error}" if raw_arguments.lstrip().startswith(("{", "[")) else ""
        raise _no_object(tool, raw_arguments, problem) from error
    if not isinstance(arguments, dict):
        raise _no_object(tool, raw_arguments, "")
    return _Call(0, tool, raw_arguments, arguments)


def _no_object(tool: str, given: str, problem: str) -> click.UsageError:
    """Who gives a mere word has forgotten the braces; they are shown."""
    key = {"bash": "command", "fetch": "url"}.get(tool, "path")
    word = "..." if given.lstrip().startswith(("{", "[")) else given[:100]
    example = printable(shlex.quote(shortened(json.dumps({key: word}), 100)))
    return click.UsageError(f"--args takes a JSON object, such as {example}{problem}")


def _read_calls(file: str) -> list[_Call]:
    """The calls of a file; InvalidFileError that names every line that is none."""
    calls: list[_Call] = []
    problems: list[tuple[Place, str]] = []
    for number, line in enumerate(read_text_or_stdin(file, "calls file").splitlines(), 1):
        if line.strip():
            try:
                calls.append(_read_call(number, line))
            except ValueError as error:
                problems.append((Place(number, 1), str(error)))
    raise_problems("<stdin>" if file == "-" else file, problems)
    return calls


def _read_call(number: int, line: str) -> _Call:
    try:
        call = parse_json(line)
    except ValueError as error:
        raise ValueError(f"the line is not JSON: {error}") from error
    if not isinstance(call, dict) or call.keys() != {"tool", "args"} or not _has_types(call["tool"], call["args"]):
        raise ValueError('a call is written {"tool": NAME, "args": {...}}')
    require_tool(call["tool"], BUILTIN_TOOLS)
    return _Call(number, call["tool"], json.dumps(call["args"]), call["args"])


def _has_types(tool: Json, arguments: Json) -> bool:
    return isinstance(tool, str) and isinstance(arguments, dict)


def _show(call: _Call, decision: Decision, output_format: str) -> None:
    if output_format == "json":
        echo_json(decision_json(decision))
        return
    if decision.code == "arguments":
        click.echo(printable(f"this call can never be made: {describe_call(call.tool, call.arguments)}"))
    click.echo(render_decision(decision))


def _show_smallest_rules(policy: Policy, call: _Call) -> None:
    rules = smallest_rules(policy, call.tool, call.arguments)
    if rules:
        click.echo("\n# as little as would allow it, to go beneath `rules:`\n" + "\n".join(rules))


def _show_line(call: _Call, decision: Decision, output_format: str) -> None:
    if output_format == "json":
        echo_json({**decision_json(decision), "line": call.line}, indent=None)
    else:
        shown = summarise_arguments(call.arguments, call.raw_arguments)
        click.echo(f"{call.line}  {printable(call.tool)}  {shown}  {decision.effect}  {printable(decision.reason)}")
