"""`ci-agent diff`: two runs of the same task side by side."""

from pathlib import Path

import click

from ci_agent.cli.options import echo_json, format_option
from ci_agent.errors import EXIT_NEGATIVE
from ci_agent.reports.comparison import are_alike, comparison_json, render_comparison
from ci_agent.transcript.compare import compare_calls
from ci_agent.transcript.read import read_transcript


@click.command(
    "diff",
    epilog="""\b
Examples:
  ci-agent diff before.json after.json
  ci-agent diff --exit-code recorded.json replayed.json
""",
)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--exit-code", "with_exit_code", is_flag=True, help="Exit 1 when calls are new, gone or ended otherwise.")
@format_option
def diff_command(before: Path, after: Path, *, with_exit_code: bool, output_format: str) -> int:
    """Compare two transcripts: calls added, removed and changed, decisions, cost and time.

    Calls with the same tool and arguments are the same call. One that printed something else, or that another rule
    decided, is listed; with --exit-code only calls of one run alone and calls that ended otherwise count.
    """
    first, second = read_transcript(before), read_transcript(after)
    calls = compare_calls(first, second)
    if output_format == "json":
        echo_json(comparison_json(first, second, calls))
    else:
        click.echo(render_comparison(first, second, calls))
    return EXIT_NEGATIVE if with_exit_code and not are_alike(calls) else 0
