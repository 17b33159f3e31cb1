"""The options of `run` for runs that come again and again: what one leaves for the next, and how many records stay."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from ci_agent.cli.options import Count, option
from ci_agent.cli.repository_places import refuse_repository_place
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.schedule.lock import hold_lock
from ci_agent.schedule.run_state import (
    STATE_FILE,
    RunState,
    StateKey,
    past_run,
    read_state,
    seen_revision,
    state_values,
    write_state,
)
from ci_agent.schedule.transcript_folder import new_transcript, recover_killed_runs, remove_old_transcripts
from ci_agent.workspace import real_path, way

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_LOCK = "lock"

_OPTIONS = (
    option(
        "--state-dir",
        once=True,
        metavar="DIR",
        help="Leave for the next run how this one ended, and lock out a second one.",
    ),
    option("--transcript-dir", metavar="DIR", help="Write the record here, under a name of its own."),
    option("--keep-transcripts", type=Count(), help="Of those keep the newest N."),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    transcript: Path | None
    state_folder: Path | None
    before: RunState | None
    """What earlier runs left."""
    values: Mapping[StateKey, str]
    """What of it a task may ask for."""
    revision: str | None
    """What is checked out now."""

    @property
    def state_files(self) -> tuple[Path, ...]:
        return () if self.state_folder is None else (self.state_folder / STATE_FILE, self.state_folder / _LOCK)


def schedule_options(command: Decorated) -> Decorated:
    """`--state-dir`, `--transcript-dir` and `--keep-transcripts`."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


@contextmanager
def open_schedule(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Schedule]:
    """Hold the state folder, from before it is read until it is written, or raise BusyError at once."""
    if flags["state_dir"] is None:
        yield Schedule(_transcript(flags, _private_folder), None, None, {}, None)
        return
    folder, workspace = _private_folder(flags["state_dir"], "state", flags["workspace"]), Path(flags["workspace"])
    transcript = _transcript(flags, _private_folder)
    with hold_lock(folder / _LOCK):
        before = read_state(folder)
        values = state_values(before, workspace, environment)
        yield Schedule(transcript, folder, before, values, seen_revision(workspace, environment))


def look_at_schedule(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Schedule:
    """What `open_schedule` would give a run; nothing is made, held or written."""
    if flags["state_dir"] is None:
        return Schedule(_transcript(flags, _find_private_folder), None, None, {}, None)
    folder = _find_private_folder(flags["state_dir"], "state", flags["workspace"])
    before = read_state(folder)
    values = state_values(before, Path(flags["workspace"]), environment)
    return Schedule(_transcript(flags, _find_private_folder), folder, before, values, None)


def save_state(schedule: Schedule, document: JsonObject, transcript: Path | None) -> str | None:
    """Why it could not be left for the next run; None: it is there, or nobody asked for it."""
    if schedule.state_folder is None:
        return None
    try:
        write_state(schedule.state_folder, schedule.before, past_run(document, schedule.revision, transcript))
    except OSError as error:
        return f"the state {str(schedule.state_folder)!r} cannot be written: {error.strerror}"
    return None


def recover_killed(flags: Mapping[str, Any]) -> Iterator[str]:
    """Yields a line for each earlier run that was killed, whose record is made now."""
    if flags["transcript_dir"] is None:
        return
    try:
        yield from recover_killed_runs(real_path(flags["transcript_dir"]))
    except OSError as error:
        yield f"it cannot be told whether an earlier run was killed: {error}"


def remove_old(flags: Mapping[str, Any]) -> Iterator[str]:
    """Yields a line for each old record that could not be removed."""
    if flags["transcript_dir"] is None or flags["keep_transcripts"] is None:
        return
    try:
        yield from remove_old_transcripts(real_path(flags["transcript_dir"]), flags["keep_transcripts"])
    except OSError as error:
        yield f"old records cannot be removed: {error}"


def _transcript(flags: Mapping[str, Any], find_folder: Callable[[str, str, str], Path]) -> Path | None:
    if flags["transcript_dir"] is None:
        if flags["keep_transcripts"] is not None:
            raise click.UsageError("--keep-transcripts is about the folder that --transcript-dir names.")
        if flags["transcript"] is not None:
            return Path(flags["transcript"])
        if flags["keep_journal"]:
            raise click.UsageError(
                "--keep-journal keeps the journal beside the transcript, and none is asked for: give --transcript FILE."
            )
        return None
    if flags["transcript"] is not None:
        raise click.UsageError("Give --transcript or --transcript-dir, not both.")
    folder = find_folder(flags["transcript_dir"], "transcript", flags["workspace"])
    return new_transcript(folder, datetime.now(UTC))


def _private_folder(given: str, what: str, workspace: str) -> Path:
    """Made when it is missing."""
    folder = _find_private_folder(given, what, workspace)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the {what} folder {given!r} cannot be made: {error.strerror}") from error
    return folder


def _find_private_folder(given: str, what: str, workspace: str) -> Path:
    """What lies in the workspace, tools might change between two runs."""
    root = real_path(workspace)
    try:
        folder = real_path(given)
        passed = [Path(place) for place in way(os.getcwd(), given)]
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"the {what} folder {given!r} cannot be made: {error}") from error
    if any(place.is_relative_to(root) for place in passed[:-1]) and not folder.is_relative_to(root):
        raise ConfigurationError(
            f"the {what} folder {given!r} leads out of the workspace by a link, which tools or the author of a commit "
            f"may have made: name the folder itself"
        )
    if folder.is_relative_to(root):
        raise ConfigurationError(
            f"the {what} folder {given!r} lies in the workspace, where tools may write: put it elsewhere"
        )
    refuse_repository_place(folder, f"--{what}-dir")
    return folder
