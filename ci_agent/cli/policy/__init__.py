"""`ci-agent policy` and the table of its commands."""

import click

from ci_agent.cli.lazy import CommandTable, LazyGroup

COMMANDS: CommandTable = {
    "check": ("ci_agent.cli.policy.check:check_command", "Load, lint and test policies."),
    "test": ("ci_agent.cli.policy.test:test_command", "Try tests, examples and hostile variants of them."),
    "explain": ("ci_agent.cli.policy.explain:explain_command", "Decide a call and say why."),
    "replay": ("ci_agent.cli.policy.replay:replay_command", "Decide recorded calls under another policy."),
    "suggest": ("ci_agent.cli.policy.suggest:suggest_command", "Propose rules for the denials of transcripts."),
    "schema": ("ci_agent.cli.policy.shipped:schema_command", "Print the JSON Schema of a policy file."),
    "list": ("ci_agent.cli.policy.shipped:list_command", "Name the shipped policies."),
    "show": ("ci_agent.cli.policy.shipped:show_command", "Print a shipped policy."),
}


@click.group("policy", cls=LazyGroup, table=COMMANDS)
def policy_command() -> None:
    """Check, test, explain and improve policies."""
