"""What a run leaves on stdout and in files, and what happens when nobody takes it."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from ci_agent.ci_services.environment import detect_ci
from ci_agent.ci_services.log_sections import LINE_COMMANDS
from ci_agent.cli.report_files import write_reports
from ci_agent.cli.streams import stdout_problem, write_stream
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import Json, JsonObject
from ci_agent.proposals.file import file_text
from ci_agent.run_settings import RunResult
from ci_agent.terminal import inert_json, prefixed, printable
from ci_agent.transcript.document import amend_result, replace_file, stdout_json
from ci_agent.transcript.place import replace_record
from ci_agent.transcript.plain_json import json_text

OutputFormat: TypeAlias = Literal["json", "jsonl", "text"]

EXIT_NEGATIVE = 1


class RecordLines:
    """Prints the lines of the journal as they are written, for `--output jsonl`."""

    def __init__(self) -> None:
        self.problem: str | None = None
        """Why a line could not be printed. A reader that has gone is no reason to stop, but the run is no success."""

    def __call__(self, line: str) -> None:
        if self.problem is None:
            self.problem = _print([inert_json(line)])


def deliver(  # noqa: PLR0913 - each is a place where something of the result goes
    result: RunResult,
    output: OutputFormat | None,
    answer_file: Path | None,
    reports: Mapping[str, Path],
    *,
    lost_record: str | None = None,
    proposals_file: Path | None = None,
) -> JsonObject:
    """Write the answer and the reports to their files and the result to stdout; returns the document.

    It says so, in its file too, when something of that was not possible. `lost_record` is why the lines of the journal
    that were to be printed were not.
    """
    document = result.transcript
    if answer_file is not None:
        document = amended(document, result, write_answer(answer_file, result))
    document = amended(document, result, write_reports(document, reports))
    if proposals_file is not None:
        document = amended(document, result, write_proposals(proposals_file, result))
    if output == "jsonl":
        problem = lost_record
    else:
        problem = None if output is None else _print(_for_stdout(document, result, output))
    return amended(document, result, problem)


def _print(chunks: Iterable[str]) -> str | None:
    """Why stdout did not take it all; None: it did."""
    problem = stdout_problem()
    if problem is not None:
        return problem
    try:
        write_stream(sys.stdout, chunks)
    except OSError as error:
        return f"the result could not be written to stdout: {os.strerror(error.errno or 0)}"
    return None


def check_answer_file(path: Path) -> None:
    """Raise ConfigurationError now rather than after the run when the answer could not be written there."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError(f"the answer file {str(path)!r} cannot be written: name a file in an existing folder")


def check_proposals_file(path: Path) -> None:
    """Raise ConfigurationError when the proposals could not be put there, and take away what an earlier run proposed:
    should this one come to no end, nobody shall apply it."""
    folder = path.absolute().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)) or (path.exists() and not path.is_file()):
        raise ConfigurationError(f"the proposals {str(path)!r} cannot be written: name a file in an existing folder")
    path.unlink(missing_ok=True)


def write_proposals(path: Path, result: RunResult) -> str | None:
    """Put the proposals in place in one step. Returns why that was not possible."""
    try:
        replace_file(path.absolute(), [file_text(result.proposals or {})])
    except OSError as error:
        return f"the proposals {str(path)!r} cannot be written: {os.strerror(error.errno or 0)}"
    return None


def write_answer(path: Path, result: RunResult) -> str | None:
    """The structured output as JSON when there is one, else the final text. Returns why it could not be written."""
    structured: Json = result.transcript["result"]["structured_output"]
    text = result.answer if structured is None else json_text(structured)
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        return f"the answer file {str(path)!r} cannot be written: {os.strerror(error.errno or 0)}"
    return None


def _for_stdout(document: JsonObject, result: RunResult, output: Literal["json", "text"]) -> list[str]:
    return [stdout_json(document)] if output == "json" else _answer_lines(result)


def _answer_lines(result: RunResult) -> list[str]:
    """The answer, harmless to a terminal; behind a prefix where a line can be a command by how it begins.

    Nothing at all when there is no answer: an empty line would look like one.
    """
    if not result.answer:
        return []
    ci = detect_ci(os.environ)
    if ci is not None and ci.provider in LINE_COMMANDS:
        return [prefixed(result.answer), "\n"]
    return ["\n".join(printable(line) for line in result.answer.split("\n")), "\n"]


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
