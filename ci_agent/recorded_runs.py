"""Transcripts and journals read back as the calls that a policy decided."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.policy.checks.recorded import RecordedAnswer, RecordedCall, RecordedRun, Skip, SkippedCall
from ci_agent.run_hooks.limits import POLICY_NOT_ASKED
from ci_agent.transcript.document import TRANSCRIPT_SCHEMA
from ci_agent.transcript.journal import PRODUCT_SUFFIX, open_record
from ci_agent.transcript.read import read_transcript
from ci_agent.transcript.redact import PLACEHOLDER

_DOCUMENT_SUFFIX: Final = ".json"

_NOT_DECIDED: Final[dict[str | None, Skip]] = {
    "lookup": "lookup",
    "arguments": "arguments",
    "cancelled": "cancelled",
    "truncated_turn": "truncated_turn",
}
"""By the stage of a call without a decision; at any other stage there was nothing to decide it."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    transcripts: tuple[Path, ...]
    passed_over: tuple[Path, ...]
    """JSON files of folders that are something else."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The folder that the calls of a run are decided in."""

    folder: str
    why: Literal["given", "recorded", "current"]
    """By the person; where the run worked; the current folder, because that one is not here."""


def find_transcripts(paths: Iterable[Path]) -> FoundFiles:
    """The files that are named, and every transcript beneath the folders that are; ConfigurationError when a folder
    holds none. A file that is named is taken for a transcript; reading it will tell."""
    transcripts: list[Path] = []
    passed_over: list[Path] = []
    for path in paths:
        if not path.is_dir():
            transcripts.append(path)
            continue
        files = list(_json_files(path))
        found = [file for file in files if _looks_like_a_transcript(file)]
        if not found:
            raise ConfigurationError(f"there is no transcript in the folder {str(path)!r}")
        transcripts += found
        passed_over += [file for file in files if file not in found]
    return FoundFiles(tuple(dict.fromkeys(transcripts)), tuple(passed_over))


def read_recorded_run(path: Path) -> RecordedRun:
    """The calls of a transcript document, or of a journal (`.jsonl`, `.journal`).

    Raises ConfigurationError when the file is neither, BusyError while its run goes on.
    """
    document = read_transcript(path)
    read = [_read_call(str(path), call) for call in document["tool_calls"]]
    return RecordedRun(
        transcript=str(path),
        workspace=document["run"] and document["run"]["workspace"],
        calls=tuple(call for call in read if isinstance(call, RecordedCall)),
        skipped=tuple(call for call in read if isinstance(call, SkippedCall)),
    )


def whereabouts(run: RecordedRun, given: str | None) -> Whereabouts:
    if given is not None:
        return Whereabouts(given, "given")
    if run.workspace is not None and os.path.isdir(run.workspace):
        return Whereabouts(run.workspace, "recorded")
    return Whereabouts(".", "current")


def _read_call(transcript: str, call: JsonObject) -> RecordedCall | SkippedCall:
    why = _why_skipped(call)
    if why is not None:
        return SkippedCall(transcript, call["seq"], call["tool"], why)
    decision = call["decision"]
    answer = RecordedAnswer(decision["effect"], decision["code"], decision["rule_id"], decision["reason"])
    return RecordedCall(transcript, call["seq"], call["tool"], call["arguments"], answer)


def _why_skipped(call: JsonObject) -> Skip | None:
    decision = call["decision"]
    if decision is None:
        return _NOT_DECIDED.get(call["stage"], "no_policy")
    if decision["code"] == "not_offered":
        return "not_offered"
    if decision["code"] == "limit" and decision["reason"].startswith(POLICY_NOT_ASKED):
        return "run_limit"
    if call["arguments"] is None:
        return "not_recorded"
    return "redacted" if PLACEHOLDER in json.dumps(call["arguments"]) else None


def _json_files(folder: Path) -> Iterator[Path]:
    """Every JSON file beneath a folder, in order; links to folders are not followed."""
    for above, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders.sort()
        paths = [Path(above, name) for name in sorted(files) if name.endswith((_DOCUMENT_SUFFIX, PRODUCT_SUFFIX))]
        yield from (path for path in paths if path.is_file())


def _refuse_folder(error: OSError) -> None:
    raise ConfigurationError(f"cannot list the folder {error.filename!r}: {error.strerror}") from error


def _looks_like_a_transcript(path: Path) -> bool:
    """What it says that it is, or cannot say because it is unreadable; whether it is one is for its reader to judge."""
    try:
        with open_record(path) as file:
            read = parse_json((file.readline() if path.name.endswith(PRODUCT_SUFFIX) else file.read()).decode())
    except OSError:
        return True
    except (ConfigurationError, ValueError):
        return False
    if path.name.endswith(PRODUCT_SUFFIX):
        return isinstance(read, dict) and read.get("kind") == "run_start"
    return isinstance(read, dict) and read.get("schema") == TRANSCRIPT_SCHEMA
