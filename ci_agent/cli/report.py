"""`ci-agent report`: a transcript for a person to read."""

import os
import sys
from pathlib import Path

import click

from ci_agent.json_types import JsonObject
from ci_agent.reports.text import render_text
from ci_agent.transcript.document import build_document
from ci_agent.transcript.journal import JOURNAL_SUFFIX, PRODUCT_SUFFIX, read_journal
from ci_agent.transcript.verify import read_document


@click.command("report", epilog="Example: ci-agent report out/transcript.json")
@click.argument("transcript", type=click.Path(path_type=Path))
@click.option("--format", "output_format", type=click.Choice(["text"]), default="text", show_default=True)
def report_command(transcript: Path, output_format: str) -> int:  # noqa: ARG001 - the choice checks it; one so far
    """Render TRANSCRIPT: denials and errors first, then every call, the answer and how the run ended."""
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    click.echo(render_text(_read(transcript), color=color))
    return 0


def _read(path: Path) -> JsonObject:
    """The document, made of the journal when the file is one: a transcript that ends in `.jsonl` is."""
    if path.name.endswith((PRODUCT_SUFFIX, JOURNAL_SUFFIX)):
        return build_document(read_journal(path))
    return read_document(path)
