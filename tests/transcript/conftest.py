"""A run in which everything happens once, and a recorder with a clock that tests can foresee."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ci_agent.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    ToolExecutionDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from ci_agent.hooks import Decision, FactVerdict, NearestRule, ToolCallOutcome
from ci_agent.json_types import JsonObject
from ci_agent.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from ci_agent.provider import Model
from ci_agent.transcript.journal import Journal
from ci_agent.transcript.place import find_place, finish_record, open_journal
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.run_facts import CheckoutFacts, CIFacts, PolicyFacts, RunEnding, RunStart, SandboxFacts

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

START = RunStart(
    id="run-1",
    version="0.1.0",
    workspace="/srv/site",
    model=Model("scripted", "demo.yaml"),
    options={"temperature": 0.0},
    policy=PolicyFacts("review", "ab" * 32, 12, {"max_turns": 30}),
    sandbox=SandboxFacts("landlock", "auto", 7),
    ci=CIFacts("github", "acme/site", "https://github.example/acme/site/actions/runs/1"),
    checkout=CheckoutFacts("/srv", "/srv/site"),
)

ALLOWED = Decision("allow", "rule", "Allowed by inspect", rule_id="inspect", source="policy.yml:7")
DENIED = Decision(
    "deny",
    "default",
    "Blocked by policy: no rule grants `git push`",
    fact=FactVerdict("exec", "git push"),
    facts=(FactVerdict("exec", "git push"), FactVerdict("exec", "git status", granted_by="inspect")),
    argument="command",
    span=(0, 8),
    nearest=NearestRule("inspect", "policy.yml:7", "push"),
    on_denied="fail",
)


def text(words: str) -> tuple[TextContent]:
    return (TextContent(words),)


def answer_calls(turn: int, endings: list[tuple[ToolCall, Decision | None, ToolCallOutcome]]) -> list[AgentEvent]:
    """The events of a parallel batch: begun in order, ended in reverse, answered in order."""
    events: list[AgentEvent] = []
    for index, (call, decision, _) in enumerate(endings):
        events.append(ToolExecutionStart(turn, index, call))
        if decision is not None:
            events.append(ToolExecutionDecision(turn, index, call, decision))
    for index, (call, _, outcome) in reversed(list(enumerate(endings))):
        events.append(ToolExecutionEnd(turn, index, call, outcome))
    for call, _, outcome in endings:
        message = ToolResultMessage(call.id, call.name, outcome.content, outcome.is_error, NOON, outcome.details)
        events += [MessageStart(message), MessageEnd(message)]
    return events


def assistant(*content: TextContent | ThinkingContent | ToolCall, cost_usd: float | None = 0.25) -> AssistantMessage:
    calls = any(isinstance(part, ToolCall) for part in content)
    return AssistantMessage(
        content,
        "tool_use" if calls else "stop",
        "scripted",
        "demo.yaml",
        "scripted",
        NOON,
        Usage(10, 2, 3, 4, cost_usd),
    )


PICTURE = ToolCallOutcome(
    "ok",
    None,
    (TextContent("a picture"), ImageContent("image/png", "aGVsbG8=")),
    {"size_bytes": 5},
    ALLOWED,
)
PUSHED = ToolCallOutcome("denied", "before_tool_call", text(DENIED.reason), None, DENIED)
BROKEN = ToolCallOutcome("error", "arguments", text("arguments: not JSON"))
MISSING = ToolCallOutcome("error", "lookup", text("Tool serach not found"))
FAILED = ToolCallOutcome(
    "error",
    "execute",
    text("exit status 1\ud800"),
    {"output_bytes": 70_000, "truncated": True},
    ALLOWED,
)
STOPPED = ToolCallOutcome("cancelled", "cancelled", text("Cancelled: time-out"))


@pytest.fixture
def events() -> list[AgentEvent]:
    """Three turns; ids repeat, a batch ends in another order than it began."""
    read = ToolCall("call_1", "read", '{"path": "logo.png"}')
    push = ToolCall("call_1", "bash", '{"command": "git push"}')
    half = ToolCall("", "write", '{"path": "a.txt", "cont')
    search = ToolCall("call_4", "serach", "{}")
    test = ToolCall("call_5", "bash", '{"command": "npm test", "timeout": 5}')
    late = ToolCall("call_6", "bash", '{"command": "sleep 9"}')
    prompt = UserMessage((TextContent("Look at it"), ImageContent("image/png", "aGVsbG8=")), NOON)
    first = assistant(ThinkingContent("hm", {"signature": "sig"}), TextContent("I look."), read, push, half)
    second = assistant(search, test, late)
    last = assistant(TextContent("All is "), TextContent("well."))
    return [
        AgentStart(),
        TurnStart(1),
        MessageStart(prompt),
        MessageEnd(prompt),
        MessageEnd(first),
        *answer_calls(1, [(read, ALLOWED, PICTURE), (push, DENIED, PUSHED), (half, None, BROKEN)]),
        TurnEnd(1, first, ()),
        TurnStart(2),
        MessageEnd(second),
        *answer_calls(2, [(search, None, MISSING), (test, ALLOWED, FAILED), (late, None, STOPPED)]),
        TurnEnd(2, second, ()),
        TurnStart(3),
        MessageEnd(last),
        TurnEnd(3, last, ()),
        AgentEnd(()),
    ]


@dataclass
class Clock:
    seconds: float = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def recording(journal: Journal, clock: Clock) -> Recorder:
    recorder = Recorder(journal, Redactor(["hunter2-hunter2"]), clock.now, clock.monotonic)
    recorder.run_start(START)
    return recorder


@pytest.fixture
def start_recording() -> Callable[[Journal], Recorder]:
    """A recorder on a journal, past its first record; it hides `hunter2-hunter2`, and time stands still."""
    return lambda journal: recording(journal, Clock())


@pytest.fixture
def record_run(events: list[AgentEvent]) -> Callable[[Path], JsonObject]:
    """Record the whole run at a transcript path, an event a second; returns the document. The journal is kept."""

    def record(transcript: Path) -> JsonObject:
        place = find_place(transcript)
        journal, _ = open_journal(place)
        clock = Clock()
        recorder = recording(journal, clock)
        for event in events:
            clock.seconds += 1
            recorder(event)
        recorder.note("retry", "the server was overloaded")
        clock.seconds += 0.5
        recorder.run_end(RunEnding("denied", 5, {"answer": 42}))
        return finish_record(journal, place, keep_journal=True).document

    return record


COMMAND = re.compile(r"::(?P<name>[^\s:]+)")
LEGACY_COMMAND = re.compile(r"##\[(?P<name>[^\]\s]+)")


@pytest.fixture
def runner_commands() -> Callable[[str], list[str]]:
    """What GitHub's runner would take for commands, after the two parsers of actions/runner (ActionCommand.cs).

    Lines end as .NET's ReadLine ends them; `::name` counts after any Unicode space at the line's start, `##[name]`
    anywhere in it.
    """

    def find(output: str) -> list[str]:
        lines = re.split(r"\r\n|\n|\r", output)
        first = [found["name"] for line in lines if (found := COMMAND.match(line.lstrip()))]
        return first + [found["name"] for line in lines for found in LEGACY_COMMAND.finditer(line)]

    return find
