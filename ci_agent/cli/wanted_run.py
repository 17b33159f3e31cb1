"""The run that a command line asks for, with the places its result goes to; all that is wrong with it is said here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from ci_agent.ci_services.github_step import check_publishing
from ci_agent.cli.destinations import find_destination
from ci_agent.cli.distinct_files import refuse_shared_files
from ci_agent.cli.output import Outlets, find_proposals_file
from ci_agent.cli.report_files import read_reports
from ci_agent.cli.run_flags import optional_path, read_settings
from ci_agent.cli.schedule import Schedule
from ci_agent.run_settings import RunSettings


@dataclass(frozen=True, slots=True)
class WantedRun:
    settings: RunSettings
    outlets: Outlets


def read_wanted_run(flags: Mapping[str, Any], schedule: Schedule) -> WantedRun:
    """A usage or configuration error for what is wrong with it; nothing is started or written."""
    _refuse_two_manners()
    settings = read_settings(flags, schedule)
    refuse_shared_files(flags, settings)
    check_publishing(flags["publish"], settings.environment)
    reports = read_reports(flags["report"])
    answer_file, proposals_file = optional_path(flags["answer_file"]), optional_path(flags["proposals"])
    outlets = Outlets(
        stdout=flags["output"] or (None if flags["quiet"] else "json"),
        answer_file=find_destination(answer_file, "answer file") if answer_file else None,
        reports=reports,
        proposals_file=find_proposals_file(proposals_file) if proposals_file else None,
    )
    return WantedRun(settings, outlets)


def _refuse_two_manners() -> None:
    """On one command line they contradict each other; a flag there may well overrule a variable."""
    ctx = click.get_current_context()
    if all(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ("quiet", "verbose")):
        raise click.UsageError("--quiet and --verbose contradict each other: give one of them.")
