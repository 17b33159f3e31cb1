"""The models of journal and transcript: what is validated when a record is read, and published as JSON Schema.

Writing needs none of them; the tests hold what is written against them.
"""

from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ci_agent.exit_codes import ResultReason
from ci_agent.hooks import ToolCallStage
from ci_agent.json_types import Json, JsonObject
from ci_agent.transcript.record_parts import (
    AssistantRecord,
    Closed,
    Count,
    DecisionRecord,
    ModelRecord,
    Number,
    PolicyRecord,
    ResultPart,
    RunFactsRecord,
    Seconds,
    Sha256,
    Timestamp,
    ToolResultRecord,
    UsageRecord,
    UserRecord,
)

_MAX_PROBLEMS = 20

# The journal


class JournalLine(Closed):
    seq: Number
    prev: Sha256
    """SHA-256 of the line before, without its line end; zeros in the first."""
    at: Timestamp
    redactions: Count = 0
    """Places of this record where a secret was replaced; absent when there is none."""


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
    arguments_json: str = ""


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
    arguments_json: str = ""
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
