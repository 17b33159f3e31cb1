"""What a run leaves on stdout and in files, and what happens when nobody takes it."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ci_agent.ci_services.environment import detect_ci
from ci_agent.ci_services.log_sections import LINE_COMMANDS
from ci_agent.cli.destinations import Destination, find_destination, put
from ci_agent.cli.report_files import Report, write_reports
from ci_agent.cli.streams import PATIENCE_S, stdout_problem, write_stream
from ci_agent.errors import EXIT_NEGATIVE, ConfigurationError
from ci_agent.json_types import Json, JsonObject
from ci_agent.proposals.file import file_text
from ci_agent.run_settings import RunResult
from ci_agent.terminal import inert_json, prefixed, printable
from ci_agent.transcript.document import amend_result, stdout_json
from ci_agent.transcript.place import replace_record
from ci_agent.transcript.plain_json import json_text

OutputFormat: TypeAlias = Literal["json", "jsonl", "text"]


_LINE_STALL_S = 30.0
"""How long a run waits for whoever reads the lines of its journal: beyond its own time limit, but not for ever."""


class RecordLines:
    """Prints the lines of the journal as they are written, for `--output jsonl`."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        """`is_over` says whether the run was cancelled: a reader that stalls is then waited for no longer."""
        self._is_over = is_over
        self.problem: str | None = None
        """Why a line could not be printed. A reader that has gone is no reason to stop, but the run is no success."""

    def __call__(self, line: str) -> None:
        if self.problem is None:
            self.problem = _print([inert_json(line)], _LINE_STALL_S, self._is_over)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlets:
    """Where the result of a run goes."""

    stdout: OutputFormat | None
    answer_file: Destination | None
    reports: Sequence[Report]
    proposals_file: Destination | None


def deliver(result: RunResult, outlets: Outlets, lost_record: str | None) -> JsonObject:
    """Write the answer and the reports to their files and the result to stdout; returns the document.

    It says so, in its file too, when something of that was not possible. `lost_record` is why the lines of the journal
    that were to be printed were not.
    """
    document = result.transcript
    if outlets.answer_file is not None:
        document = amended(document, result, _write_answer(outlets.answer_file, result))
    document = amended(document, result, write_reports(document, outlets.reports))
    if outlets.proposals_file is not None:
        document = amended(document, result, _write_proposals(outlets.proposals_file, result))
    if outlets.stdout == "jsonl":
        problem = lost_record
    else:
        problem = None if outlets.stdout is None else _print(_for_stdout(document, result, outlets.stdout))
    return amended(document, result, problem)


def _print(
    chunks: Iterable[str], patience_s: float = PATIENCE_S, is_over: Callable[[], bool] = lambda: False
) -> str | None:
    """Why stdout did not take it all; None: it did."""
    problem = stdout_problem()
    if problem is not None:
        return problem
    try:
        write_stream(sys.stdout, chunks, patience_s, is_over)
    except OSError as error:
        return f"the result could not be written to stdout: {error.strerror}"
    return None


def find_proposals_file(given: Path) -> Destination:
    """Raise ConfigurationError when the proposals could not be put there."""
    destination = find_destination(given, "proposals file")
    if destination.in_place is not None:
        raise ConfigurationError(f"the proposals {str(given)!r} cannot be written: name a file in an existing folder")
    return destination


def remove_earlier_proposals(outlets: Outlets) -> None:
    """Should this run come to no end, nobody shall apply what one before it proposed."""
    if outlets.proposals_file is not None:
        outlets.proposals_file.path.unlink(missing_ok=True)


def _write_proposals(destination: Destination, result: RunResult) -> str | None:
    """Put the proposals in place in one step. Returns why that was not possible."""
    return _problem_of_putting("proposals", destination, file_text(result.proposals or {}))


def _write_answer(destination: Destination, result: RunResult) -> str | None:
    """The structured output as JSON when there is one, else the final text. Returns why it could not be written."""
    return _problem_of_putting("answer file", destination, f"{_answer_text(result)}\n")


def _answer_text(result: RunResult) -> str:
    """What satisfied the schema, without what the model put around it; else the final text."""
    structured: Json = result.transcript["result"]["structured_output"]
    return result.answer if structured is None else json_text(structured)


def _problem_of_putting(what: str, destination: Destination, text: str) -> str | None:
    try:
        put(destination, [text])
    except OSError as error:
        return f"the {what} {str(destination.given)!r} cannot be written: {error.strerror}"
    return None


def _for_stdout(document: JsonObject, result: RunResult, output: Literal["json", "text"]) -> list[str]:
    return [stdout_json(document)] if output == "json" else _answer_lines(result)


def _answer_lines(result: RunResult) -> list[str]:
    """The answer, harmless to a terminal; behind a prefix where a line can be a command by how it begins.

    Nothing at all when there is no answer: an empty line would look like one.
    """
    text = _answer_text(result)
    if not text:
        return []
    ci = detect_ci(os.environ)
    if ci is not None and ci.provider in LINE_COMMANDS:
        return [prefixed(text), "\n"]
    return ["\n".join(printable(line) for line in text.split("\n")), "\n"]


def amended(document: JsonObject, result: RunResult, problem: str | None) -> JsonObject:
    """The document of a run that had ended when somebody did not take his part of it; in its file, too."""
    ending = document["result"]
    if problem is None or problem in (ending["error"] or ""):  # the run may have noticed before it ended
        return document
    error = problem if ending["error"] is None else f"{ending['error']}; {problem}"
    amended = amend_result(document, ending["exit_code"] or EXIT_NEGATIVE, error)
    if result.transcript_path is not None and result.transcript_path.suffix != ".jsonl":
        replace_record(result.transcript_path, amended)
    return amended
