"""`ci-agent policy suggest`: from denials to candidate rules."""

from pathlib import Path

import click

from ci_agent.cli.options import echo_json, format_option, policy_option
from ci_agent.cli.policy.records import read_runs, record_arguments, where_json, where_lines
from ci_agent.policy.file.shipped import shipped_policy_names
from ci_agent.policy.suggest import suggest_rules
from ci_agent.reports.policy_suggest import render_suggestions, suggestions_json
from ci_agent.tools.table import tools_without_a_run


@click.command("suggest", epilog="Example: ci-agent policy suggest --policy policy.yml transcript.json")
@policy_option
@record_arguments
@format_option
def suggest_command(policy_name: str, paths: tuple[Path, ...], workspace: str | None, output_format: str) -> int:
    """From the denials in transcripts, propose the narrowest rules that would allow them. No file is changed.

    Prints YAML to be pasted beneath `rules:`, with the denied calls that each rule is for, other calls that it would
    allow, and what lint says of it. Nothing is proposed for what a deny rule forbids, for what is protected or cannot
    be understood, nor for options that run, load or write something: such calls are listed with the reason.
    """
    read = read_runs(policy_name, paths, workspace)
    calls = [call for each in read.runs for call in each.run.calls]
    skipped = [call for each in read.runs for call in each.run.skipped]
    schemas = {name: tool.parameters for name, tool in tools_without_a_run().items()}
    found = suggest_rules({each.run.transcript: each.policy for each in read.runs}, calls, schemas)
    source = read.runs[0].policy.source
    if output_format == "json":
        head = {"policy": source.name, "sha256": source.sha256}
        echo_json({**head, **suggestions_json(found, skipped), **where_json(read)})
    else:
        click.echo(render_suggestions(_where_rules_go(source.name), found, skipped, where_lines(read)))
    return 0


def _where_rules_go(policy: str) -> str:
    """A shipped policy is no file to be edited."""
    return f"a file of yours with `extends: [{policy}]`" if policy in shipped_policy_names() else policy
