"""What a run leaves for the next one in a folder: how it ended, and which revision it saw."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ci_agent.errors import ConfigurationError
from ci_agent.git_files import find_commit
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.text_files import read_text_file
from ci_agent.transcript.document import replace_file
from ci_agent.transcript.plain_json import json_text

STATE_FILE: Final = "last-run.json"
SCHEMA: Final = "ci-agent.last-run/1"

StateKey: TypeAlias = Literal["revision", "started_at"]

_REVISION: Final = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True)
class PastRun:
    run_id: str
    started_at: str
    reason: str
    exit_code: int
    revision: str | None
    """The commit that was checked out when the run began; None: no repository."""
    transcript: str | None
    """Absolute path of its record."""


@dataclass(frozen=True, slots=True)
class RunState:
    last: PastRun
    last_good: PastRun | None
    """The last one that ended with exit code 0; None: none did yet."""


def read_state(folder: Path) -> RunState | None:
    """What earlier runs left; None: nothing yet. ConfigurationError when it is not what a run wrote."""
    path = folder / STATE_FILE
    if not os.path.lexists(path):
        return None
    try:
        return _state(parse_json(read_text_file(path, "state of the last run")))
    except ValueError as error:
        raise ConfigurationError(
            f"the state of the last run, {str(path)!r}, is not what ci-agent wrote: {error}; move it away to begin anew"
        ) from error


def write_state(folder: Path, before: RunState | None, run: PastRun) -> None:
    """In one step, so that a reader finds the old or the new one. Raises OSError."""
    good_before = None if before is None else before.last_good
    good = run if run.exit_code == 0 else good_before
    state: JsonObject = {"schema": SCHEMA, "last": asdict(run), "last_good": None if good is None else asdict(good)}
    replace_file(folder / STATE_FILE, [json_text(state), "\n"])


def past_run(document: JsonObject, revision: str | None, transcript: Path | None) -> PastRun:
    """Of the record of a run that has ended."""
    run, result = document["run"], document["result"]
    record = None if transcript is None else str(transcript.absolute())
    return PastRun(run["id"], run["started_at"], result["reason"], result["exit_code"], revision, record)


def state_values(state: RunState | None, workspace: Path, environment: Mapping[str, str]) -> dict[StateKey, str]:
    """What a task may ask of the last good run. A revision that the repository no longer has is left out."""
    good = None if state is None else state.last_good
    if good is None:
        return {}
    values: dict[StateKey, str] = {"started_at": good.started_at}
    if good.revision is not None and _asked(workspace, environment, good.revision) is not None:
        values["revision"] = good.revision
    return values


def seen_revision(workspace: Path, environment: Mapping[str, str]) -> str | None:
    """The commit that is checked out; None: no repository, no commit yet, no git."""
    return _asked(workspace, environment, "HEAD")


def _asked(workspace: Path, environment: Mapping[str, str], revision: str) -> str | None:
    try:
        return find_commit(revision, workspace, environment)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _state(value: Json) -> RunState:
    """Raises ValueError."""
    if not isinstance(value, dict) or set(value) != {"schema", "last", "last_good"} or value["schema"] != SCHEMA:
        raise ValueError(f"it is no {SCHEMA}")
    return RunState(_past_run(value["last"]), None if value["last_good"] is None else _past_run(value["last_good"]))


def _past_run(value: Json) -> PastRun:
    """Raises ValueError."""
    if not isinstance(value, dict) or set(value) != {field.name for field in fields(PastRun)}:
        raise ValueError("keys of a run are missing or too many")
    optional = {"revision", "transcript"}
    for name, entry in value.items():
        wanted = int if name == "exit_code" else str
        if not (isinstance(entry, wanted) and not isinstance(entry, bool)) and not (name in optional and entry is None):
            raise ValueError(f"{name} is of the wrong type")
    if value["revision"] is not None and not _REVISION.fullmatch(value["revision"]):
        raise ValueError("revision is no name of a commit")
    if not _TIME.fullmatch(value["started_at"]):
        raise ValueError("started_at is no time")
    return PastRun(**value)
