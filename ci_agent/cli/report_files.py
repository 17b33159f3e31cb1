"""`--report FORMAT=FILE`: reports that a run writes when it has ended."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from ci_agent.cli.destinations import Destination, find_destination, put
from ci_agent.json_types import JsonObject
from ci_agent.reports.table import FORMATS, renderer
from ci_agent.spelling import did_you_mean

Report: TypeAlias = tuple[str, Destination]
"""A format and where it goes; the same format may go to several places."""


def read_reports(given: Sequence[str]) -> list[Report]:
    """BadParameter, or ConfigurationError for a file that could not be written at the run's end."""
    return [(name, find_destination(file, "report")) for name, file in map(named_report, given)]


def named_report(given: str) -> tuple[str, Path]:
    """The format and the file of FORMAT=FILE."""
    name, equals, file = given.partition("=")
    if not equals or not file:
        raise click.BadParameter(f"{given!r} is not FORMAT=FILE", param_hint="--report")
    if name not in FORMATS:
        hint = did_you_mean(name, FORMATS)
        raise click.BadParameter(f"there is no report {name!r}{hint} ({', '.join(FORMATS)})", param_hint="--report")
    return name, Path(file)


def write_reports(document: JsonObject, reports: Iterable[Report]) -> str | None:
    """Write each; why one could not be written, None when all are there."""
    problems = []
    for name, destination in reports:
        try:
            put(destination, [renderer(name)(document)])
        except OSError as error:
            problems.append(f"the report {str(destination.given)!r} cannot be written: {error.strerror}")
    return "; ".join(problems) or None
