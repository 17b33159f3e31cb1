"""Several policies in one command: one that is invalid is named, and does not keep the others from being looked at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import click

from ci_agent.cli.options import echo_json
from ci_agent.cli.stderr import show_error
from ci_agent.errors import EXIT_NEGATIVE, ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import Policy
from ci_agent.ready_policy import load_policy

Report = TypeVar("Report")


@dataclass(frozen=True, slots=True)
class Examination(Generic[Report]):
    """What a command does with each policy that it is given."""

    examine: Callable[[Policy], Report]
    passed: Callable[[Report], bool]
    as_text: Callable[[Report], str]
    as_json: Callable[[Report], JsonObject]


def examine_each(names: Sequence[str], workspace: str, output_format: str, examination: Examination[Report]) -> int:
    """Print a report on each policy, on stderr what is wrong with an invalid one; the worst exit code of them all."""
    documents: list[JsonObject] = []
    exit_codes = [0]
    for name in names:
        try:
            policy = load_policy(name, workspace=workspace)
        except ConfigurationError as error:
            show_error(error)
            documents.append({"policy": name, "passed": False, "problems": str(error).splitlines()})
            exit_codes.append(error.exit_code)
            continue
        report = examination.examine(policy)
        exit_codes.append(0 if examination.passed(report) else EXIT_NEGATIVE)
        if output_format == "json":
            documents.append({**examination.as_json(report), "problems": []})
        else:
            click.echo(examination.as_text(report))
    if output_format == "json":
        echo_json(documents)
    return max(exit_codes)
