"""What the loop reports, in the order in which it happens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ci_agent.hooks import Decision, ToolCallOutcome
from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from ci_agent.provider import StreamEvent
from ci_agent.tool import ToolResult


@dataclass(frozen=True, slots=True)
class AgentStart:
    pass


@dataclass(frozen=True, slots=True)
class TurnStart:
    turn: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class MessageStart:
    message: Message | None
    """None for an assistant's message, whose content is yet to come."""


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    event: StreamEvent


@dataclass(frozen=True, slots=True)
class MessageEnd:
    message: Message


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """The model wants this call. Nothing has been checked."""

    turn: int
    index: int
    """Position among the calls of the message, from 0. Ids may repeat; turn and index name a call."""
    tool_call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolExecutionDecision:
    """The fourth gate has spoken (`decision` None: no hook, or it had nothing to say); if it allows, the effect
    comes after this event has been taken in."""

    turn: int
    index: int
    tool_call: ToolCall
    decision: Decision | None
    arguments: JsonObject | None = None
    """What the tool gets if it runs: parsed, repaired, validated. To be read only. None: the emitter does not say."""


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdate:
    turn: int
    index: int
    tool_call: ToolCall
    partial: ToolResult


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    turn: int
    index: int
    tool_call: ToolCall
    outcome: ToolCallOutcome


@dataclass(frozen=True, slots=True)
class TurnEnd:
    turn: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """Always the last event."""

    messages: tuple[Message, ...]
    """All that this run added to the conversation."""


AgentEvent: TypeAlias = (
    AgentStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionDecision
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | AgentEnd
)

Emit: TypeAlias = Callable[[AgentEvent], None]
"""Called from one thread at a time, in order. An exception in it ends the run: the record is the product."""
