"""What a run keeps, watches and warns of, so that commands do not get hold of what is not theirs."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.ci_services.environment import runner_command_files
from ci_agent.precautions.exposures import find_exposures
from ci_agent.precautions.git_refusals import why_git_refuses
from ci_agent.process import Processes
from ci_agent.run_parts import RunParts, build_parts, outside_alone
from ci_agent.run_settings import RunSettings
from ci_agent.spelling import listed
from ci_agent.transcript.place import find_place
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.secret_sources import collect_secrets


def secrets_of(settings: RunSettings) -> tuple[str, ...]:
    """The values that nothing may show; ConfigurationError for one too short to hide."""
    keys = filter(None, [settings.model_settings.api_key])
    return collect_secrets(settings.environment, named=settings.secret_env, keys=keys)


def guarded_files(settings: RunSettings) -> tuple[Path, ...]:
    """What only the CI runner and the person write. The policy denies it already; a program may do it all the same."""
    policy = settings.policy.source
    return (*runner_command_files(settings.environment), *map(Path, (*policy.files, *policy.links)))


def warnings_of(settings: RunSettings, parts: RunParts, processes: Processes, cancel: CancelToken) -> Iterator[str]:
    """One line for each thing about this place that a person should know before trusting it with a run."""
    if parts.repository_programs:
        yield (
            f"the configuration of the repository names programs that git does not run for commands: "
            f"{listed(parts.repository_programs)}. To have one run, spell it: git -c KEY=VALUE ..."
        )
    if not any(tool.name == "bash" for tool in parts.offered):
        return
    environment = outside_alone(parts.environment, parts.workspace)
    refusal = why_git_refuses(parts.workspace.root, environment, processes, cancel)
    if refusal is not None:
        yield refusal
    # A sandbox keeps commands from other processes: nothing is exposed to them.
    if parts.sandbox.kind == "none":
        yield from find_exposures(secrets_of(settings), environment, processes, cancel)


def look_at_start(settings: RunSettings, processes: Processes, cancel: CancelToken) -> Iterator[str]:
    """The warnings of a run that is not started; ConfigurationError for what would keep it from starting."""
    parts = build_parts(
        settings,
        find_place(settings.transcript),
        processes,
        lambda: datetime.now(UTC),
        run_id=str(uuid.uuid4()),
        trace_variables={},
        redactor=Redactor(secrets_of(settings)),
    )
    try:
        yield from warnings_of(settings, parts, processes, cancel)
    finally:
        parts.models.close()
