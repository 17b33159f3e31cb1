"""What a run keeps, watches and warns of, so that commands do not get hold of what is not theirs."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.ci_services.environment import runner_command_files
from ci_agent.command_parts import outside_alone
from ci_agent.precautions.closed_files import ClosedFiles, watch_closed_files
from ci_agent.precautions.exposures import find_exposures
from ci_agent.precautions.fingerprints import Fingerprints, changed_since, take_fingerprints
from ci_agent.precautions.git_refusals import why_git_refuses
from ci_agent.process import Processes
from ci_agent.run_parts import Invocation, RunParts, build_parts
from ci_agent.run_settings import RunSettings
from ci_agent.schedule.lock import HeldLock
from ci_agent.spelling import listed
from ci_agent.transcript.place import find_place
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.secret_sources import collect_secrets


def secrets_of(settings: RunSettings) -> tuple[str, ...]:
    """The values that nothing may show; ConfigurationError for one too short to hide."""
    keys = filter(None, [settings.model_settings.api_key])
    return collect_secrets(settings.environment, named=settings.secret_env, keys=keys)


def _guarded_files(settings: RunSettings) -> tuple[Path, ...]:
    """What only the CI runner and the person write. The policy denies it already; a program may do it all the same."""
    policy = settings.policy.source
    return (*runner_command_files(settings.environment), *map(Path, (*policy.files, *policy.links)))


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """What no tool may write, move or link, as it was before the first one ran."""

    guarded: Sequence[Path]
    before: Fingerprints
    closed: ClosedFiles
    lock: HeldLock | None

    def written(self) -> list[Path]:
        """OSError where nobody can tell."""
        return changed_since(self.before, self.guarded)

    def moved(self) -> list[Path]:
        lost = [self.lock.path] if self.lock and not self.lock.is_found() else []
        return [*self.closed.displaced(), *lost]


@contextmanager
def watch_files(settings: RunSettings, parts: RunParts, lock: HeldLock | None) -> Iterator[WatchedFiles]:
    guarded = _guarded_files(settings)
    before = take_fingerprints(guarded)
    with watch_closed_files(parts.commands.closed) as closed:
        yield WatchedFiles(guarded, before, closed, lock)


def warnings_of(settings: RunSettings, parts: RunParts, cancel: CancelToken) -> Iterator[str]:
    """One line for each thing about this place that a person should know before trusting it with a run."""
    if parts.commands.repository_programs:
        yield (
            f"the configuration of the repository names programs that git does not run for commands: "
            f"{listed(parts.commands.repository_programs)}. To have one run, spell it: git -c KEY=VALUE ..."
        )
    if not any(tool.name == "bash" for tool in parts.offered):
        return
    processes = parts.invocation.processes
    environment = outside_alone(parts.commands.environment, parts.workspace)
    refusal = why_git_refuses(parts.workspace.root, environment, processes, cancel)
    if refusal is not None:
        yield refusal
    # A sandbox keeps commands from other processes: nothing is exposed to them.
    if parts.commands.sandbox.kind == "none":
        yield from find_exposures(secrets_of(settings), environment, processes, cancel)


def look_at_start(settings: RunSettings, processes: Processes, cancel: CancelToken) -> Iterator[str]:
    """The warnings of a run that is not started; ConfigurationError for what would keep it from starting."""
    invocation = Invocation(
        run_id=str(uuid.uuid4()),
        place=find_place(settings.transcript),
        processes=processes,
        redactor=Redactor(secrets_of(settings)),
        now=lambda: datetime.now(UTC),
    )
    parts = build_parts(settings, invocation)
    try:
        yield from warnings_of(settings, parts, cancel)
    finally:
        parts.models.close()
