"""`ci-agent transcript`: verify, recover, schema."""

import json
from pathlib import Path

import click

from ci_agent.errors import EXIT_NEGATIVE
from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import counts_of
from ci_agent.spelling import counted
from ci_agent.terminal import printable
from ci_agent.transcript.read import read_transcript
from ci_agent.transcript.records import journal_schema, transcript_schema
from ci_agent.transcript.recovery import recover
from ci_agent.transcript.verify import verify


@click.group("transcript")
def transcript_command() -> None:
    """Verify, recover or describe transcripts."""


@transcript_command.command(
    "verify",
    short_help="Check that nothing was cut or edited.",
    epilog="Example: ci-agent transcript verify out/transcript.json",
)
@click.argument("transcript", type=click.Path(path_type=Path))
def verify_command(transcript: Path) -> int:
    """Check that TRANSCRIPT is whole: nothing cut, nothing edited (exit 1 otherwise).

    It shows what happened to a file by accident. Who edits it on purpose can compute its hashes anew.
    """
    problems = verify(transcript)
    for problem in problems:
        click.echo(f"{transcript}: {printable(str(problem))}")
    if not problems:
        click.echo(f"{transcript}: whole")
    return EXIT_NEGATIVE if problems else 0


@transcript_command.command(
    "recover",
    short_help="Make the document of a killed run.",
    epilog="Example: ci-agent transcript recover out/transcript.json",
)
@click.argument("transcript", type=click.Path(path_type=Path))
def recover_command(transcript: Path) -> int:
    """Make the document of a killed run from the journal beside TRANSCRIPT (exit 3 when there is none).

    Calls that had started and not ended show an unknown outcome. The journal stays where it is.
    """
    document = recover(transcript)
    click.echo(document)
    click.echo(f"recovered: {_what_is_in(read_transcript(document))}", err=True)
    return 0


def _what_is_in(document: JsonObject) -> str:
    calls, turns = document["tool_calls"], sum(each["role"] == "assistant" for each in document["messages"])
    counts = f" ({counts_of(calls)})" if calls else ""
    problems = len(document["integrity"]["problems"])
    damage = f"; {counted(problems, 'problem')} of the journal, which `transcript verify` tells" if problems else ""
    return f"{counted(turns, 'turn')}, {counted(len(calls), 'call')}{counts}{damage}"


@transcript_command.command("schema", epilog="Example: ci-agent transcript schema > transcript.schema.json")
@click.option("--journal", is_flag=True, help="The schema of a journal's line instead of the document's.")
def schema_command(journal: bool) -> int:
    """Print the JSON Schema of the transcript."""
    click.echo(json.dumps(journal_schema() if journal else transcript_schema(), indent=2))
    return 0
