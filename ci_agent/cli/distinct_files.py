"""What a run leaves goes to files of its own: not two results into one, and none over what the run is made of, or into
the repository's own files."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from ci_agent.cli.destinations import RESULTS
from ci_agent.cli.options import given_config
from ci_agent.cli.report_files import named_report
from ci_agent.cli.repository_places import refuse_repository_place
from ci_agent.run_settings import RunSettings
from ci_agent.transcript.place import find_place

_MADE_OF: Final = {
    "task": "--task",
    "output_schema": "--output-schema",
    "models_file": "--models-file",
    "ca_file": "--ca-file",
    "api_key_file": "--api-key-file",
}
"""Options whose files are read by the next run too, by their parameters' names."""


def refuse_shared_files(flags: Mapping[str, Any], settings: RunSettings) -> None:
    """Raise UsageError for a file that would be written twice, over the policy, the task, the key or their like, or in
    a git folder."""
    if settings.spill_folder is not None:
        refuse_repository_place(settings.spill_folder, "--spill-dir")
    taken = {os.path.realpath(path): f"{path} is what {what} reads" for path, what in _read(flags, settings)}
    for path, option in _written(flags, settings):
        refuse_repository_place(path, option)
        place = os.path.realpath(path)
        if _is_stream(path):
            continue
        if place in taken:
            raise click.UsageError(f"{option} cannot go there: {taken[place]}. Name another file.")
        taken[place] = f"{path} is where {option} goes"


def _read(flags: Mapping[str, Any], settings: RunSettings) -> Iterator[tuple[str, str]]:
    source = settings.policy.source
    for file in (*source.files, *source.links):
        yield str(file), "--policy"
    for name, option in _MADE_OF.items():
        if flags[name] is not None:
            yield flags[name], option
    config, (kind, _, played) = given_config(), settings.model.partition(":")
    if config is not None:
        yield config, "--config"
    if kind in ("scripted", "replay"):
        yield played, "--model"


def _written(flags: Mapping[str, Any], settings: RunSettings) -> Iterator[tuple[str, str]]:
    if settings.transcript is not None:
        place = find_place(settings.transcript)
        yield from ((str(path), "--transcript") for path in (place.document, place.journal) if path is not None)
    for name, option in RESULTS.items():
        if name != "transcript" and flags[name] is not None:
            yield flags[name], option
    for given in flags["report"]:
        name, file = named_report(given)
        yield str(file), f"--report {name}"


def _is_stream(path: str) -> bool:
    """Whether what is written there follows what was, as to a pipe or a terminal."""
    try:
        return Path(path).parts[:2] in (("/", "dev"), ("/", "proc")) or not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
