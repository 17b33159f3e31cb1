"""`ci-agent run`: flags to settings, one run, its record on stdout, its exit code."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

import click

from ci_agent.cancellation import CancelToken
from ci_agent.chosen_workspace import holds_home, refuse_whole_machine
from ci_agent.ci_services.environment import detect_ci
from ci_agent.ci_services.github_step import Published, action_hint, publish
from ci_agent.ci_services.log_sections import folded
from ci_agent.cli.help_groups import RUN_GROUPS, GroupedCommand
from ci_agent.cli.model_options import model_options
from ci_agent.cli.options import (
    POSITIVE,
    Count,
    OnceOption,
    VariableName,
    given_environment,
    option,
    read_config,
)
from ci_agent.cli.output import Outlets, RecordLines, amended, deliver, remove_earlier_proposals
from ci_agent.cli.pull_requests import refuse_flags_of_a_pull_request
from ci_agent.cli.refusals import PublishingCommand
from ci_agent.cli.schedule import Schedule, open_schedule, recover_killed, remove_old, save_state, schedule_options
from ci_agent.cli.streams import Log, stdout_problem
from ci_agent.cli.task_options import task_options
from ci_agent.cli.variables import misspelt_variables
from ci_agent.cli.wanted_run import read_wanted_run
from ci_agent.compose import create_redactor, run
from ci_agent.ending import untaken_proposals
from ci_agent.errors import CIAgentError, InternalError, system_refusal
from ci_agent.json_types import JsonObject
from ci_agent.process import open_processes
from ci_agent.progress import ProgressLines
from ci_agent.reports.failure import NOT_KEPT, failure_hints, render_failure
from ci_agent.reports.outcome import outcome_line
from ci_agent.reports.table import FORMATS
from ci_agent.run_settings import Observers, RunResult, RunSettings
from ci_agent.signals import cancel_on_signals
from ci_agent.terminal import inert_lines, printable
from ci_agent.transcript.redact import Redactor

COUNT = Count()
WHEN = click.Choice(["never", "all", "any"])

EPILOG = """\b
Examples:
  ci-agent run --policy read-only --model scripted:demo.yaml --output text "What does this project do?"
  git diff | ci-agent run --policy review --model scripted:demo.yaml --prompt-file -
  ci-agent run --task tasks/review.yaml --input base=origin/main -- src/*.py
"""


class _RunCommand(PublishingCommand, GroupedCommand):
    pass


@click.command("run", epilog=EPILOG, cls=_RunCommand, groups=RUN_GROUPS)
@click.argument("prompt", nargs=-1)
@task_options
@option("--prompt-file", metavar="FILE", help="Read the prompt from FILE; - reads stdin.")
@option("--context-file", metavar="FILE", multiple=True, help="Add FILE, marked as untrusted data. Repeatable.")
@option("--system-file", metavar="FILE", help="Replace the system prompt.")
@option("--append-system-file", once=True, metavar="FILE", help="Add to the system prompt.")
@option("--agents-md", is_flag=True, help="Add the workspace's AGENTS.md, marked as untrusted data.")
@option("--event-text", is_flag=True, help="Add what the event of a GitHub workflow says, marked as untrusted data.")
@option("--policy", once=True, metavar="NAME|FILE", required=True, help="A shipped policy's name, or a policy file.")
@model_options
@option("--trust-head", is_flag=True, help="Take task, policy and prompts from a pull request's checkout.")
@option(
    "--workspace",
    once=True,
    metavar="DIR",
    default=".",
    show_default=True,
    help="The folder that tools may touch; the whole machine only as --workspace /.",
)
@option("--tools", once=True, metavar="NAME,NAME", help="Offer these tools alone.")
@option("--max-turns", once=True, type=COUNT, help="Turns. [default: 100]")
@option("--max-tool-calls", once=True, type=COUNT, help="Tool calls. [default: 1000]")
@option("--max-tokens", once=True, type=COUNT, help="Tokens of the whole run, input and output.")
@option("--max-cost-usd", once=True, type=POSITIVE, metavar="USD", help="Cost of the whole run.")
@option("--timeout", once=True, type=POSITIVE, metavar="SECONDS", help="Wall clock of the whole run. [default: 3600]")
@option(
    "--tool-timeout",
    once=True,
    type=POSITIVE,
    metavar="SECONDS",
    help="Each tool call; one that asks for more gets this. [default: bash 120 and up to 600 if asked, others 30]",
)
@option(
    "--output-schema", once=True, metavar="FILE", help="The final answer must be JSON that satisfies this JSON Schema."
)
@option("--transcript", metavar="FILE", help="Write the record here; FILE.jsonl keeps the journal itself.")
@schedule_options
@option("--keep-journal", is_flag=True, help="Keep FILE.journal beside the transcript.")
@option("--spill-dir", metavar="DIR", help="Write the full output of commands here; made when it is missing.")
@option(
    "--output",
    type=click.Choice(["json", "jsonl", "text"]),
    help="What goes to stdout: json, the whole transcript; jsonl, its journal; text, the answer alone. [default: json]",
)
@option("--answer-file", metavar="FILE", help="Write the final answer here.")
@option(
    "--report",
    metavar="FORMAT=FILE",
    multiple=True,
    help=f"Write a report when the run has ended, or was refused: {', '.join(FORMATS)}. Repeatable.",
)
@option("--proposals", metavar="FILE", help="Let the model propose what the policy names, and write it here.")
@option(
    "--publish",
    type=click.Choice(get_args(Published)),
    multiple=True,
    help="Tell the step of a GitHub workflow: its outputs, summary and annotations. Repeatable.",
)
@option("--quiet", is_flag=True, help="Only warnings on success, loud on failure; stdout only if --output is given.")
@option("--verbose", is_flag=True, help="Show results and answers as they come.")
@option(
    "--fail-on-denied", once=True, type=WHEN, default="all", show_default=True, help="Exit 5 when calls were denied."
)
@option("--fail-on-error", once=True, type=WHEN, default="never", show_default=True, help="Exit 1 when calls failed.")
@option("--otel", is_flag=True, help="Send OpenTelemetry traces to where the OTEL_* variables say.")
@option("--replay-tools", is_flag=True, help="With --model replay:FILE, answer calls from the record.")
@option(
    "--fail-on-divergence",
    once=True,
    type=click.Choice(["never", "status", "any"]),
    default="never",
    show_default=True,
    help="With --model replay:FILE, exit 1 when calls ended otherwise, or with any other result.",
)
@option(
    "--sandbox",
    once=True,
    type=click.Choice(["auto", "required", "off"]),
    default="auto",
    show_default=True,
    help="Have the kernel hold commands to what they were allowed for, by Landlock or bubblewrap: if it can, or exit "
    "3, or not at all.",
)
@option(
    "--pass-env",
    type=VariableName(),
    metavar="NAME",
    multiple=True,
    help="Let commands have this variable. Repeatable.",
)
@option(
    "--secret-env",
    type=VariableName(),
    metavar="NAME",
    multiple=True,
    help="Redact the value of this variable. Repeatable.",
)
@option("--lock", once=True, metavar="FILE", help="Exit 8 at once when another run holds FILE.")
@click.option(
    "--config",
    cls=OnceOption,
    metavar="FILE",
    envvar="CI_AGENT_CONFIG",
    is_eager=True,
    expose_value=False,
    callback=read_config,
    help="Read options from a YAML file; flags and CI_AGENT_* variables come before it.",
)
def run_command(**flags: Any) -> int:
    """Run an agent on PROMPT under a policy, without asking anybody anything.

    With --task FILE the prompt, the policy and all else stand in the file, flags come before it, and the arguments are
    the files that its prompt is about.

    The log goes to stderr, the record of the run to stdout: `--output text` prints the answer in its place.

    Every option can also be given as a CI_AGENT_* variable (--max-turns: CI_AGENT_MAX_TURNS), one that is repeatable
    with one value a line. What the command line says of an option comes in place of its variable.
    """
    _look_around(flags)
    refuse_flags_of_a_pull_request(flags, given_environment())
    with open_schedule(flags, given_environment()) as schedule:
        return _scheduled_run(flags, schedule)


def _look_around(flags: Mapping[str, Any]) -> None:
    """Raise for what surrounds the command line and cannot be meant, and warn of what can hardly be."""
    refuse_whole_machine(flags["workspace"])
    warning = holds_home(flags["workspace"], given_environment())
    warnings = [] if warning is None else [warning]
    for problem, is_slip in misspelt_variables(click.get_current_context().command, given_environment()):
        if is_slip:
            raise click.UsageError(problem)
        warnings.append(problem)
    for text in warnings:
        click.echo(f"warning: {printable(text)}", err=True)


def _scheduled_run(flags: Mapping[str, Any], schedule: Schedule) -> int:
    wanted = read_wanted_run(flags, schedule)
    settings, outlets = wanted.settings, wanted.outlets
    remove_earlier_proposals(outlets)
    redactor = create_redactor(settings)
    log = _redacted(redactor, Log())
    untaken = untaken_proposals(settings) if flags["quiet"] else None  # else the run's first lines say so
    for problem in (*recover_killed(flags), *filter(None, [untaken])):
        log(f"warning: {printable(problem)}")
    cancel = CancelToken()
    record_lines = RecordLines(lambda: cancel.is_cancelled) if outlets.stdout == "jsonl" else None
    ci = detect_ci(settings.environment)
    with folded(log, ci.provider if ci and not flags["quiet"] else None):
        result = _run(settings, _observers(flags, log, record_lines, outlets), redactor, log, cancel)
    document = deliver(result, outlets, record_lines.problem if record_lines else None)
    document = amended(document, result, save_state(schedule, document, result.transcript_path))
    for problem in remove_old(flags):
        log(f"warning: {printable(problem)}")
    for problem in publish(flags["publish"], document, result.transcript_path, settings.environment, log):
        log(f"warning: {problem}")
    exit_code: int = document["result"]["exit_code"]
    if not flags["quiet"]:
        hints = _hints(document, result, settings.environment, outlets)
        log("\n".join([printable(outcome_line(document)), *hints]))
    elif exit_code:
        log(render_failure(document, result.transcript_path))
    return exit_code


def _hints(document: JsonObject, result: RunResult, environment: Mapping[str, str], outlets: Outlets) -> Iterator[str]:
    if document["result"]["exit_code"]:
        yield from failure_hints(document, result.transcript_path)
        hint = action_hint(document, environment)
        yield from [f"  {hint}"] if hint else []
    elif result.transcript_path is None and outlets.stdout == "text":
        yield f"  {NOT_KEPT}"


def _observers(
    flags: Mapping[str, Any], log: Callable[[str], None], record_lines: RecordLines | None, outlets: Outlets
) -> Observers:
    lines = ProgressLines(log, time.monotonic, verbose=flags["verbose"])
    return Observers(
        observe=_ignore if flags["quiet"] else lines,
        note=_ignore if flags["quiet"] else lines.note,
        record=record_lines or _ignore,
        delivery_problem=_delivery_problem(record_lines) if outlets.stdout else lambda: None,
    )


def _run(
    settings: RunSettings, observers: Observers, redactor: Redactor, log: Callable[[str], None], cancel: CancelToken
) -> RunResult:
    """One run as the process's own affair: its signals cancel it, and no descendant outlives it."""
    with (
        open_processes(adopt_orphans=True) as processes,
        cancel_on_signals(cancel, processes.kill_all, follow_parent=True) as signals,
    ):
        observers = replace(observers, received_signal=lambda: signals.received_signal)
        try:
            return run(settings, cancel=cancel, observers=observers, redactor=redactor, processes=processes)
        except CIAgentError:
            raise
        except Exception as bug:  # noqa: BLE001 - whatever it is, its traceback may hold secrets
            refusal = system_refusal(bug)
            if refusal is not None:
                raise refusal from None
            log(inert_lines(redactor.text(traceback.format_exc())))
            raise InternalError(f"internal error: {type(bug).__name__}; this is a bug, please report it") from None


def _delivery_problem(record_lines: RecordLines | None) -> Callable[[], str | None]:
    return lambda: (record_lines and record_lines.problem) or stdout_problem()


def _redacted(redactor: Redactor, log: Log) -> Callable[[str], None]:
    return lambda text: log(redactor.text(text))


def _ignore(_thing: object) -> None:
    pass
