"""A run that failed, for the mail of a cron job: what would be its subject, then all that there is to say."""

from pathlib import Path

from ci_agent.json_types import JsonObject
from ci_agent.reports.text import render_text
from ci_agent.terminal import one_line, printable

_MAX_SUBJECT_CHARS = 200


def render_failure(document: JsonObject, transcript: Path | None) -> str:
    """Several lines, the last without an end."""
    run, result = document["run"], document["result"]
    where = f" in {run['workspace']}" if run else ""
    subject = f"ci-agent failed{where}: {result['reason']}, exit code {result['exit_code']}"
    record = [f"Record     {printable(str(transcript.absolute()))}"] if transcript else []
    return "\n".join([one_line(subject, _MAX_SUBJECT_CHARS), "", render_text(document), *record])
