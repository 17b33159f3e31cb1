"""What a run leaves on stdout and in files, and what happens when nobody takes it."""

import os
import select
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TextIO, TypeAlias

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import Json, JsonObject
from ci_agent.run_settings import RunResult
from ci_agent.terminal import prefixed, printable
from ci_agent.transcript.document import amend_result, stdout_json, write_document
from ci_agent.transcript.plain_json import json_text

OutputFormat: TypeAlias = Literal["json", "jsonl", "text"]

STDOUT_CLOSED = "stdout was closed before the result could be written to it"

EXIT_NEGATIVE = 1


def stdout_problem() -> str | None:
    """Why nothing can be written to stdout; None when it looks as if something could."""
    if sys.stdout is None or sys.stdout.closed:
        return STDOUT_CLOSED
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    # The reader of a pipe has gone: POLLERR comes without being asked for.
    gone = select.POLLERR | select.POLLNVAL
    return STDOUT_CLOSED if any(events & gone for _, events in poll.poll(0)) else None


def deliver(result: RunResult, output: OutputFormat | None) -> JsonObject:
    """Write the result to stdout; returns the document, which says so when that was not possible."""
    if output in (None, "jsonl") or stdout_problem() is not None:
        return result.transcript
    try:
        write_stream(sys.stdout, [stdout_json(result.transcript)] if output == "json" else _answer_lines(result))
    except OSError as error:
        return _amended(result, f"the result could not be written to stdout: {os.strerror(error.errno or 0)}")
    return result.transcript


def write_stream(stream: TextIO, chunks: Iterable[str]) -> None:
    """Write and flush; OSError when the stream does not take it, and nothing is tried again at exit."""
    try:
        stream.writelines(chunks)
        stream.flush()
    except OSError:
        # Python flushes once more at exit, and would end with a code of its own.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def write_record_line(line: str) -> None:
    """A line of the journal as it is written, for `--output jsonl`; a reader that has gone is no reason to stop."""
    with suppress(OSError):
        write_stream(sys.stdout, [line.replace("##[", "#\\u0023[")])


def check_answer_file(path: Path) -> None:
    """Raise ConfigurationError now rather than after the run when the answer could not be written there."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError(f"the answer file {str(path)!r} cannot be written: name a file in an existing folder")


def write_answer(path: Path, result: RunResult) -> None:
    """The structured output as JSON when there is one, else the final text."""
    structured: Json = result.transcript["result"]["structured_output"]
    text = result.answer if structured is None else json_text(structured)
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        problem = os.strerror(error.errno or 0)
        raise ConfigurationError(f"the answer file {str(path)!r} cannot be written: {problem}") from error


def _answer_lines(result: RunResult) -> list[str]:
    """The answer, harmless to a terminal; in GitHub Actions each line behind a prefix, so that none is a command.

    Nothing at all when there is no answer: an empty line would look like one.
    """
    if not result.answer:
        return []
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return [prefixed(result.answer), "\n"]
    return ["\n".join(printable(line) for line in result.answer.split("\n")), "\n"]


def _amended(result: RunResult, problem: str) -> JsonObject:
    """The document of a run that went well until nobody took its result; in its file, too."""
    document = amend_result(result.transcript, result.exit_code or EXIT_NEGATIVE, problem)
    if result.transcript_path is not None and result.transcript_path.suffix != ".jsonl":
        write_document(result.transcript_path, document)
    return document
