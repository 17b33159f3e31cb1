"""`ci-agent tools`: the built-in tools, for a person or with their schemas for a program."""

import json
import textwrap

import click

from ci_agent.cli.options import format_option
from ci_agent.json_types import JsonObject
from ci_agent.tool import Tool
from ci_agent.tools.table import tools_without_a_run


@click.command("tools", epilog="Example: ci-agent tools --format json")
@format_option
def tools_command(output_format: str) -> int:
    """List the built-in tools, with their parameters."""
    tools = tools_without_a_run().values()
    if output_format == "json":
        click.echo(json.dumps([_as_json(tool) for tool in tools], indent=2))
    else:
        click.echo("\n\n".join(_as_text(tool) for tool in tools))
    return 0


def _as_json(tool: Tool) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "execution_mode": tool.execution_mode,
        "parameters": tool.parameters,
    }


def _as_text(tool: Tool) -> str:
    required = tool.parameters["required"]
    properties = tool.parameters["properties"].items()
    names = [f"{name if name in required else f'{name}?'}{_fields(schema)}" for name, schema in properties]
    description = textwrap.fill(tool.description, 96, initial_indent="  ", subsequent_indent="  ")
    return f"{tool.name}({', '.join(names)})  {tool.execution_mode}\n{description}"


def _fields(schema: JsonObject) -> str:
    """What each item of a list of objects holds; empty for anything else."""
    item = schema.get("items", {})
    fields = [name if name in item.get("required", ()) else f"{name}?" for name in item.get("properties", {})]
    return f": [{{{', '.join(fields)}}}]" if fields else ""
