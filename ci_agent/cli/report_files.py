"""`--report FORMAT=FILE`: reports that a run writes when it has ended."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ci_agent.cli.options import did_you_mean
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.reports.table import FORMATS, renderer
from ci_agent.transcript.document import replace_file


def read_reports(given: Sequence[str]) -> dict[str, Path]:
    """Format to file; BadParameter, or ConfigurationError for a file that could not be written at the run's end."""
    reports: dict[str, Path] = {}
    for pair in given:
        name, equals, file = pair.partition("=")
        if not equals or not file:
            raise click.BadParameter(f"{pair!r} is not FORMAT=FILE", param_hint="--report")
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS)
            raise click.BadParameter(f"there is no report {name!r}{hint} ({', '.join(FORMATS)})", param_hint="--report")
        folder = Path(file).absolute().parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ConfigurationError(f"the report {file!r} cannot be written: {str(folder)!r} is no folder to write in")
        reports[name] = Path(file)
    return reports


def write_reports(document: JsonObject, reports: Mapping[str, Path]) -> str | None:
    """Write each; why one could not be written, None when all are there."""
    problems = []
    for name, path in reports.items():
        try:
            replace_file(Path(os.path.realpath(path)), [renderer(name)(document)])
        except OSError as error:
            problems.append(f"the report {str(path)!r} cannot be written: {os.strerror(error.errno or 0)}")
    return "; ".join(problems) or None
