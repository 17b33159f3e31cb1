"""`ci-agent report`: a transcript for a person to read."""

import os
import sys
from pathlib import Path

import click

from ci_agent.reports.text import render_text
from ci_agent.transcript.read import read_transcript


@click.command("report", epilog="Example: ci-agent report out/transcript.json")
@click.argument("transcript", type=click.Path(path_type=Path))
@click.option("--format", "output_format", type=click.Choice(["text"]), default="text", show_default=True)
def report_command(transcript: Path, output_format: str) -> int:  # noqa: ARG001 - the choice checks it; one so far
    """Render TRANSCRIPT: denials and errors first, then every call, the answer and how the run ended."""
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    click.echo(render_text(read_transcript(transcript), color=color))
    return 0
