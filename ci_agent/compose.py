"""The composition root: settings in, objects wired, one run, its result out. The only module that knows everything."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent.cancellation import CancelToken
from ci_agent.ci_services.environment import detect_ci
from ci_agent.ending import Happened, conclude_run
from ci_agent.errors import ConfigurationError, RecordError
from ci_agent.hooked_loop import Witnesses, run_hooked_loop
from ci_agent.json_types import JsonObject
from ci_agent.process import Processes, open_processes
from ci_agent.run_parts import Invocation, RunParts, build_parts, make_spill_folder
from ci_agent.run_precautions import WatchedFiles, secrets_of, warnings_of, watch_files
from ci_agent.run_settings import Observers, RunResult, RunSettings
from ci_agent.run_start import first_lines, start_of_run
from ci_agent.sandbox.private_folder import REMOVED_WITHIN_S
from ci_agent.schedule.lock import hold_lock
from ci_agent.transcript.place import find_place, finish_record, open_journal
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.run_facts import RunEnding

if TYPE_CHECKING:
    from ci_agent.tracing import RunTrace

_REMOVED_AFTER_CANCEL_WITHIN_S = 1.0
"""The temporary files of a run that was cancelled."""


def create_redactor(settings: RunSettings) -> Redactor:
    """What keeps the run's secrets out of everything that is written; ConfigurationError for one too short to hide."""
    return Redactor(secrets_of(settings))


def run(
    settings: RunSettings,
    *,
    cancel: CancelToken | None = None,
    observers: Observers | None = None,
    redactor: Redactor | None = None,
    processes: Processes | None = None,
) -> RunResult:
    """Run to the end and say how it went. Nothing is printed, and no signal is handled. What the command refuses about
    the place it is started in is the caller's to refuse: `/` as a workspace that nobody named, files of the run in a
    git folder or over the policy, rules out of a pull request's own checkout.

    `redactor`, `processes` None: the run's own. Raises ConfigurationError before anything starts, BusyError when
    another run holds the transcript or the lock, RecordError when the record can no longer be written. A bug passes as
    it is, after the record has been closed.
    """
    observers, cancel = observers or Observers(), cancel or CancelToken()
    redactor = redactor or create_redactor(settings)
    place = find_place(settings.transcript)
    with ExitStack() as stack:
        processes = processes or stack.enter_context(open_processes())
        run_id = str(uuid.uuid4())
        trace = stack.enter_context(_tracing(settings, run_id, redactor, observers))
        invocation = Invocation(
            run_id=run_id,
            place=place,
            processes=processes,
            redactor=redactor,
            now=_now,
            trace_variables=trace.variables() if trace else {},
        )
        parts = build_parts(settings, invocation)
        stack.callback(parts.models.close)
        stack.callback(lambda: parts.commands.temporary.remove(_removed_within_s(cancel)))
        lock = stack.enter_context(hold_lock(settings.lock)) if settings.lock else None
        make_spill_folder(settings.spill_folder)
        journal, recovered = open_journal(place)
        stack.callback(journal.close)
        journal.on_record = observers.record
        witnesses = Witnesses(Recorder(journal, redactor, _now, time.monotonic), redactor, observers, trace)
        watched = stack.enter_context(watch_files(settings, parts, lock))
        processes.prepare()
        warnings = list(warnings_of(settings, parts, cancel))  # where it fails, nothing has begun
        witnesses.recorder.run_start(start_of_run(settings, parts))
        witnesses.tell(first_lines(settings, parts, recovered), warnings)
        happened = run_hooked_loop(settings, parts, witnesses, watched.closed, cancel)
        happened, changed = _compare(happened, watched)
        ending = conclude_run(happened, settings, journal_changed=not journal.is_intact(), files_changed=changed)
        witnesses.end(ending, parts.proposals)
        with _told_to_the_journal(witnesses.recorder, ending):
            record = finish_record(journal, place, keep_journal=settings.keep_journal)
        proposals = _proposed(settings, parts, ending.exit_code)
    if happened.bug is not None:
        raise happened.bug
    return RunResult(ending.reason, ending.exit_code, record.document, settings.transcript and record.path, proposals)


@contextmanager
def _told_to_the_journal(recorder: Recorder, ending: RunEnding) -> Iterator[None]:
    """Where no document comes to be, the run ends otherwise than its journal tells: what is recovered shall say so."""
    try:
        yield
    except RecordError as error:
        cause = error.__cause__ if isinstance(error.__cause__, RecordError) else error  # without where the journal is
        problems = "; ".join(filter(None, [ending.error, str(cause)]))
        with suppress(RecordError):
            recorder.run_end(replace(ending, exit_code=error.exit_code, error=problems))
        raise


def _removed_within_s(cancel: CancelToken) -> float:
    return _REMOVED_AFTER_CANCEL_WITHIN_S if cancel.is_cancelled else REMOVED_WITHIN_S


def _compare(happened: Happened, watched: WatchedFiles) -> tuple[Happened, Sequence[Path]]:
    """What was changed that no tool may change; where nobody can tell, that is how the run ended."""
    moved = watched.moved()
    try:
        return happened, [*watched.written(), *moved]
    except OSError as error:
        return replace(happened, bug=happened.bug or error), moved


def _proposed(settings: RunSettings, parts: RunParts, exit_code: int) -> JsonObject | None:
    if parts.proposals is None:
        return None
    source, ci = settings.policy.source, detect_ci(settings.environment)
    return parts.proposals.document(
        run_id=parts.invocation.run_id,
        exit_code=exit_code,
        policy=source.name,
        sha256=source.sha256,
        repository=ci.repository if ci else None,
    )


@contextmanager
def _tracing(
    settings: RunSettings, run_id: str, redactor: Redactor, observers: Observers
) -> "Iterator[RunTrace | None]":
    """The run's spans; None when nobody asked for them, and then nothing of OpenTelemetry is imported."""
    if not settings.trace:
        yield None
        return
    try:
        from ci_agent.tracing import traced_run  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"traces need the extra otel of ci-agent (docs/tracing.md): {error}") from error
    with traced_run(settings.environment, settings.model, run_id, redactor.text, observers.note) as trace:
        yield trace


def _now() -> datetime:
    return datetime.now(UTC)
