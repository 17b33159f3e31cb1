"""The `ci-agent` command and the table of its subcommands, each imported when it is called."""

import importlib

import click

from ci_agent import __version__

COMMANDS = {
    "run": ("ci_agent.cli.run:run_command", "Run an agent on a task under a policy."),
    "policy": ("ci_agent.cli.policy:policy_command", "Check and explain policies."),
    "report": ("ci_agent.cli.report:report_command", "Render a transcript."),
    "transcript": ("ci_agent.cli.transcript:transcript_command", "Verify, recover or describe transcripts."),
    "tools": ("ci_agent.cli.tools:tools_command", "List the built-in tools."),
}


class LazyGroup(click.Group):
    """Imports a subcommand's module when it is used; the list of commands needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - the table above is ours; a test walks it
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: ci-agent run --policy read-only --model scripted:demo.yaml 'What does this project do?'",
)
@click.version_option(__version__, message="ci-agent %(version)s")
def cli() -> None:
    """The agent for where nobody watches.

    A policy decides on every tool call, the run always ends, and everything attempted is on record.
    """
