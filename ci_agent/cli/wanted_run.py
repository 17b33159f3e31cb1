"""The run that a command line asks for, with the places its result goes to; all that is wrong with it is said here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent.ci_services.github_step import check_publishing
from ci_agent.cli.destinations import Destination, find_destination
from ci_agent.cli.distinct_files import refuse_shared_files
from ci_agent.cli.report_files import Report, read_reports
from ci_agent.cli.run_flags import optional_path, read_settings
from ci_agent.cli.schedule import Schedule
from ci_agent.run_settings import RunSettings


@dataclass(frozen=True, slots=True)
class WantedRun:
    settings: RunSettings
    reports: Sequence[Report]
    answer_file: Destination | None


def read_wanted_run(flags: Mapping[str, Any], schedule: Schedule) -> WantedRun:
    """A usage or configuration error for what is wrong with it; nothing is started or written."""
    settings = read_settings(flags, schedule)
    refuse_shared_files(flags, settings)
    check_publishing(flags["publish"], settings.environment)
    reports = read_reports(flags["report"])
    given_answer = optional_path(flags["answer_file"])
    return WantedRun(settings, reports, find_destination(given_answer, "answer file") if given_answer else None)
