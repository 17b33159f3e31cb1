"""The loop's extension points, each with its contract, and the decision that one of them returns.

The test of what becomes a hook: different applications would answer differently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultContent,
    ToolResultMessage,
    UserMessage,
)
from ci_agent.tool import Tool

Effect: TypeAlias = Literal["allow", "deny"]

DecisionCode: TypeAlias = Literal[
    "rule",  # a rule decided: every fact is granted, or one is forbidden by the rule named
    "default",  # no rule grants one of the facts
    "hazard",  # a wildcard would have to cover something that only a spelled pattern may grant
    "unparsable",  # what the call would do cannot be known
    "limit",  # a bound of the engine, or a rule's or the run's count of calls
    "arguments",  # the arguments break the tool's schema (explain only; in a run the third gate says so)
    "not_offered",  # the tool exists but was not offered to the model
    "engine_error",  # the hook failed; never a fall-through
]

OnDenied: TypeAlias = Literal["record", "fail", "stop"]
"""What a denial does to the run: nothing more, a failing exit code at its end, or its end at once."""


@dataclass(frozen=True, slots=True)
class FactVerdict:
    """One thing that the call would do, and what the policy says of it."""

    kind: str
    """exec, read, list, write, delete, net, tool or unknown."""
    value: str
    """The normalised value as a person would write it: a command line, an absolute path, a URL, a tool's name."""
    granted_by: str | None = None
    """Id of the first allow rule that grants it; None: none does."""
    forbidden_by: str | None = None
    """Id of the deny rule that forbids it; None: none does."""


@dataclass(frozen=True, slots=True)
class NearestRule:
    """The allow rule that came closest, and where it stopped matching."""

    rule_id: str
    source: str
    stopped_at: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Allowed or not, and everything that explains it; `explain` prints it, the transcript stores it."""

    effect: Effect
    code: DecisionCode
    reason: str
    """One line. For a denial it is what the model reads."""
    rule_id: str | None = None
    source: str | None = None
    """`file:line` of the rule that decided."""
    fact: FactVerdict | None = None
    """The fact that the denial hangs on; None when the call is allowed."""
    facts: tuple[FactVerdict, ...] = ()
    """Every fact of the call, as far as it was looked at."""
    argument: str | None = None
    """The argument that the fact came from."""
    span: tuple[int, int] | None = None
    """Where in that argument, in characters: start and end."""
    nearest: NearestRule | None = None
    because: str | None = None
    instead: str | None = None
    on_denied: OnDenied = "record"


@dataclass(frozen=True, slots=True)
class ProposedToolCall:
    """A call that passed three gates: the tool exists, and the arguments satisfy its schema."""

    tool_call: ToolCall
    tool: Tool
    arguments: JsonObject
    """The very object that the tool will get. A hook reads it and leaves it as it is."""


@dataclass(frozen=True, slots=True)
class ExecutedToolCall:
    """A call that ran, and how it ended, before anybody else has seen the result."""

    proposed: ProposedToolCall
    content: tuple[ToolResultContent, ...]
    details: JsonObject | None
    is_error: bool
    terminate: bool


@dataclass(frozen=True, slots=True)
class ResultOverride:
    """What `after_tool_call` changes, field by field; None leaves a field as it is."""

    content: tuple[ToolResultContent, ...] | None = None
    details: JsonObject | None = None
    is_error: bool | None = None
    terminate: bool | None = None


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    turn: int
    """Counted from 1."""
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    messages: Sequence[Message]
    """The whole conversation so far. To be read only."""


class BeforeToolCall(Protocol):
    """The fourth gate. Called once for each call that passed the other three, one at a time, in the order of the
    message, before anything of the call runs (in a sequential batch: after the calls before it have finished).

    None or an `allow` decision lets the call run; a `deny` decision stops it, and its reason goes to the model.
    It may raise: an exception is a denial.
    """

    def __call__(self, call: ProposedToolCall, /) -> Decision | None: ...


class AfterToolCall(Protocol):
    """Called for each call that ran, also for one that failed but not for one that was cancelled, on the loop's thread,
    in the order in which calls finish. None leaves the result alone. It may raise: the result becomes an error that
    says so.
    """

    def __call__(self, call: ExecutedToolCall, /) -> ResultOverride | None: ...


class TransformContext(Protocol):
    """Called before each request with the conversation; returns what the model shall see of it. Nothing that it
    returns changes the conversation itself. It may raise: that ends the run.
    """

    def __call__(self, messages: Sequence[Message], /) -> Sequence[Message]: ...


class ShouldStopAfterTurn(Protocol):
    """Called after each turn that did not fail; True ends the run gracefully. Limits live here. It may raise: that
    ends the run.
    """

    def __call__(self, turn: FinishedTurn, /) -> bool: ...


class GetMessages(Protocol):
    """Messages to put into the conversation, oldest first; an empty sequence for none. It may raise: that ends the
    run.

    As `get_steering_messages` it is called after each turn that neither failed nor was stopped; as
    `get_follow_up_messages` when the run would end by itself: there is nothing to steer, and the model has answered
    without calls or every result of the turn was a hint to terminate. With something to add, the run goes on.
    """

    def __call__(self, turn: FinishedTurn, /) -> Sequence[UserMessage]: ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """All optional; the loop without any is an agent that may do everything."""

    transform_context: TransformContext | None = None
    before_tool_call: BeforeToolCall | None = None
    after_tool_call: AfterToolCall | None = None
    should_stop_after_turn: ShouldStopAfterTurn | None = None
    get_steering_messages: GetMessages | None = None
    get_follow_up_messages: GetMessages | None = None


ToolCallStatus: TypeAlias = Literal["ok", "error", "denied", "cancelled"]

ToolCallStage: TypeAlias = Literal[
    "lookup", "arguments", "before_tool_call", "execute", "after_tool_call", "truncated_turn", "cancelled"
]
"""Which road an error took."""


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """How one call of the model ended. Each call has exactly one."""

    status: ToolCallStatus
    stage: ToolCallStage | None
    """None when all went well."""
    content: tuple[ToolResultContent, ...]
    details: JsonObject | None = None
    decision: Decision | None = None
    """None when the fourth gate was not reached, or had nothing to say."""
    terminate: bool = False

    @property
    def is_error(self) -> bool:
        return self.status != "ok"
