"""The models that journal and transcript share: content, messages, decisions, facts of a run."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ci_agent.hooks import DecisionCode, Effect, OnDenied
from ci_agent.json_types import JsonObject
from ci_agent.messages import StopReason

Count: TypeAlias = Annotated[int, Field(ge=0)]
Number: TypeAlias = Annotated[int, Field(ge=1)]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Timestamp: TypeAlias = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]


class Closed(BaseModel):
    """A JSON object with exactly the keys that are listed."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, use_attribute_docstrings=True)


class TextPart(Closed):
    type: Literal["text"]
    text: str


class ImagePart(Closed):
    type: Literal["image"]
    mime_type: str
    data_base64: str


class ReplayedPart(Closed):
    replay: JsonObject | None = None
    """What the model's API wants back with this part; opaque."""


class AssistantTextPart(ReplayedPart):
    type: Literal["text"]
    text: str


class ThinkingPart(ReplayedPart):
    type: Literal["thinking"]
    text: str


class ToolCallPart(ReplayedPart):
    """The model's wish to call a tool."""

    type: Literal["tool_call"]
    id: str
    name: str
    arguments: JsonObject | None
    """The object that the model sent; null when its text was none."""
    arguments_json: str = ""
    """The model's text, only when `arguments` is null."""


ResultPart: TypeAlias = Annotated[TextPart | ImagePart, Field(discriminator="type")]
AssistantPart: TypeAlias = Annotated[AssistantTextPart | ThinkingPart | ToolCallPart, Field(discriminator="type")]


class UsageRecord(Closed):
    input_tokens: Count
    """Fresh input: tokens read from or written to a cache are not counted again here."""
    output_tokens: Count
    cache_read_tokens: Count
    cache_write_tokens: Count
    cost_usd: Annotated[float, Field(ge=0)] | None
    """Null: the price of a part is not known."""
    estimated: bool = False
    """Whether a server kept its counts to itself and these are a guess."""


class UserRecord(Closed):
    role: Literal["user"]
    content: list[ResultPart]
    timestamp: Timestamp


class AssistantRecord(Closed):
    role: Literal["assistant"]
    content: list[AssistantPart]
    stop_reason: StopReason
    """Why the model stopped."""
    provider: str
    model: str
    api: str
    response_id: str | None
    usage: UsageRecord
    error_message: str | None
    error_retryable: bool | None
    """Whether running again later can help; null: nobody knows, or nothing went wrong."""
    timestamp: Timestamp


class ToolResultRecord(Closed):
    """What the model read of a call."""

    role: Literal["tool_result"]
    tool_call_id: str
    tool_name: str
    content: list[ResultPart]
    is_error: bool
    timestamp: Timestamp


class FactRecord(Closed):
    """One thing that a call would do, and what the policy says of it."""

    kind: str
    value: str
    granted_by: str | None
    forbidden_by: str | None


class NearestRuleRecord(Closed):
    rule_id: str
    source: str
    stopped_at: str


class DecisionRecord(Closed):
    effect: Effect
    code: DecisionCode
    rule_id: str | None
    source: str | None
    """`file:line` of the rule that decided."""
    reason: str
    fact: FactRecord | None
    """The fact that a denial hangs on."""
    facts: list[FactRecord]
    argument: str | None
    span: Annotated[list[Count], Field(min_length=2, max_length=2)] | None
    """Where in that argument the fact stands, in characters."""
    nearest: NearestRuleRecord | None
    because: str | None
    instead: str | None
    on_denied: OnDenied


class SandboxRecord(Closed):
    kind: str
    requested: str
    abi: int | None


class CIRecord(Closed):
    provider: str
    repository: str | None
    run_url: str | None


class ModelRecord(Closed):
    provider: str
    model: str
    options: JsonObject


class CheckoutRecord(Closed):
    root: str
    """The folder that paths in reports are relative to: the top of the repository, as far as one was found."""
    started_in: str
    """The current folder, which the policy's name is relative to."""


class PolicyRecord(Closed):
    name: str
    sha256: Sha256
    rules: Count
    limits: JsonObject


class RunFactsRecord(Closed):
    id: str
    version: str
    workspace: str
    sandbox: SandboxRecord | None
    ci: CIRecord | None
    checkout: CheckoutRecord | None = None
    """Null or absent: nobody looked, and paths in reports are relative to the workspace."""
