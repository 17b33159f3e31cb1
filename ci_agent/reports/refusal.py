"""A run that was refused, or broke off so that its reports have no record: its annotation and its summary in a GitHub
workflow, and what its other reports are made of."""

from dataclasses import asdict, dataclass

from ci_agent.exit_codes import EXIT_CODES, ToolCallCounts, exit_name
from ci_agent.json_types import JsonObject
from ci_agent.messages import Usage
from ci_agent.reports.github import Annotation, annotation_command
from ci_agent.reports.markdown import fenced
from ci_agent.reports.places import Place
from ci_agent.terminal import inert_lines, shortened
from ci_agent.transcript.as_json import usage_json
from ci_agent.transcript.document import TRANSCRIPT_SCHEMA, document_digest

_MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Refusal:
    message: str
    """What is wrong, where, and what to do; free of secrets. It may have several lines."""
    exit_code: int
    place: Place | None = None
    """Of the mistake, when it is one in a file of the repository."""

    @property
    def reason(self) -> str:
        """The exit code's name."""
        return exit_name(self.exit_code) or "internal"


def refused_document(refusal: Refusal) -> JsonObject:
    """A run of which nothing is known but why it ended, in the shape that every report is made of. It is no transcript:
    there may be a journal, but nobody read it for this, and the schema has no reason of this name."""
    document: JsonObject = {
        "schema": TRANSCRIPT_SCHEMA,
        **dict.fromkeys(("run", "model", "policy")),
        "messages": [],
        "tool_calls": [],
        "usage": usage_json(Usage()),
        "result": {
            "reason": refusal.reason,
            "exit_code": refusal.exit_code,
            "final_text": None,
            "structured_output": None,
            "tool_calls": asdict(ToolCallCounts()),
            "error": refusal.message,
            "error_retryable": None,
        },
        "redactions": {"count": 0},
        "notes": [],
    }
    digest = document_digest(document)
    return document | {"integrity": {"complete": True, "records": 0, "problems": [], "document_sha256": digest}}


def refusal_annotation(refusal: Refusal) -> str:
    """A workflow command."""
    title = f"ci-agent: {refusal.reason}, exit code {refusal.exit_code}"
    return annotation_command(Annotation("error", title, refusal.message, refusal.place))


def refusal_summary(refusal: Refusal) -> str:
    """Markdown, the last line with its end."""
    row = EXIT_CODES[exit_name(refusal.exit_code) or "internal"]
    return "\n\n".join(
        (
            f"## ❌ ci-agent: {refusal.reason}, exit code {refusal.exit_code}",
            f"{row.meaning[0].upper()}{row.meaning[1:]}.",
            fenced(inert_lines(shortened(refusal.message, _MAX_CHARS))),
            f"### What to do next\n\n{row.advice}\n",
        )
    )
