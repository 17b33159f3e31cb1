"""`ci-agent policy schema` and `list`: what comes with the package."""

import json

import click

from ci_agent.policy.document import policy_schema
from ci_agent.policy.shipped import shipped_policy_names
from ci_agent.ready_policy import load_policy


@click.command("schema", epilog="Example: ci-agent policy schema > policy.schema.json")
def schema_command() -> int:
    """Print the JSON Schema of a policy file, for editors that complete and check YAML."""
    click.echo(json.dumps(policy_schema(), indent=2))
    return 0


@click.command("list", epilog="Example: ci-agent policy list")
def list_command() -> int:
    """Name the shipped policies."""
    for name in shipped_policy_names():
        description = load_policy(name).source.description
        click.echo(f"{name:<14}{description or ''}")
    return 0
