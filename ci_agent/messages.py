"""The conversation: what a user, a model and a tool say. How it travels is a provider's business."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from ci_agent.json_types import JsonObject

StopReason: TypeAlias = Literal["stop", "length", "tool_use", "error", "aborted"]
"""Why the model stopped. `length`: cut off, its last call may be half a JSON text; `error` and `aborted`:
the message is what had arrived."""


@dataclass(frozen=True, slots=True)
class TextContent:
    text: str
    replay: JsonObject | None = None
    """Opaque: what the API that sent an assistant's part wants back with it, byte for byte; None: nothing. Another
    model than the one that made it never gets it."""


@dataclass(frozen=True, slots=True)
class ImageContent:
    mime_type: str
    data_base64: str


@dataclass(frozen=True, slots=True)
class ThinkingContent:
    """What a model said to itself. With empty text: something that only `replay` holds, such as encrypted thinking."""

    text: str
    replay: JsonObject | None = None
    """As in TextContent: signatures, encrypted items."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's intent, exactly as it sent it. Nothing has been parsed, checked or executed."""

    id: str
    """As the model sent it: may be empty, or the same as another call's."""
    name: str
    arguments_json: str
    """The raw text. The third gate parses it; a provider that receives an object serialises it."""
    replay: JsonObject | None = None
    """As in TextContent."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, or of many added up."""

    input_tokens: int = 0
    """Fresh input: tokens read from or written to a cache are not counted again here."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    """None: the price is not known. Never 0 for unknown."""
    estimated: bool = False
    """Whether the server said nothing and the counts are a guess of ours."""

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


def add_usage(usages: list[Usage]) -> Usage:
    """Add up; the cost is None as soon as one part of it is unknown, or when there is nothing to add."""
    costs = [usage.cost_usd for usage in usages]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in usages),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in usages),
        cost_usd=sum(known) if costs and len(known) == len(costs) else None,
        estimated=any(usage.estimated for usage in usages),
    )


AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall
ToolResultContent: TypeAlias = TextContent | ImageContent


@dataclass(frozen=True, slots=True)
class UserMessage:
    content: tuple[TextContent | ImageContent, ...]
    timestamp: datetime
    role: Literal["user"] = field(default="user", init=False)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    content: tuple[AssistantContent, ...]
    stop_reason: StopReason
    provider: str
    model: str
    api: str
    """The wire API that carried it, `scripted` included."""
    timestamp: datetime
    usage: Usage = Usage()
    response_id: str | None = None
    error_message: str | None = None
    """What went wrong, with stop reasons `error` and `aborted` only."""
    error_retryable: bool | None = None
    """Whether running again later can help; None: nobody knows, or nothing went wrong."""
    role: Literal["assistant"] = field(default="assistant", init=False)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.content if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        """The text parts joined; empty for a message of calls alone."""
        return "".join(part.text for part in self.content if isinstance(part, TextContent))


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    tool_call_id: str
    """Pairs the result with its call; with duplicate ids the order pairs them."""
    tool_name: str
    content: tuple[ToolResultContent, ...]
    """What the model reads."""
    is_error: bool
    timestamp: datetime
    details: JsonObject | None = None
    """Structured, for records; never sent to the model."""
    role: Literal["tool_result"] = field(default="tool_result", init=False)


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
