"""`--report FORMAT=FILE`: reports that a run writes when it has ended, or when it was refused."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import click

from ci_agent.cli.destinations import Destination, find_destination, put
from ci_agent.cli.repository_places import repository_place
from ci_agent.json_types import JsonObject
from ci_agent.reports.refusal import Refusal, refused_document
from ci_agent.reports.table import FORMATS, renderer
from ci_agent.spelling import did_you_mean
from ci_agent.transcript.document import write_new_file

Report: TypeAlias = tuple[str, Destination]
"""A format and where it goes; the same format may go to several places."""


def read_reports(given: Sequence[str]) -> list[Report]:
    """BadParameter, or ConfigurationError for a file that could not be written at the run's end."""
    return [(name, find_destination(file, "report")) for name, file in map(named_report, given)]


def named_report(given: str) -> tuple[str, Path]:
    """The format and the file of FORMAT=FILE."""
    name, equals, file = given.partition("=")
    if not equals or not file:
        raise click.BadParameter(f"{given!r} is not FORMAT=FILE", param_hint="--report")
    if name not in FORMATS:
        hint = did_you_mean(name, FORMATS)
        raise click.BadParameter(f"there is no report {name!r}{hint} ({', '.join(FORMATS)})", param_hint="--report")
    _require_one_report(given)
    return name, Path(file)


def _require_one_report(given: str) -> None:
    """BadParameter for several in one: they would all go to a single file of an odd name."""
    second = next((word for word in given.split()[1:] if word.partition("=")[0] in FORMATS and "=" in word), None)
    if second is not None:
        problem = (
            f"{given!r} holds more than one report: give {second!r} and the others with a --report each, "
            f"and in the variable CI_AGENT_REPORT one a line"
        )
        raise click.BadParameter(problem, param_hint="--report")


def write_refusal_reports(given: Iterable[str], others: Iterable[str], refusal: Refusal) -> Iterator[str]:
    """Write what an upload or a test page waits for; yields why one could not be written, unless the refusal says so.

    Nobody has looked yet at what a run was refused for, so nothing that is there is replaced, no link is followed, and
    a name that is asked for twice, or for one of the run's `others` results, is left free.
    """
    document = refused_document(refusal)
    named: list[tuple[str, Path]] = []
    for report in given:
        with suppress(click.BadParameter):
            named.append(named_report(report))
    asked = Counter(map(_place, [*others, *(str(file) for _, file in named)]))
    for name, file in named:
        if str(file) != "-" and asked[_place(str(file))] == 1:
            try:
                _write_new(file, renderer(name)(document))
            except (OSError, ValueError) as error:
                if not _is_told_by(refusal, str(file)):
                    yield f"the report {str(file)!r} is not written: {_why(error)}"


def _is_told_by(refusal: Refusal, file: str) -> bool:
    """Whether the run was refused for where this report was to go."""
    words = (f"the report {file!r} cannot be written", f"cannot go there: {file} ", f"{file!r} leads out of ")
    return any(said in refusal.message for said in words)


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, FileExistsError):
        return "a file is there already and is left as it was"
    return getattr(error, "strerror", None) or str(error)


def _place(file: str) -> str:
    """Where the name leads; itself when that cannot be told."""
    try:
        return os.path.realpath(file)
    except (OSError, ValueError):
        return file


def _write_new(file: Path, report: str) -> None:
    """Raises OSError or ValueError where that is not possible, or a link is on the way."""
    path = Path(os.path.normpath(Path(os.path.realpath("."), file)))
    if path != Path(os.path.realpath(path)):
        raise ValueError("its name is a link, or leads through one")
    problem = repository_place(path)
    if problem is not None:
        raise ValueError(f"it {problem}")
    write_new_file(path, [report], beside=path)


def write_reports(document: JsonObject, reports: Iterable[Report]) -> str | None:
    """Write each; why one could not be written, None when all are there."""
    problems = []
    for name, destination in reports:
        try:
            put(destination, [renderer(name)(document)])
        except OSError as error:
            problems.append(f"the report {str(destination.given)!r} cannot be written: {error.strerror}")
    return "; ".join(problems) or None
