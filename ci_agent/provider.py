"""What a provider is: a function that streams one assistant message."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantMessage, Message
from ci_agent.tool import Tool


@dataclass(frozen=True, slots=True)
class Model:
    provider: str
    """The word before the colon of `--model`."""
    id: str
    """The word after it, as the provider knows it."""

    def __str__(self) -> str:
        return f"{self.provider}:{self.id}"


@dataclass(frozen=True, slots=True)
class Context:
    """All that a provider may send."""

    system_prompt: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    """The tools offered; others may exist."""


ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a person asked of the model; None: the provider's default."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    thinking: ThinkingLevel | None = None
    output_schema: JsonObject | None = None
    """The answer shall satisfy this JSON Schema; a hint for APIs that can enforce it, the caller checks anyway."""
    conversation_id: str | None = None
    """The same for all requests of a run, so that servers find their prompt cache again."""


PartKind: TypeAlias = Literal["text", "thinking", "toolcall"]
NoticeKind: TypeAlias = Literal["retry", "fallback", "shrunk", "warning"]


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The first event of a stream."""


@dataclass(frozen=True, slots=True)
class ContentStart:
    """A content part begins; parts arrive in order, and their deltas may interleave."""

    kind: PartKind
    index: int
    """Counts the parts as they are announced, from 0. Parts that only hold opaque data are not."""


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """More of a part: text, or a piece of a call's raw arguments. Cost per delta is constant: nothing is copied."""

    kind: PartKind
    index: int
    delta: str


@dataclass(frozen=True, slots=True)
class ContentEnd:
    kind: PartKind
    index: int


@dataclass(frozen=True, slots=True)
class StreamNotice:
    """Something on the way to the message that belongs into the log and the record: a wait before another attempt,
    another model, results left out of the request.

    After a `retry` or a `fallback` the message begins anew: content events before it are void.
    """

    about: NoticeKind
    text: str
    """One line for a person; no secret in it."""


ContentEvent: TypeAlias = ContentStart | ContentDelta | ContentEnd


@dataclass(frozen=True, slots=True)
class StreamDone:
    """The last event of a stream that went well: stop reason `stop`, `length` or `tool_use`."""

    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The last event of a stream that did not: stop reason `error` or `aborted`, with what had arrived."""

    message: AssistantMessage
    is_overflow: bool = False
    """The request was too long for the model: the same request can never succeed, a shorter one can."""


StreamEvent: TypeAlias = StreamStart | ContentEvent | StreamNotice | StreamDone | StreamFailed


class StreamFn(Protocol):
    """Ask the model for one message.

    Yields `StreamStart`, content events and notices, then exactly one `StreamDone` or `StreamFailed`. Must not raise
    for failures of request, model or network: those are a `StreamFailed`. Returns soon after `cancel` fires, with stop
    reason `aborted`.
    """

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, cancel: CancelToken, /
    ) -> Iterator[StreamEvent]: ...
