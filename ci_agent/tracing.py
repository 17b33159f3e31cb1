"""A run as OpenTelemetry spans, by the semantic conventions for generative AI: run, turns, model requests, tool calls.

Imported when a run is to be traced, for it needs the extra `otel`. Where the spans go is said by the usual `OTEL_*`
variables. What was said and printed is not in them: names, counts, times and outcomes are.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers
from opentelemetry.util.types import AttributeValue

from ci_agent import __version__
from ci_agent.events import (
    AgentEvent,
    MessageEnd,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from ci_agent.messages import AssistantMessage
from ci_agent.transcript.run_facts import RunEnding

SEND_WITHIN_S: Final = 5.0
"""How long a run that has ended waits for the collector to take the rest."""

_AGENT: Final = "ci-agent"
_PROPAGATOR: Final = TraceContextTextMapPropagator()

Attributes = Mapping[str, AttributeValue | None]


class RunTrace:
    """The spans of one run; `observe` takes its events. `clean` hides secrets in whatever a model or a tool named."""

    def __init__(self, tracer: Tracer, parent: Context, model: str, run_id: str, clean: Callable[[str], str]) -> None:
        provider, _, name = model.partition(":")
        self._tracer = tracer
        self._clean = clean
        self._model = {"gen_ai.provider.name": provider, "gen_ai.request.model": name}
        self._run = tracer.start_span(f"invoke_agent {_AGENT}", parent)
        self._set(
            self._run,
            {
                "gen_ai.operation.name": "invoke_agent",
                **self._model,
                "gen_ai.agent.name": _AGENT,
                "gen_ai.agent.version": __version__,
                "gen_ai.conversation.id": run_id,
            },
        )
        self._turn: Span | None = None
        self._request: Span | None = None
        self._calls: dict[tuple[int, int], Span] = {}

    def variables(self) -> dict[str, str]:
        """`TRACEPARENT` and its like, by which commands continue this trace."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(self._run))
        return {name.upper(): value for name, value in carrier.items()}

    def observe(self, event: AgentEvent) -> None:
        match event:
            case TurnStart():
                self._turn = self._begin(f"turn {event.turn}", self._run, {"ci_agent.turn": event.turn})
                self._request = self._begin_request(self._turn)
            case MessageEnd(AssistantMessage() as message):
                self._end_request(message)
            case ToolExecutionStart():
                self._calls[event.turn, event.index] = self._begin_call(event)
            case ToolExecutionEnd():
                self._end_call(self._calls.pop((event.turn, event.index)), event)
            case TurnEnd():
                self._end(self._turn)
            case _:
                pass

    def end(self, ending: RunEnding) -> None:
        """The last of the run's spans; those that were cut off end with it."""
        for span in (*self._calls.values(), self._request, self._turn):
            self._end(span)
        self._set(self._run, {"ci_agent.result.reason": ending.reason, "ci_agent.exit_code": ending.exit_code})
        if ending.exit_code:
            self._fail(self._run, ending.reason, ending.error)
        self._run.end()

    def _begin(self, name: str, above: Span | None, attributes: Attributes, kind: SpanKind = SpanKind.INTERNAL) -> Span:
        parent = trace.set_span_in_context(above or self._run)
        span = self._tracer.start_span(self._clean(name), parent, kind=kind)
        self._set(span, attributes)
        return span

    def _begin_request(self, turn: Span) -> Span:
        name = f"chat {self._model['gen_ai.request.model']}"
        return self._begin(name, turn, {"gen_ai.operation.name": "chat", **self._model}, SpanKind.CLIENT)

    def _end_request(self, message: AssistantMessage) -> None:
        span, self._request = self._request, None
        if span is None:
            return
        usage = message.usage
        self._set(
            span,
            {
                "gen_ai.response.model": message.model,
                "gen_ai.response.id": message.response_id,
                "gen_ai.response.finish_reasons": [message.stop_reason],
                "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "ci_agent.cost_usd": usage.cost_usd,
            },
        )
        if message.error_message is not None:
            self._fail(span, message.stop_reason, message.error_message)
        span.end()

    def _begin_call(self, event: ToolExecutionStart) -> Span:
        call = event.tool_call
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
        }
        return self._begin(f"execute_tool {call.name}", self._turn, attributes)

    def _end_call(self, span: Span, event: ToolExecutionEnd) -> None:
        outcome, decision = event.outcome, event.outcome.decision
        self._set(
            span,
            {
                "ci_agent.status": outcome.status,
                "ci_agent.stage": outcome.stage,
            },
        )
        if decision is not None:
            told = {"effect": decision.effect, "code": decision.code, "rule": decision.rule_id}
            self._set(span, {f"ci_agent.decision.{name}": value for name, value in told.items()})
        if outcome.is_error:
            self._fail(span, outcome.stage or outcome.status, None)
        span.end()

    def _end(self, span: Span | None) -> None:
        if span is not None and span.is_recording():
            span.end()

    def _fail(self, span: Span, kind: str, why: str | None) -> None:
        self._set(span, {"error.type": kind})
        span.set_status(StatusCode.ERROR, None if why is None else self._clean(why))

    def _set(self, span: Span, attributes: Attributes) -> None:
        for name, value in attributes.items():
            if value is not None:
                span.set_attribute(name, self._clean(value) if isinstance(value, str) else value)


@contextmanager
def traced_run(
    environment: Mapping[str, str], model: str, run_id: str, clean: Callable[[str], str], note: Callable[[str], None]
) -> Iterator[RunTrace]:
    """The trace of a run, sent while it goes on and when it has ended; under the span that `TRACEPARENT` names.

    A collector that is not there costs the run at most SEND_WITHIN_S, and one note.
    """
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # its complaints are one note of ours
    exporter = _CountingExporter(
        OTLPSpanExporter(_address(environment), headers=_headers(environment), timeout=SEND_WITHIN_S)
    )
    provider = TracerProvider(resource=Resource.create({"service.name": _AGENT, "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    carrier = {name.lower(): environment[name] for name in ("TRACEPARENT", "TRACESTATE") if name in environment}
    tracer = provider.get_tracer(_AGENT, __version__)
    try:
        yield RunTrace(tracer, _PROPAGATOR.extract(carrier, Context()), model, run_id, clean)
    finally:
        if not _shut_down(provider) or exporter.failures:
            note("otel  the collector did not take every span of this run")


def _shut_down(provider: TracerProvider) -> bool:
    """Send what is left; False if that was not possible in time."""
    sending = threading.Thread(target=provider.shutdown, daemon=True)
    try:
        sending.start()
    except RuntimeError:  # the system gives no more threads
        return False
    sending.join(SEND_WITHIN_S)
    return not sending.is_alive()


def _address(environment: Mapping[str, str]) -> str:
    whole = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return whole or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318").rstrip("/") + "/v1/traces"


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    """These often hold a token, which is why they are not left in the process's own environment to be read there."""
    own = environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    return dict(parse_env_headers(own or environment.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True))


class _CountingExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.failures = 0

    def export(self, spans: object) -> SpanExportResult:
        result = self._exporter.export(spans)  # type: ignore[arg-type]  # passed on as it came
        self.failures += result is not SpanExportResult.SUCCESS
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
