"""A run that failed: for the mail of a cron job what would be its subject, then all that there is to say; for a log
that tells of the calls already, what it leaves open."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.reports.outcome import explain_commands, next_steps, why_it_ended
from ci_agent.reports.refusal import Refusal
from ci_agent.reports.text import render_text
from ci_agent.terminal import one_line, printable

NOT_KEPT: Final = "With --transcript FILE the record stays, and ci-agent report shows all of it."

_MAX_SUBJECT_CHARS = 200


def render_failure(document: JsonObject, transcript: Path | None) -> str:
    """Several lines, the last without an end."""
    run, result = document["run"], document["result"]
    where = f" in {run['workspace']}" if run else ""
    subject = f"ci-agent failed{where}: {result['reason']}, exit code {result['exit_code']}"
    record = f"Record     {printable(str(transcript.absolute()))}" if transcript else NOT_KEPT
    text = render_text(document, transcript=_as_word(transcript))
    return "\n".join([one_line(subject, _MAX_SUBJECT_CHARS), "", text, record])


def refusal_lines(refusal: Refusal, workspace: str) -> Iterator[str]:
    """Of a run that did not begin or broke off without a record: all that there is to say, the first line for the
    mail's subject."""
    first, *rest = refusal.message.splitlines() or [""]
    subject = f"ci-agent failed in {workspace}: {refusal.reason}, exit code {refusal.exit_code}: {first}"
    yield one_line(subject, len(subject))
    yield from (f"ci-agent: {line}" for line in rest)


def failure_hints(document: JsonObject, transcript: Path | None) -> Iterator[str]:
    """What stands beneath `outcome_line` when a run failed, a line each: why, what to do, where to read more."""
    why = why_it_ended(document)
    if why is not None and document["result"]["error"] is None:
        yield f"  Why: {why}"
    record = _as_word(transcript)
    yield from (f"  Next: {step}" for step in next_steps(document, record))
    yield from (f"  Why the first denial: {command}" for command in explain_commands(document, 1))
    if record is None:
        yield f"  {NOT_KEPT}"
    else:
        yield f"  All of it: ci-agent report {printable(record)}"


def _as_word(transcript: Path | None) -> str | None:
    """Of a command line."""
    return None if transcript is None else shlex.quote(_shorter(transcript))


def _shorter(path: Path) -> str:
    try:
        return min(os.path.relpath(path), str(path.absolute()), key=len)
    except OSError:  # the current folder is gone
        return str(path)
