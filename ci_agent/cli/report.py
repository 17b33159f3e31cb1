"""`ci-agent report`: a transcript for a person, or for the service that shows it to one."""

import os
import shutil
import sys
from pathlib import Path

import click

from ci_agent.cli.repository_places import refuse_repository_place
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.reports.table import FORMATS, renderer
from ci_agent.reports.text import render_text
from ci_agent.transcript.document import replace_file
from ci_agent.transcript.read import read_transcript

EPILOG = """\b
Examples:
  ci-agent report out/transcript.json
  ci-agent report out/transcript.json --format markdown >> "$GITHUB_STEP_SUMMARY"
  ci-agent report out/transcript.json --format junit --output out/junit.xml
"""

STDOUT = "-"


@click.command("report", epilog=EPILOG)
@click.argument("transcript", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="text: for a terminal; markdown: a job's summary; html: one page; github: annotations and a folded log; "
    "junit, sarif: for what shows tests and findings.",
)
@click.option("--output", metavar="FILE", default=STDOUT, help="Write the report here; - is stdout. [default: -]")
def report_command(transcript: Path, output_format: str, output: str) -> int:
    """Render TRANSCRIPT, the record of a run or its journal: how it ended, what was denied and what failed, and why.

    It prints what happened and exits 0, however the run ended.
    """
    document = read_transcript(transcript)
    if output == STDOUT:
        click.echo(_on_stdout(document, output_format).encode(), nl=False)
    else:
        _refuse_the_record(Path(output), transcript)
        refuse_repository_place(output, "--output")
        _write(Path(output), renderer(output_format)(document))
    return 0


def _on_stdout(document: JsonObject, output_format: str) -> str:
    if output_format != "text" or not sys.stdout.isatty():
        return _ended(renderer(output_format)(document))
    columns = shutil.get_terminal_size().columns
    return _ended(render_text(document, color=not os.environ.get("NO_COLOR"), columns=columns))


def _refuse_the_record(path: Path, transcript: Path) -> None:
    if os.path.realpath(path) == os.path.realpath(transcript):
        raise click.UsageError(f"--output {path} would take the place of the record: name another file.")


def _write(path: Path, report: str) -> None:
    """Raises ConfigurationError when the file cannot be written, or is none that can be replaced: `/dev/stdout` leads
    to the file that stdout was redirected to, with all that others have written there."""
    if path.exists() and (not path.is_file() or path.is_relative_to("/dev") or path.is_relative_to("/proc")):
        raise ConfigurationError(f"{str(path)!r} is no regular file: name another one, or - for stdout")
    try:
        replace_file(Path(os.path.realpath(path)), [_ended(report)])
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigurationError(f"the report {str(path)!r} cannot be written: {why}") from error


def _ended(report: str) -> str:
    return report if report.endswith("\n") else f"{report}\n"
