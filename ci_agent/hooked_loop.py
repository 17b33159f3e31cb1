"""The loop of a run under its hooks: from the prompt to all that bears on how it ended."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ci_agent.agent.loop import LoopConfig, run_loop
from ci_agent.cancellation import CancelToken
from ci_agent.ending import Happened
from ci_agent.errors import CIAgentError
from ci_agent.events import AgentEvent, Emit
from ci_agent.hooks import FinishedTurn, GetMessages, Hooks
from ci_agent.messages import Message, TextContent, UserMessage
from ci_agent.policy.counting import create_before_tool_call
from ci_agent.precautions.closed_files import ClosedFiles
from ci_agent.prompts import build_user_prompt
from ci_agent.proposals.collect import ProposalsOfRun
from ci_agent.provider import Context, StreamOptions
from ci_agent.replay import ReplayWatch
from ci_agent.run_hooks.guard import Guard
from ci_agent.run_hooks.limits import LimitWatch
from ci_agent.run_hooks.result_budget import ResultBudget
from ci_agent.run_hooks.structured_output import StructuredOutput
from ci_agent.run_parts import RunParts
from ci_agent.run_settings import Observers, RunSettings
from ci_agent.run_start import system_prompt
from ci_agent.spelling import counted
from ci_agent.transcript.plain_json import plain
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.run_facts import RunEnding

if TYPE_CHECKING:
    from ci_agent.tracing import RunTrace

ABANDON_AFTER_S = 3.0
"""How long a tool that ignores its cancellation is waited for; a cancelled run is over within five seconds."""


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Who is told of a run, and when."""

    recorder: Recorder
    redactor: Redactor
    observers: Observers
    trace: "RunTrace | None"

    def tell(self, lines: Iterable[str], warnings: Iterable[str]) -> None:
        for line in lines:
            self.observers.note(line)
        for warning in warnings:
            self.observers.note(f"warning: {warning}")
            self.recorder.note("security", warning)

    def end(self, ending: RunEnding, proposals: ProposalsOfRun | None) -> None:
        if proposals is not None:
            self.recorder.note("proposals", counted(len(proposals.proposals), "proposal"))
        self.recorder.run_end(ending)
        if self.trace:
            self.trace.end(ending)


def run_hooked_loop(
    settings: RunSettings, parts: RunParts, witnesses: Witnesses, closed: ClosedFiles, cancel: CancelToken
) -> Happened:
    """The loop under its hooks, from the prompt to the reason why it ended."""
    recorder, observers = witnesses.recorder, witnesses.observers
    own_cancel = cancel.child()
    watch = LimitWatch(parts.limits, lambda: recorder.is_short_of_room)
    hooks = [closed.before_tool_call, watch.before_tool_call, create_before_tool_call(parts.policy)]
    guard = Guard(hooks, own_cancel.cancel)
    replay = _replay_watch(parts, witnesses)
    more = [listener.observe for listener in (replay, witnesses.trace) if listener is not None]
    emit = _emit_to(recorder, watch.observe, observers.observe, *more)
    context = Context(system_prompt(settings, parts), (), parts.offered)
    config = _loop_config(settings, parts, _hooks(guard, watch, parts.output))
    messages: tuple[Message, ...] = ()
    bug: Exception | None = None
    time_is_up = threading.Event()
    try:
        with _time_limit(parts.limits.timeout_s, own_cancel, time_is_up):
            messages = run_loop([_prompt(settings, parts.invocation.now())], context, config, emit, own_cancel)
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


def _loop_config(settings: RunSettings, parts: RunParts, hooks: Hooks) -> LoopConfig:
    return LoopConfig(
        model=parts.model,
        stream_fn=parts.models.stream_fn,
        tools=parts.tools,
        now=parts.invocation.now,
        hooks=hooks,
        options=_options(settings, parts),
        abandon_after_s=ABANDON_AFTER_S,
    )


def _hooks(guard: Guard, watch: LimitWatch, output: StructuredOutput | None) -> Hooks:
    return Hooks(
        before_tool_call=guard,
        after_tool_call=ResultBudget(),
        should_stop_after_turn=watch.should_stop_after_turn,
        get_follow_up_messages=_correction(output, watch),
    )


def _replay_watch(parts: RunParts, witnesses: Witnesses) -> ReplayWatch | None:
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
        conversation_id=parts.invocation.run_id,
    )


def _prompt(settings: RunSettings, now: datetime) -> UserMessage:
    return UserMessage((TextContent(build_user_prompt(settings.prompt, settings.context)),), now)


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
