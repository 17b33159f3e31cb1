"""What a run tells the step of a GitHub workflow that it is: outputs, summary, annotations."""

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ci_agent.ci_services.action_inputs import inputs_for
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.reports.github import annotation_lines
from ci_agent.reports.markdown import MAX_SUMMARY_BYTES, render_markdown
from ci_agent.reports.outcome import conclusion, next_steps, why_it_ended
from ci_agent.reports.refusal import Refusal, refusal_annotation, refusal_summary
from ci_agent.transcript.plain_json import json_text

Published: TypeAlias = Literal["github", "github-outputs", "github-summary", "github-annotations"]
"""`github` is all of them."""

MAX_OUTPUT_UNITS: Final = 400_000
"""UTF-16 units of one output; all outputs of a job together may have 1 MB (GitHub's "workflow syntax", outputs)."""

_CUT: Final = "\n[cut: the transcript has all of it]"


def publish(
    kinds: Collection[Published],
    document: JsonObject,
    transcript: Path | None,
    environment: Mapping[str, str],
    print_line: Callable[[str], None],
) -> list[str]:
    """Write what is asked for; returns a line for each thing that could not be. To be called when the run is over and
    the runner's files have been looked at."""
    problems: list[str] = []
    if _wants(kinds, "github-outputs"):
        text = outputs_text(step_outputs(document, transcript))
        problems += _append(environment, "GITHUB_OUTPUT", text)
    if _wants(kinds, "github-summary"):
        hint = action_hint(document, environment)
        text = render_markdown(document) + (f"\n{hint}\n" if hint else "")
        problems += _append(environment, "GITHUB_STEP_SUMMARY", text, MAX_SUMMARY_BYTES)
    if _wants(kinds, "github-annotations"):
        for line in annotation_lines(document):
            print_line(line)
    return problems


def publish_refusal(
    kinds: Collection[Published], refusal: Refusal, environment: Mapping[str, str], print_line: Callable[[str], None]
) -> list[str]:
    """`publish` for a run that has no record: why there is none, as far as there is a step to be told."""
    problems: list[str] = []
    if _wants(kinds, "github-outputs") and environment.get("GITHUB_OUTPUT"):
        told = {"conclusion": refusal.reason, "exit-code": str(refusal.exit_code), "reason": refusal.message}
        problems += _append(environment, "GITHUB_OUTPUT", outputs_text(told))
    if _wants(kinds, "github-summary") and environment.get("GITHUB_STEP_SUMMARY"):
        problems += _append(environment, "GITHUB_STEP_SUMMARY", refusal_summary(refusal), MAX_SUMMARY_BYTES)
    if _wants(kinds, "github-annotations"):
        print_line(refusal_annotation(refusal))
    return problems


def action_hint(document: JsonObject, environment: Mapping[str, str]) -> str | None:
    """Which inputs of the action the flags are that a report of the run names; None: it names none."""
    return inputs_for(" ".join([why_it_ended(document) or "", *next_steps(document)]), environment)


def check_publishing(kinds: Collection[Published], environment: Mapping[str, str]) -> None:
    """Raise ConfigurationError where there is no step that could be told: better before the run than after it."""
    for kind, variable in (("github-outputs", "GITHUB_OUTPUT"), ("github-summary", "GITHUB_STEP_SUMMARY")):
        if _wants(kinds, kind) and not environment.get(variable):
            raise ConfigurationError(f"--publish {kind} needs the variable {variable}, which GitHub's runner sets")


def step_outputs(document: JsonObject, transcript: Path | None) -> dict[str, str]:
    """The outputs by name; what there is none of is empty."""
    result, usage = document["result"], document["usage"]
    structured = result["structured_output"]
    turns = sum(message["role"] == "assistant" for message in document["messages"])
    return {
        "conclusion": result["reason"],
        "exit-code": str(result["exit_code"]),
        "reason": _reason(document),
        "answer": _bounded(result["final_text"] or ""),
        "structured-output": "" if structured is None else _whole(json_text(structured)),
        "transcript": "" if transcript is None else str(transcript.absolute()),
        "denied": str(result["tool_calls"]["denied"]),
        "tool-errors": str(result["tool_calls"]["error"]),
        "cost-usd": "" if usage["cost_usd"] is None else f"{usage['cost_usd']:.6f}",
        "turns": str(turns),
    }


def _reason(document: JsonObject) -> str:
    """Why the step failed, in a line; empty when it did not."""
    return "" if document["result"]["exit_code"] == 0 else why_it_ended(document) or conclusion(document)


def outputs_text(values: Mapping[str, str], new_delimiter: Callable[[], str] = lambda: secrets.token_hex(32)) -> str:
    """The lines of a file command (actions/runner, FileCommandManager.cs): `NAME<<DELIMITER`, the value, the delimiter.

    The delimiter is random, so no value can hold it; a name that would be read otherwise is an error of ours.
    """
    return "".join(_output(name, value, f"ci_agent_{new_delimiter()}") for name, value in values.items())


def _output(name: str, value: str, delimiter: str) -> str:
    if not name or any(char in name for char in "=<\n\r") or delimiter in value or delimiter in name:
        raise ValueError(f"no output can be called {name!r}")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _wants(kinds: Collection[Published], kind: str) -> bool:
    return "github" in kinds or kind in kinds


def _append(environment: Mapping[str, str], variable: str, text: str, max_bytes: int | None = None) -> Iterable[str]:
    """Add to a file that earlier lines of the step may have left without a line end: those would be read with ours."""
    path = environment.get(variable, "")
    try:
        # A link is nothing that the runner makes: a command has led the file to another one.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        with open(descriptor, "rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            missing = "" if size == 0 or file.read(1) == b"\n" else "\n"
            data = f"{missing}{text}".encode("utf-8", "replace")
            if max_bytes is not None and size + len(data) > max_bytes:
                return [f"{variable}: the step's summary has no room left for that of ci-agent"]
            file.seek(0, os.SEEK_END)
            file.write(data)
    except OSError as error:
        return [f"{variable}: {path!r} cannot be written: {os.strerror(error.errno or 0)}"]
    return []


def _bounded(text: str) -> str:
    units = text.encode("utf-16-le", "replace")
    if len(units) <= 2 * MAX_OUTPUT_UNITS:
        return text
    return units[: 2 * MAX_OUTPUT_UNITS].decode("utf-16-le", "ignore") + _CUT


def _whole(text: str) -> str:
    """Half a JSON text is none; whoever finds nothing here finds it in the transcript."""
    return text if len(text.encode("utf-16-le", "replace")) <= 2 * MAX_OUTPUT_UNITS else ""
