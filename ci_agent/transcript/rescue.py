"""The record of a run whose journal or folder a command has taken away: put where it belongs, or else aside."""

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ci_agent.errors import RecordError
from ci_agent.exit_codes import EXIT_CODES
from ci_agent.json_types import JsonObject
from ci_agent.transcript.document import amend_result, replace_file

Render: TypeAlias = Callable[[JsonObject], Iterable[str]]
"""The text of a record from its document."""


class FinishedRecord(NamedTuple):
    document: JsonObject
    path: Path
    """Where the record stands that was asked for."""


def save_record(path: Path, document: JsonObject, render: Render) -> FinishedRecord:
    """Write the record at its path, whose folder is made again when it is gone. Where that is impossible, write it
    into a new private folder, which the document then names. Raises RecordError when that, too, is impossible."""
    try:
        _make_folder(path.parent)
        replace_file(path, render(document))
    except OSError as error:
        return _put_aside(path, document, render, error)
    return FinishedRecord(document, path)


def _put_aside(path: Path, document: JsonObject, render: Render, error: OSError) -> FinishedRecord:
    why = f"the transcript {str(path)!r} cannot be written: {error.strerror}"
    try:
        folder = tempfile.mkdtemp(prefix="ci-agent-record-")
        aside = Path(os.path.realpath(folder)) / path.name
        told = _with_error(document, f"{why}; it is {str(aside)!r}")
        replace_file(aside, render(told))
    except OSError:
        raise RecordError(f"{why}; nor can a temporary file") from error
    return FinishedRecord(told, aside)


def _with_error(document: JsonObject, problem: str) -> JsonObject:
    ending = document["result"]
    exit_code = ending["exit_code"] or EXIT_CODES["tampered"].code
    return amend_result(document, exit_code, "; ".join(filter(None, [ending["error"], problem])))


def _make_folder(folder: Path) -> None:
    """With those above it, as far as they are missing; nothing is made behind a link. Raises OSError."""
    if not os.path.lexists(folder):
        _make_folder(folder.parent)
        folder.mkdir()
    elif os.path.realpath(folder) != str(folder):
        raise OSError(0, "its folder leads somewhere else by now", str(folder))
