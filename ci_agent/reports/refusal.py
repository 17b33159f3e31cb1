"""A run that was refused, or broke off without a record: its annotation and its summary in a GitHub workflow."""

from dataclasses import dataclass

from ci_agent.exit_codes import EXIT_CODES, exit_name
from ci_agent.reports.github import Annotation, annotation_command
from ci_agent.reports.markdown import fenced
from ci_agent.reports.places import Place
from ci_agent.terminal import inert_lines, shortened

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
