"""`ci-agent policy schema`, `list` and `show`: what comes with the package."""

from collections.abc import Iterator

import click

from ci_agent.cli.options import echo_json, format_option
from ci_agent.json_types import JsonObject
from ci_agent.policy.file.document import policy_schema
from ci_agent.policy.file.shipped import shipped_policy_names, shipped_policy_path
from ci_agent.ready_policy import load_policy

_KEY_WIDTH = 14
"""Of the column of keys, unless one needs more."""


@click.command("schema", epilog="Example: ci-agent policy schema > policy.schema.json")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
    help="json: for editors; text: every key and what it means.",
)
def schema_command(output_format: str) -> int:
    """Print the JSON Schema of a policy file, for editors that complete and check YAML."""
    schema = policy_schema()
    if output_format == "json":
        echo_json(schema)
    else:
        click.echo("\n".join(_described(schema)))
    return 0


@click.command("list", epilog="Example: ci-agent policy list")
@format_option
def list_command(output_format: str) -> int:
    """Name the shipped policies."""
    sources = {name: load_policy(name).source for name in shipped_policy_names()}
    if output_format == "json":
        told = {name: {"description": source.description, "sha256": source.sha256} for name, source in sources.items()}
        echo_json([{"name": name, **each} for name, each in told.items()])
    else:
        for name, source in sources.items():
            click.echo(f"{name:<14}{source.description or ''}")
    return 0


@click.command("show", epilog="Example: ci-agent policy show review")
@click.argument("name")
def show_command(name: str) -> int:
    """Print the file of a shipped policy, as rules of others extend it and messages name its lines."""
    click.echo(shipped_policy_path(name).read_text(encoding="utf-8"), nl=False)
    return 0


def _described(schema: JsonObject) -> Iterator[str]:
    """The keys of a policy, then those of a rule and the rest, each with its description."""
    parts = {"policy": schema, **{name.removesuffix("Model").lower(): part for name, part in schema["$defs"].items()}}
    for name, part in parts.items():
        keys = part.get("properties", {})
        if keys:
            width = max(_KEY_WIDTH, *map(len, keys))
            yield f"{name}:"
            yield from (f"  {key:<{width}} {about.get('description', '')}".rstrip() for key, about in keys.items())
