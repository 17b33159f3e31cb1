"""`ci-agent models`: what is known about models without asking anybody."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from ci_agent.cli.options import format_option, option
from ci_agent.json_types import JsonObject
from ci_agent.providers.catalog import Catalog, load_catalog
from ci_agent.providers.model_facts import ModelFacts, Price

EPILOG = """\b
Examples:
  ci-agent models anthropic:
  ci-agent models gpt-5 --json
"""


@click.command("models", epilog=EPILOG)
@click.argument("part", required=False, default="")
@option("--models-file", metavar="FILE", help="Models of your own, in YAML; they come before those shipped.")
@format_option
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def models_command(part: str, models_file: str | None, output_format: str, as_json: bool) -> int:
    """List the models whose name contains PART, with context, longest answer and price in USD per million tokens.

    A model that is not listed can be used as well: its price and limits are then unknown.
    """
    catalog = load_catalog(None if models_file is None else Path(models_file))
    models = {name: facts for name, facts in sorted(catalog.models.items()) if part.lower() in name.lower()}
    if as_json or output_format == "json":
        click.echo(json.dumps(_document(catalog, models), indent=2))
    elif models:
        click.echo(_table(models))
        click.echo(_origin(catalog))
    else:
        click.echo(f"No known model's name contains {part!r}. {_origin(catalog)}")
    return 0


def _document(catalog: Catalog, models: Mapping[str, ModelFacts]) -> JsonObject:
    return {"source": dict(catalog.source), "models": {name: asdict(facts) for name, facts in models.items()}}


def _origin(catalog: Catalog) -> str:
    source = catalog.source
    return f"Limits and prices: {source['name']} {source['version']}, taken on {source['generated']}."


def _table(models: Mapping[str, ModelFacts]) -> str:
    heading = ("MODEL", "CONTEXT", "ANSWER", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "")
    rows = [heading, *(_row(name, facts) for name, facts in models.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heading))]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True))]
    return "  ".join([*cells, row[-1]]).rstrip()


def _row(name: str, facts: ModelFacts) -> tuple[str, ...]:
    return (name, _count(facts.context_tokens), _count(facts.max_output_tokens), *_prices(facts.price), _remarks(facts))


def _prices(price: Price | None) -> tuple[str, str, str, str]:
    if price is None:
        return "?", "?", "?", "?"
    return _usd(price.input), _usd(price.output), _usd(price.cache_read), _usd(price.cache_write)


def _remarks(facts: ModelFacts) -> str:
    remarks = ["thinks"] if facts.thinks else []
    if facts.sees_images:
        remarks.append("sees images")
    if facts.long_context_tokens is not None:
        long = facts.long_context_price
        price = f"{_usd(long.input)}/{_usd(long.output)}" if long else "?"
        remarks.append(f"past {facts.long_context_tokens:,} tokens {price}")
    return ", ".join(remarks)


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


def _usd(price: float | None) -> str:
    return "?" if price is None else f"{price:.10g}"
