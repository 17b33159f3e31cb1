"""`ci-agent policy replay`: recorded calls under another policy."""

from pathlib import Path

import click

from ci_agent.cli.options import echo_json, format_option, policy_option
from ci_agent.cli.policy.records import read_runs, record_arguments, where_json, where_lines
from ci_agent.errors import EXIT_NEGATIVE
from ci_agent.policy.checks.replay import replay_run
from ci_agent.reports.policy_replay import render_replay, replay_json


@click.command(
    "replay",
    epilog="""\b
Examples:
  ci-agent policy replay --policy stricter.yml transcript.json
  ci-agent policy replay --policy stricter.yml records/
""",
)
@policy_option
@record_arguments
@format_option
def replay_command(policy_name: str, paths: tuple[Path, ...], workspace: str | None, output_format: str) -> int:
    """Decide the recorded calls of transcripts under another policy, and list what would change.

    Rules with max_calls count from zero in each transcript. Calls that no policy decided are left out and counted: no
    such tool, wrong arguments, cancelled, beyond the run's own limit, a tool that was not offered; and those whose
    arguments are not on record as they were. Paths are looked up on this machine's disk as it is now.

    Exits 1 when any call flips between allow and deny, 3 when a file is no transcript.
    """
    read = read_runs(policy_name, paths, workspace)
    replayed = [call for each in read.runs for call in replay_run(each.run, each.policy)]
    skipped = [call for each in read.runs for call in each.run.skipped]
    if output_format == "json":
        source = read.runs[0].policy.source
        head = {"policy": source.name, "sha256": source.sha256}
        echo_json({**head, **replay_json(replayed, skipped), **where_json(read)})
    else:
        click.echo("\n".join([render_replay(replayed, skipped), *where_lines(read)]))
    return EXIT_NEGATIVE if any(call.flips for call in replayed) else 0
