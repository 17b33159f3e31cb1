"""A traced run, as a collector on this machine receives it."""

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ci_agent import Observers, RunResult, RunSettings, load_policy, run, tracing

TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"

POLICY = """\
policy: 1
rules:
  - {id: shell, allow: bash, command: "printenv *"}
"""

SCRIPT = """\
turns:
  - text: I look.
    tool_calls:
      - {id: env, name: bash, arguments: {command: printenv TRACEPARENT}}
      - {id: push, name: bash, arguments: {command: git push}}
      - {id: odd, name: sk-secret-0123456789, arguments: {}}
    usage: {input_tokens: 120, output_tokens: 30}
  - text: Done.
"""


@dataclass
class Collector:
    """Takes spans over OTLP, as collectors do, and keeps them."""

    url: str
    headers: list[dict[str, str]] = field(default_factory=list)
    received: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.received if span.name == name]

    def one(self, name: str) -> Span:
        (found,) = self.named(name)
        return found


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr(tracing, "SEND_WITHIN_S", 60.0)  # a busy machine may take longer than five

    class Receive(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.headers.append({name.lower(): value for name, value in self.headers.items()})
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                made.received.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receive)
    made = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


def traced(script: Path, observers: Observers | None = None, **environment: str) -> RunResult:
    around = {"PATH": os.environ["PATH"], "SOME_TOKEN": "sk-secret-0123456789", **environment}
    policy = load_policy(text=POLICY, workspace=script.parent)
    settings = RunSettings(
        prompt="Go.", policy=policy, model=f"scripted:{script}", trace=True, environment=around, fail_on_denied="any"
    )
    return run(settings, observers=observers)


def attributes(span: Span) -> dict[str, object]:
    values = {each.key: each.value for each in span.attributes}
    return {name: getattr(value, str(value.WhichOneof("value"))) for name, value in values.items()}


def test_run_turns_requests_and_calls_are_spans_inside_each_other(collector: Collector, script: Path) -> None:
    result = traced(script, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, TRACEPARENT=TRACEPARENT)
    agent = collector.one("invoke_agent ci-agent")
    turns = [collector.one(f"turn {number}") for number in (1, 2)]
    requests = sorted(collector.named(f"chat {script}"), key=lambda span: span.start_time_unix_nano)
    calls = collector.named("execute_tool bash")
    assert (agent.trace_id.hex(), agent.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
    assert [turn.parent_span_id for turn in turns] == [agent.span_id, agent.span_id]
    assert [span.parent_span_id for span in requests] == [turn.span_id for turn in turns]
    assert {span.parent_span_id for span in calls} == {turns[0].span_id}
    assert {span.trace_id.hex() for span in collector.received} == {TRACE_ID}
    assert len(collector.received) == 1 + 2 + 2 + 3
    assert attributes(agent) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": str(script),
        "gen_ai.agent.name": "ci-agent",
        "gen_ai.agent.version": result.transcript["run"]["version"],
        "gen_ai.conversation.id": result.transcript["run"]["id"],
        "ci_agent.result.reason": "denied",
        "ci_agent.exit_code": 5,
        "error.type": "denied",
    }


def test_a_request_says_what_it_used(collector: Collector, script: Path) -> None:
    traced(script, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    first = min(collector.named(f"chat {script}"), key=lambda span: span.start_time_unix_nano)
    told = attributes(first)
    assert first.kind == Span.SPAN_KIND_CLIENT
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (120, 30)
    assert "ci_agent.cost_usd" not in told


def test_a_call_says_how_it_ended_and_who_decided(collector: Collector, script: Path) -> None:
    traced(script, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    by_id = {attributes(span)["gen_ai.tool.call.id"]: span for span in collector.named("execute_tool bash")}
    assert attributes(by_id["env"]) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": "env",
        "gen_ai.tool.type": "function",
        "ci_agent.status": "ok",
        "ci_agent.decision.effect": "allow",
        "ci_agent.decision.code": "rule",
        "ci_agent.decision.rule": "shell",
    }
    denied = attributes(by_id["push"])
    assert (denied["ci_agent.status"], denied["error.type"]) == ("denied", "before_tool_call")
    assert (denied["ci_agent.decision.code"], by_id["push"].status.code) == ("default", 2)


def test_commands_continue_the_trace(collector: Collector, script: Path) -> None:
    result = traced(script, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, TRACEPARENT=TRACEPARENT)
    agent = collector.one("invoke_agent ci-agent")
    told = result.transcript["tool_calls"][0]["content"][0]["text"].strip()
    assert told == f"00-{TRACE_ID}-{agent.span_id.hex()}-01"


def test_secrets_stay_out_of_names(collector: Collector, script: Path) -> None:
    traced(script, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert b"sk-secret" not in b"".join(span.SerializeToString() for span in collector.received)
    assert attributes(collector.one("execute_tool [redacted]"))["ci_agent.status"] == "error"


def test_the_collector_gets_the_headers_that_it_wants(collector: Collector, script: Path) -> None:
    traced(
        script,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/v1/traces",
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20collector-key",
    )
    assert {headers["authorization"] for headers in collector.headers} == {"Bearer collector-key"}
    assert len(collector.received) == 8


def test_a_collector_that_is_not_there_costs_one_note(script: Path) -> None:
    lines: list[str] = []
    result = traced(script, Observers(note=lines.append), OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert result.reason == "denied"
    assert [line for line in lines if "otel" in line] == ["otel  the collector did not take every span of this run"]


def command(script: Path, *flags: str, before: str = "") -> subprocess.CompletedProcess[str]:
    (script.parent / "policy.yml").write_text(POLICY)
    run_it = "import runpy; runpy.run_module('ci_agent', run_name='__main__')"
    arguments = ["run", "--policy", "policy.yml", "--model", f"scripted:{script}", "--output", "text", *flags, "Go."]
    code = f"import sys; sys.argv[1:] = {arguments!r}; {before}\n{run_it}"
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )


def test_without_being_asked_nothing_of_it_is_imported(script: Path) -> None:
    watch = "import atexit; atexit.register(lambda: print(sorted(m for m in sys.modules if 'opentelemetry' in m)))"
    done = command(script, before=watch)
    assert (done.returncode, done.stdout) == (5, "Done.\n[]\n"), done.stderr


def test_without_the_extra_the_flag_says_what_to_install(script: Path) -> None:
    done = command(script, "--otel", before="sys.modules['opentelemetry'] = None")
    assert done.returncode == 3
    assert "traces need the extra otel of ci-agent (docs/tracing.md): " in done.stderr
