"""The composition root: settings in, objects wired, one run, its result out. The only module that knows everything."""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent.agent.loop import LoopConfig, run_loop
from ci_agent.cancellation import CancelToken
from ci_agent.ci_services.environment import detect_ci
from ci_agent.ending import Happened, conclude_run
from ci_agent.errors import CIAgentError, ConfigurationError
from ci_agent.events import AgentEvent, Emit
from ci_agent.hooks import FinishedTurn, GetMessages, Hooks
from ci_agent.json_types import JsonObject
from ci_agent.messages import Message, TextContent, UserMessage
from ci_agent.policy.counting import create_before_tool_call
from ci_agent.precautions.closed_files import ClosedFiles, watch_closed_files
from ci_agent.precautions.fingerprints import Fingerprints, changed_since, take_fingerprints
from ci_agent.process import Processes, open_processes
from ci_agent.prompts import build_user_prompt
from ci_agent.provider import Context, StreamOptions
from ci_agent.replay import ReplayWatch
from ci_agent.run_hooks.guard import Guard
from ci_agent.run_hooks.limits import LimitWatch
from ci_agent.run_hooks.result_budget import ResultBudget
from ci_agent.run_hooks.structured_output import StructuredOutput
from ci_agent.run_parts import RunParts, build_parts
from ci_agent.run_precautions import guarded_files, secrets_of, warnings_of
from ci_agent.run_settings import Observers, RunResult, RunSettings
from ci_agent.run_start import first_lines, start_of_run, system_prompt
from ci_agent.sandbox.private_folder import REMOVED_WITHIN_S
from ci_agent.schedule.lock import hold_lock
from ci_agent.spelling import counted
from ci_agent.transcript.place import find_place, finish_record, open_journal
from ci_agent.transcript.plain_json import plain
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.redact import Redactor

if TYPE_CHECKING:
    from ci_agent.tracing import RunTrace

ABANDON_AFTER_S = 3.0
"""How long a tool that ignores its cancellation is waited for; a cancelled run is over within five seconds."""

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
    """Run to the end and say how it went. Nothing is printed, and no signal is handled.

    `redactor`, `processes` None: the run's own. Raises ConfigurationError before anything starts, BusyError when
    another run holds the transcript or the lock, RecordError when the record can no longer be written. A bug passes as
    it is, after the record has been closed.
    """
    observers = observers or Observers()
    cancel = cancel or CancelToken()
    redactor = redactor or create_redactor(settings)
    place = find_place(settings.transcript)
    with ExitStack() as stack:
        processes = processes or stack.enter_context(open_processes())
        run_id = str(uuid.uuid4())
        tracing = stack.enter_context(_tracing(settings, run_id, redactor, observers))
        variables = tracing.variables() if tracing else {}
        parts = build_parts(
            settings, place, processes, _now, run_id=run_id, trace_variables=variables, redactor=redactor
        )
        stack.callback(parts.models.close)
        stack.callback(lambda: parts.temporary.remove(_removed_within_s(cancel)))
        lock = stack.enter_context(hold_lock(settings.lock)) if settings.lock else None
        journal, recovered = open_journal(place)
        stack.callback(journal.close)
        journal.on_record = observers.record
        recorder = Recorder(journal, redactor, _now, time.monotonic)
        guarded = guarded_files(settings)
        before = take_fingerprints(guarded)
        closed = stack.enter_context(watch_closed_files(parts.closed))
        processes.prepare()
        warnings = list(warnings_of(settings, parts, processes, cancel))  # where it fails, nothing has begun
        recorder.run_start(start_of_run(settings, parts))
        for line in first_lines(settings, parts, place, recovered):
            observers.note(line)
        _warn(warnings, recorder, observers)
        happened = _execute(settings, parts, _Witnesses(recorder, redactor, observers, tracing), closed, cancel)
        happened, changed = _compare(happened, before, guarded)
        changed = [*changed, *closed.displaced()]
        if lock and not lock.is_found():
            changed = [*changed, lock.path]
        ending = conclude_run(happened, settings, journal_changed=not journal.is_intact(), files_changed=changed)
        _note_proposals(parts, recorder)
        recorder.run_end(ending)
        if tracing:
            tracing.end(ending)
        record = finish_record(journal, place, keep_journal=settings.keep_journal)
        proposals = _proposed(settings, parts, ending.exit_code)
    if happened.bug is not None:
        raise happened.bug
    return RunResult(ending.reason, ending.exit_code, record.document, settings.transcript and record.path, proposals)


def _removed_within_s(cancel: CancelToken) -> float:
    return _REMOVED_AFTER_CANCEL_WITHIN_S if cancel.is_cancelled else REMOVED_WITHIN_S


def _warn(warnings: Iterable[str], recorder: Recorder, observers: Observers) -> None:
    for warning in warnings:
        observers.note(f"warning: {warning}")
        recorder.note("security", warning)


def _compare(happened: Happened, before: Fingerprints, guarded: Sequence[Path]) -> tuple[Happened, Sequence[Path]]:
    """What was changed that no tool may change; where nobody can tell, that is how the run ended."""
    try:
        return happened, changed_since(before, guarded)
    except OSError as error:
        return replace(happened, bug=happened.bug or error), ()


def _note_proposals(parts: RunParts, recorder: Recorder) -> None:
    if parts.proposals is not None:
        recorder.note("proposals", counted(len(parts.proposals.proposals), "proposal"))


def _proposed(settings: RunSettings, parts: RunParts, exit_code: int) -> JsonObject | None:
    if parts.proposals is None:
        return None
    source, ci = settings.policy.source, detect_ci(settings.environment)
    return parts.proposals.document(
        run_id=parts.run_id,
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


@dataclass(frozen=True, slots=True)
class _Witnesses:
    """Who is told of the run's events."""

    recorder: Recorder
    redactor: Redactor
    observers: Observers
    trace: "RunTrace | None"


def _execute(
    settings: RunSettings, parts: RunParts, witnesses: _Witnesses, closed: ClosedFiles, cancel: CancelToken
) -> Happened:
    """The loop under its hooks, from the prompt to the reason why it ended."""
    recorder, observers, trace = witnesses.recorder, witnesses.observers, witnesses.trace
    own_cancel = cancel.child()
    watch = LimitWatch(parts.limits, lambda: recorder.is_short_of_room)
    hooks = [closed.before_tool_call, watch.before_tool_call, create_before_tool_call(parts.policy)]
    guard = Guard(hooks, own_cancel.cancel)
    config = LoopConfig(
        model=parts.model,
        stream_fn=parts.models.stream_fn,
        tools=parts.tools,
        now=_now,
        hooks=_hooks(guard, watch, parts.output),
        options=_options(settings, parts),
        abandon_after_s=ABANDON_AFTER_S,
    )
    context = Context(system_prompt(settings, parts), (), parts.offered)
    replay = _replay_watch(parts, witnesses)
    more = [listener.observe for listener in (replay, trace) if listener is not None]
    emit = _emit_to(recorder, watch.observe, observers.observe, *more)
    messages: tuple[Message, ...] = ()
    bug: Exception | None = None
    time_is_up = threading.Event()
    try:
        with _time_limit(parts.limits.timeout_s, own_cancel, time_is_up):
            messages = run_loop([_prompt(settings)], context, config, emit, own_cancel)
    except CIAgentError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the record is closed before it goes on
        bug = error
    return Happened(
        messages=messages,
        bug=bug,
        limit=watch.exceeded,
        stopped_by=guard.stopped_by,
        timed_out_after_s=parts.limits.timeout_s if time_is_up.is_set() else None,
        cancelled=cancel.reason,
        signal=observers.received_signal(),
        tool_calls=recorder.tool_calls,
        denial_fails=recorder.denial_fails,
        failed_by=guard.failed_by,
        output=parts.output,
        divergence=replay.why_failed(settings.fail_on_divergence) if replay else None,
        delivery_problem=observers.delivery_problem(),
    )


def _hooks(guard: Guard, watch: LimitWatch, output: StructuredOutput | None) -> Hooks:
    return Hooks(
        before_tool_call=guard,
        after_tool_call=ResultBudget(),
        should_stop_after_turn=watch.should_stop_after_turn,
        get_follow_up_messages=_correction(output, watch),
    )


def _replay_watch(parts: RunParts, witnesses: _Witnesses) -> ReplayWatch | None:
    """What holds a replay against its record; None: this run is none."""
    if parts.record is None:
        return None

    def note(text: str) -> None:
        witnesses.recorder.note("replay", text)
        witnesses.observers.note(f"replay  {text}")

    return ReplayWatch(parts.record, note, lambda text: str(plain(text, witnesses.redactor.text).value))


def _options(settings: RunSettings, parts: RunParts) -> StreamOptions:
    asked = settings.model_settings
    return StreamOptions(
        temperature=asked.temperature,
        max_output_tokens=asked.max_output_tokens,
        thinking=asked.thinking,
        output_schema=settings.output_schema,
        conversation_id=parts.run_id,
    )


def _prompt(settings: RunSettings) -> UserMessage:
    return UserMessage((TextContent(build_user_prompt(settings.prompt, settings.context)),), _now())


def _correction(output: StructuredOutput | None, watch: LimitWatch) -> GetMessages | None:
    """Ask for a better answer while the limits allow it; None: any answer will do."""
    if output is None:
        return None

    def ask_again(turn: FinishedTurn, /) -> Sequence[UserMessage]:
        request = output(turn)
        return request if request and watch.may_follow_up(turn) else ()

    return ask_again


def _emit_to(*listeners: Callable[[AgentEvent], None]) -> Emit:
    """The record comes first: what cannot be recorded does not go on."""

    def emit(event: AgentEvent) -> None:
        for listener in listeners:
            listener(event)

    return emit


@contextmanager
def _time_limit(timeout_s: float, cancel: CancelToken, time_is_up: threading.Event) -> Iterator[None]:
    """Cancel, and set the event, when the time is up."""

    def fire() -> None:
        time_is_up.set()
        cancel.cancel(f"the run's time limit of {timeout_s:g} s is used up")

    timer = threading.Timer(min(timeout_s, threading.TIMEOUT_MAX), fire)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _now() -> datetime:
    return datetime.now(UTC)
