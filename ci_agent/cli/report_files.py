"""`--report FORMAT=FILE`: reports that a run writes when it has ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ci_agent.cli.destinations import Destination, find_destination, put
from ci_agent.cli.options import did_you_mean
from ci_agent.json_types import JsonObject
from ci_agent.reports.table import FORMATS, renderer


def read_reports(given: Sequence[str]) -> dict[str, Destination]:
    """Format to file; BadParameter, or ConfigurationError for a file that could not be written at the run's end."""
    reports: dict[str, Destination] = {}
    for pair in given:
        name, equals, file = pair.partition("=")
        if not equals or not file:
            raise click.BadParameter(f"{pair!r} is not FORMAT=FILE", param_hint="--report")
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS)
            raise click.BadParameter(f"there is no report {name!r}{hint} ({', '.join(FORMATS)})", param_hint="--report")
        reports[name] = find_destination(Path(file), "report")
    return reports


def write_reports(document: JsonObject, reports: Mapping[str, Destination]) -> str | None:
    """Write each; why one could not be written, None when all are there."""
    problems = []
    for name, destination in reports.items():
        try:
            put(destination, [renderer(name)(document)])
        except OSError as error:
            problems.append(f"the report {str(destination.given)!r} cannot be written: {error.strerror}")
    return "; ".join(problems) or None
