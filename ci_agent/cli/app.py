"""The `ci-agent` command and the table of its subcommands, each imported when it is called."""

import click

from ci_agent import __version__
from ci_agent.cli.lazy import CommandTable, LazyGroup

COMMANDS: CommandTable = {
    "run": ("ci_agent.cli.run:run_command", "Run an agent on a task under a policy."),
    "apply": ("ci_agent.cli.apply:apply_command", "Apply what a run has proposed, in a job without a model."),
    "policy": ("ci_agent.cli.policy:policy_command", "Check, test, explain and improve policies."),
    "task": ("ci_agent.cli.task:task_command", "Check task files, and describe their format."),
    "init": ("ci_agent.cli.init:init_command", "Write a starter policy, task and workflow."),
    "doctor": ("ci_agent.cli.doctor:doctor_command", "Say what is ready for a run, and what is missing."),
    "pre-commit": ("ci_agent.cli.pre_commit:pre_commit_command", "Run a task over changed files, as a hook."),
    "report": ("ci_agent.cli.report:report_command", "Render a transcript."),
    "diff": ("ci_agent.cli.diff:diff_command", "Compare two transcripts of the same task."),
    "transcript": ("ci_agent.cli.transcript:transcript_command", "Verify, recover or describe transcripts."),
    "models": ("ci_agent.cli.models:models_command", "List the models that are known, with limits and prices."),
    "tools": ("ci_agent.cli.tools:tools_command", "List the built-in tools."),
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: ci-agent run --policy read-only --model scripted:demo.yaml 'What does this project do?'",
)
@click.version_option(__version__, "-V", "--version", message="ci-agent %(version)s")
def cli() -> None:
    """The agent for where nobody watches.

    A policy decides on every tool call, the run always ends, and everything attempted is on record.
    """
