"""What the commands on transcripts have in common: their arguments, and the policy for each run's workspace."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from ci_agent.cli.options import blamed_on
from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.recorded import RecordedRun
from ci_agent.policy.decide import Policy
from ci_agent.ready_policy import load_policy
from ci_agent.recorded_runs import FoundFiles, Whereabouts, find_transcripts, read_recorded_run, whereabouts
from ci_agent.terminal import printable
from ci_agent.transcript.journal import JOURNAL_SUFFIX

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A recorded run, with the policy that is held against it."""

    run: RecordedRun
    where: Whereabouts
    policy: Policy


@dataclass(frozen=True, slots=True)
class ReadRuns:
    files: FoundFiles
    runs: tuple[ReadRun, ...]


def record_arguments(command: Decorated) -> Decorated:
    """`TRANSCRIPT|FOLDER...` as `paths`, and `--workspace DIR`."""
    text = (
        "The folder that paths are relative to.  [default: where the run worked if that exists, else the current one]"
    )
    with_workspace = click.option("--workspace", metavar="DIR", help=text)(command)
    paths = click.argument(
        "paths", metavar="TRANSCRIPT|FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path)
    )
    return paths(with_workspace)


def read_runs(policy_name: str, paths: Sequence[Path], workspace: str | None) -> ReadRuns:
    """Every run at the paths, with the policy compiled for its workspace.

    The policy comes first: when it is invalid, no transcript is read.
    """
    with blamed_on("policy_name"):
        policies = {workspace or ".": load_policy(policy_name, workspace=workspace or ".")}
    files = find_transcripts(paths)
    runs = []
    for path in files.transcripts:
        run = read_recorded_run(path)
        where = whereabouts(run, workspace)
        if where.folder not in policies:
            policies[where.folder] = load_policy(policy_name, workspace=where.folder)
        runs.append(ReadRun(run, where, _with_record(policies[where.folder], path.resolve())))
    return ReadRuns(files, tuple(runs))


def where_lines(read: ReadRuns) -> Iterator[str]:
    """For a person: in which folder the calls were decided, and why there; which files were passed over."""
    runs_by_place: dict[Whereabouts, list[RecordedRun]] = {}
    for each in read.runs:
        runs_by_place.setdefault(each.where, []).append(each.run)
    for where, runs in runs_by_place.items():
        yield f"decided in {printable(str(Path(where.folder).resolve()))}{_why(where, runs)}"
    if read.files.passed_over:
        yield "no transcripts: " + ", ".join(printable(str(path)) for path in read.files.passed_over)


def where_json(read: ReadRuns) -> JsonObject:
    """The same for a program."""
    return {
        "transcripts": [
            {
                "transcript": each.run.transcript,
                "workspace": str(each.policy.site.workspace.root),
                "workspace_is": each.where.why,
            }
            for each in read.runs
        ],
        "passed_over": [str(path) for path in read.files.passed_over],
    }


def _with_record(policy: Policy, path: Path) -> Policy:
    """As in the run, where its record was out of reach: else a denial for that reason would look like a change."""
    around = policy.site.around
    records = (*around.records, path, path.with_name(path.name + JOURNAL_SUFFIX))
    return replace(policy, site=replace(policy.site, around=replace(around, records=records)))


def _why(where: Whereabouts, runs: Sequence[RecordedRun]) -> str:
    if where.why == "given":
        return ""
    if where.why == "recorded":
        return ", where the run worked" if len(runs) == 1 else f", where {len(runs)} runs worked"
    missing = sorted({printable(run.workspace) for run in runs if run.workspace is not None})
    return f", because {', '.join(missing)} is not here" if missing else ", because no workspace is on record"
