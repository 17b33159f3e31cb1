"""A scripted model, tools made of plain functions, and events as lines that a test can compare whole."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from ci_agent.agent.config import LoopConfig
from ci_agent.agent.loop import run_loop
from ci_agent.agent.tool_calls import ToolCallBatch, execute_tool_calls
from ci_agent.cancellation import CancelToken
from ci_agent.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    Emit,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from ci_agent.hooks import ToolCallOutcome
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import AssistantMessage, Message, TextContent, ToolCall, ToolResultMessage, UserMessage
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
    Context,
    Model,
    PartKind,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamFn,
    StreamOptions,
    StreamStart,
)
from ci_agent.tool import OnUpdate, Tool, ToolResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("scripted", "test")

Do = Callable[[JsonObject, CancelToken, OnUpdate], ToolResult | str]
Turn = AssistantMessage | Sequence[StreamEvent]


@dataclass(frozen=True)
class Ran:
    """What a run, or one batch of calls, left behind."""

    events: list[AgentEvent]
    requests: list[Context]

    @property
    def lines(self) -> list[str]:
        """One line for each event: its name as the documents spell it, and what tells it from its like."""
        return [line_of(event) for event in self.events]

    @property
    def messages(self) -> tuple[Message, ...]:
        (end,) = [event for event in self.events if isinstance(event, AgentEnd)]
        return end.messages

    @property
    def results(self) -> list[ToolResultMessage]:
        ended = [event.message for event in self.events if isinstance(event, MessageEnd)]
        return [message for message in ended if isinstance(message, ToolResultMessage)]

    @property
    def result_texts(self) -> list[str]:
        return [text_of(result.content) for result in self.results]

    @property
    def outcomes(self) -> list[ToolCallOutcome]:
        """In the order of the calls."""
        ended = [event for event in self.events if isinstance(event, ToolExecutionEnd)]
        return [event.outcome for event in sorted(ended, key=lambda event: (event.turn, event.index))]

    @property
    def roads(self) -> list[tuple[str, str | None]]:
        """Status and stage of each call, in the order of the calls."""
        return [(outcome.status, outcome.stage) for outcome in self.outcomes]


class Lab:
    """Builds what a test needs in few words, and runs it."""

    now = NOW

    def user(self, text: str) -> UserMessage:
        return UserMessage((TextContent(text),), NOW)

    def say(self, *parts: str | ToolCall, **fields: Any) -> AssistantMessage:
        """An assistant's message of texts and calls; its stop reason follows from them unless it is given."""
        content = tuple(TextContent(part) if isinstance(part, str) else part for part in parts)
        wants_tools = any(isinstance(part, ToolCall) for part in parts)
        defaults = {"stop_reason": "tool_use" if wants_tools else "stop", "provider": "scripted", "model": "test"}
        return AssistantMessage(content, **{**defaults, "api": "scripted", "timestamp": NOW, **fields})

    def call(self, name: str, call_id: str = "", /, *, raw: str | None = None, **arguments: Json) -> ToolCall:
        """A call as a model sends it, with its arguments by name or as raw text."""
        return ToolCall(call_id, name, json.dumps(arguments) if raw is None else raw)

    def tool(self, name: str, do: Do | str = "done", /, **fields: Any) -> Tool:
        """A tool that does what a function says; a text stands for a result. Takes any object unless told otherwise."""

        def execute(_call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
            result = do if isinstance(do, str) else do(arguments, cancel, on_update)
            return ToolResult((TextContent(result),)) if isinstance(result, str) else result

        return Tool(**{"name": name, "description": "", "parameters": {"type": "object"}, "execute": execute, **fields})

    def config(self, stream_fn: StreamFn, tools: Iterable[Tool] = (), **fields: Any) -> LoopConfig:
        by_name = {tool.name: tool for tool in tools}
        return LoopConfig(model=MODEL, stream_fn=stream_fn, tools=by_name, **{"now": lambda: NOW, **fields})

    def context(self, *messages: Message, tools: Iterable[Tool] = ()) -> Context:
        return Context("", messages, tuple(tools))

    def play(self, turns: Iterable[Turn], requests: list[Context] | None = None) -> StreamFn:
        """A model that says one thing a turn: a whole message, or the very events given."""
        script = iter(turns)

        def stream(
            _model: Model, context: Context, _options: StreamOptions, _cancel: CancelToken, /
        ) -> Iterator[StreamEvent]:
            if requests is not None:
                requests.append(context)
            turn = next(script)
            yield from events_of(turn) if isinstance(turn, AssistantMessage) else turn

        return stream

    def run(
        self,
        turns: Iterable[Turn] | StreamFn,
        tools: Iterable[Tool] = (),
        *,
        cancel: CancelToken | None = None,
        offered: Iterable[Tool] | None = None,
        observe: Emit = lambda _event: None,
        **config: Any,
    ) -> Ran:
        """Run the loop with the prompt `go`, offering all tools unless told otherwise."""
        ran = Ran([], [])
        tools = tuple(tools)
        stream_fn = turns if callable(turns) else self.play(turns, ran.requests)
        context = self.context(tools=tools if offered is None else offered)
        loop_config = self.config(stream_fn, tools, **config)
        run_loop([self.user("go")], context, loop_config, recorder(ran, observe), cancel or CancelToken())
        return ran

    def execute(
        self,
        calls: Iterable[ToolCall],
        tools: Iterable[Tool] = (),
        *,
        cancel: CancelToken | None = None,
        observe: Emit = lambda _event: None,
        **config: Any,
    ) -> Ran:
        """Execute one batch of calls, without a loop around it."""
        ran = Ran([], [])
        loop_config = self.config(self.play(()), tools, **config)
        batch = ToolCallBatch(1, tuple(calls), loop_config.tools.keys())
        execute_tool_calls(batch, loop_config, recorder(ran, observe), cancel or CancelToken())
        return ran


def recorder(ran: Ran, observe: Emit) -> Emit:
    def emit(event: AgentEvent) -> None:
        ran.events.append(event)
        observe(event)

    return emit


@pytest.fixture(scope="session")
def lab() -> Lab:
    return Lab()


def events_of(message: AssistantMessage) -> Iterator[StreamEvent]:
    yield StreamStart()
    for index, part in enumerate(message.content):
        assert isinstance(part, TextContent | ToolCall)
        kind: PartKind = "text" if isinstance(part, TextContent) else "toolcall"
        yield ContentStart(kind, index)
        yield ContentDelta(kind, index, part.text if isinstance(part, TextContent) else part.arguments_json)
        yield ContentEnd(kind, index)
    yield StreamFailed(message) if message.stop_reason in {"error", "aborted"} else StreamDone(message)


def line_of(event: AgentEvent) -> str:  # noqa: C901  one line for each kind
    match event:
        case AgentStart():
            return "agent_start"
        case TurnStart(turn):
            return f"turn_start {turn}"
        case MessageStart(message):
            return f"message_start {subject_of(message)}"
        case MessageUpdate(update):
            return f"message_update {type(update).__name__}"
        case MessageEnd(message):
            return f"message_end {subject_of(message)}"
        case ToolExecutionStart(_, index, call):
            return f"tool_execution_start {index} {call.name}"
        case ToolExecutionDecision(_, index, _, decision):
            return f"tool_execution_decision {index} {decision.effect if decision else 'none'}"
        case ToolExecutionUpdate(_, index, _, partial):
            return f"tool_execution_update {index} {text_of(partial.content)}"
        case ToolExecutionEnd(_, index, _, outcome):
            return f"tool_execution_end {index} {outcome.status} {outcome.stage or '-'}"
        case TurnEnd(turn, _, results):
            return f"turn_end {turn} {len(results)} results"
        case AgentEnd(messages):
            return f"agent_end {len(messages)} messages"


def subject_of(message: UserMessage | AssistantMessage | ToolResultMessage | None) -> str:
    match message:
        case None:
            return "assistant"
        case UserMessage():
            return f"user {text_of(message.content)}"
        case AssistantMessage():
            return f"assistant {message.stop_reason}"
        case ToolResultMessage():
            return f"tool_result {message.tool_call_id} {message.tool_name}"


def text_of(content: Iterable[object]) -> str:
    return "".join(part.text for part in content if isinstance(part, TextContent))
