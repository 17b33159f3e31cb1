"""The models of journal and transcript: what is validated when a record is read, and published as JSON Schema.

Writing needs none of them; the tests hold what is written against them.
"""

from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ci_agent.exit_codes import ResultReason
from ci_agent.hooks import DecisionCode, Effect, OnDenied, ToolCallStage
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import StopReason

Count: TypeAlias = Annotated[int, Field(ge=0)]
Number: TypeAlias = Annotated[int, Field(ge=1)]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Timestamp: TypeAlias = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]

_MAX_PROBLEMS = 20


class Closed(BaseModel):
    """A JSON object with exactly the keys that are listed."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, use_attribute_docstrings=True)


# What both hold: content, messages, decisions


class TextPart(Closed):
    type: Literal["text"]
    text: str


class ImagePart(Closed):
    type: Literal["image"]
    mime_type: str
    data_base64: str


class ThinkingPart(Closed):
    type: Literal["thinking"]
    text: str
    signature: str | None


class ToolCallPart(Closed):
    """The model's wish to call a tool."""

    type: Literal["tool_call"]
    id: str
    name: str
    arguments: JsonObject | None
    """The object that the model sent; null when its text was none."""
    arguments_json: str | None = None
    """The model's text, only when `arguments` is null."""


ResultPart: TypeAlias = Annotated[TextPart | ImagePart, Field(discriminator="type")]
AssistantPart: TypeAlias = Annotated[TextPart | ThinkingPart | ToolCallPart, Field(discriminator="type")]


class UsageRecord(Closed):
    input_tokens: Count
    """Fresh input: tokens read from or written to a cache are not counted again here."""
    output_tokens: Count
    cache_read_tokens: Count
    cache_write_tokens: Count
    cost_usd: Annotated[float, Field(ge=0)] | None
    """Null: the price of a part is not known."""


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


class PolicyRecord(Closed):
    name: str
    sha256: str
    rules: Count
    limits: JsonObject


# The journal


class JournalLine(Closed):
    seq: Number
    prev: Sha256
    """SHA-256 of the line before, without its line end; zeros in the first."""
    at: Timestamp
    redactions: Number | None = None
    """Places of this record where a secret was replaced; absent when there is none."""


class RunFactsRecord(Closed):
    id: str
    version: str
    workspace: str
    sandbox: SandboxRecord | None
    ci: CIRecord | None


class RunStartLine(JournalLine):
    kind: Literal["run_start"]
    schema_: Annotated[Literal["ci-agent.journal/1"], Field(alias="schema")]
    run: RunFactsRecord
    model: ModelRecord
    policy: PolicyRecord | None


class ToolResultReference(Closed):
    """The result message of a call, whose content stands in the call's end."""

    role: Literal["tool_result"]
    call: Number
    timestamp: Timestamp


class MessageLine(JournalLine):
    kind: Literal["message"]
    turn: Count
    message: UserRecord | AssistantRecord | ToolResultRecord | ToolResultReference


class CallStartLine(JournalLine):
    """The model wants this call. Written before anything of it is looked at."""

    kind: Literal["call_start"]
    call: Number
    turn: Count
    index: Count
    """Position among the calls of the message, from 0."""
    id: str
    tool: str
    arguments: JsonObject | None
    arguments_json: str | None = None


class CallDecisionLine(JournalLine):
    """The policy has spoken. Durable before an allowed call has its effect."""

    kind: Literal["call_decision"]
    call: Number
    decision: DecisionRecord | None
    arguments: JsonObject | None = None
    """What the tool gets, when it is not what the model sent."""


class CallEndLine(JournalLine):
    kind: Literal["call_end"]
    call: Number
    status: Literal["ok", "error", "denied", "cancelled"]
    stage: ToolCallStage | None
    duration_s: Seconds
    output_bytes: Count
    truncated: bool
    content: list[ResultPart]
    details: JsonObject
    decision: DecisionRecord | None = None
    """Only when no `call_decision` went before."""


class NoteLine(JournalLine):
    kind: Literal["note"]
    about: str
    text: str


class EndingRecord(Closed):
    reason: ResultReason
    exit_code: Count
    structured_output: Json
    error: str | None
    error_retryable: bool | None


class RunEndLine(JournalLine):
    kind: Literal["run_end"]
    duration_s: Seconds
    result: EndingRecord
    seal: Sha256
    """SHA-256 of this line up to this key."""


JournalRecord: TypeAlias = Annotated[
    RunStartLine | MessageLine | CallStartLine | CallDecisionLine | CallEndLine | NoteLine | RunEndLine,
    Field(discriminator="kind"),
]


# The document


class RunRecord(RunFactsRecord):
    started_at: Timestamp
    duration_s: Seconds | None
    """Null: the run did not come to its end."""


class ToolCallRecord(Closed):
    """One call of the model with its decision and its one result."""

    seq: Number
    turn: Count
    id: str
    tool: str
    arguments: JsonObject | None
    """What the tool got if it ran; null when the model's text was no JSON object."""
    arguments_json: str | None = None
    """The model's text, only when it was no JSON object."""
    decision: DecisionRecord | None
    """Null: the policy was not asked (see `stage`), or there is none."""
    status: Literal["ok", "error", "denied", "cancelled", "unknown"]
    """`unknown` in records of runs that were killed: it had begun, and nobody knows how it ended."""
    stage: ToolCallStage | None
    """Which road an error took."""
    is_error: bool
    content: list[ResultPart]
    """What the model read."""
    details: JsonObject
    started_at: Timestamp | None
    """Null: it was never taken up."""
    duration_s: Seconds | None
    output_bytes: Count
    """What the tool put out in all; `content` may hold less."""
    truncated: bool


class StatusCounts(Closed):
    ok: Count
    error: Count
    denied: Count
    cancelled: Count
    unknown: Count = 0


class ResultRecord(Closed):
    reason: ResultReason | Literal["unknown"]
    """Why the run ended; `unknown`: it was killed."""
    exit_code: Count | None
    final_text: str | None
    structured_output: Json
    tool_calls: StatusCounts
    error: str | None
    error_retryable: bool | None


class RedactionsRecord(Closed):
    count: Count


class NoteRecord(Closed):
    at: Timestamp
    about: str
    text: str


class IntegrityRecord(Closed):
    """Shows a cut or a careless edit. No signature."""

    complete: bool
    """Whether the run came to its end."""
    records: Count
    """Records of the journal that went into the document."""
    journal_sha256: Sha256
    """Of the journal's last line."""
    dropped_bytes: Count
    """Length of a last line that was never finished."""
    problems: list[str]
    """What was wrong with the journal."""
    document_sha256: Sha256
    """Of everything but this block: keys sorted, ASCII, no white space."""


class TranscriptDocument(Closed):
    schema_: Annotated[Literal["ci-agent.transcript/1"], Field(alias="schema")]
    run: RunRecord | None
    """Null, as `model` and `policy`: the beginning of the journal is lost."""
    model: ModelRecord | None
    policy: PolicyRecord | None
    messages: list[Annotated[UserRecord | AssistantRecord | ToolResultRecord, Field(discriminator="role")]]
    tool_calls: list[ToolCallRecord]
    usage: UsageRecord
    result: ResultRecord
    redactions: RedactionsRecord
    notes: list[NoteRecord]
    """Warnings, retries and the like."""
    integrity: IntegrityRecord


def transcript_schema() -> JsonObject:
    """The JSON Schema of the transcript document."""
    return _schema(_document_adapter(), "urn:ci-agent:transcript:1", "The record of one run of ci-agent")


def journal_schema() -> JsonObject:
    """The JSON Schema of one line of a journal."""
    return _schema(_line_adapter(), "urn:ci-agent:journal:1", "One line of a ci-agent journal")


def document_problems(document: Json) -> list[str]:
    """Where a document breaks its schema, at most twenty places; empty when it does not."""
    return _problems(_document_adapter(), document)


def line_problems(record: Json) -> list[str]:
    """Where a journal's record breaks its schema, at most twenty places; empty when it does not."""
    return _problems(_line_adapter(), record)


@cache
def _document_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(TranscriptDocument)


@cache
def _line_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(JournalRecord)


def _schema(adapter: TypeAdapter[Any], identifier: str, title: str) -> JsonObject:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": identifier,
        **adapter.json_schema(),
        "title": title,
    }


def _problems(adapter: TypeAdapter[Any], value: Json) -> list[str]:
    if not isinstance(value, dict):
        return ["it is no JSON object"]
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return [_problem(details) for details in error.errors(include_url=False, include_input=False)[:_MAX_PROBLEMS]]
    return []


def _problem(details: ErrorDetails) -> str:
    place = ".".join(map(str, details["loc"]))
    return f"{place}: {details['msg']}" if place else details["msg"]
