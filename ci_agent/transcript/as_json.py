"""Messages, decisions and results as the record spells them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

from ci_agent.hooks import Decision, FactVerdict
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from ci_agent.transcript.plain_json import plain

MAX_ARGUMENTS_DEPTH = 40
MAX_ARGUMENTS_VALUES = 10_000
"""Arguments past one of these stay raw text in the record: nothing of them is lost, and readers stay safe."""


def timestamp(moment: datetime) -> str:
    """UTC in milliseconds, `2026-01-01T00:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def message_json(message: Message) -> JsonObject:
    match message:
        case UserMessage():
            return {"role": "user", "content": parts_json(message.content), "timestamp": timestamp(message.timestamp)}
        case AssistantMessage():
            return _assistant_json(message)
        case ToolResultMessage():
            return _tool_result_json(message)
    assert_never(message)


def parts_json(parts: Sequence[AssistantContent | ToolResultContent]) -> list[JsonObject]:
    return [_part_json(part) for part in parts]


def arguments_json(text: str) -> JsonObject:
    """`arguments`: the object that the model's text is; or, when it is none, None and the text as `arguments_json`."""
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if isinstance(value, dict) and fits(value):
        return {"arguments": value}
    return {"arguments": None, "arguments_json": text}


def fits(arguments: JsonObject) -> bool:
    """Whether arguments are recorded as an object."""
    return plain(arguments, max_depth=MAX_ARGUMENTS_DEPTH, max_values=MAX_ARGUMENTS_VALUES).complete


def decision_json(decision: Decision) -> JsonObject:
    nearest = decision.nearest
    return {
        "effect": decision.effect,
        "code": decision.code,
        "rule_id": decision.rule_id,
        "source": decision.source,
        "reason": decision.reason,
        "fact": None if decision.fact is None else _fact_json(decision.fact),
        "facts": [_fact_json(fact) for fact in decision.facts],
        "argument": decision.argument,
        "span": None if decision.span is None else list(decision.span),
        "nearest": nearest and {"rule_id": nearest.rule_id, "source": nearest.source, "stopped_at": nearest.stopped_at},
        "because": decision.because,
        "instead": decision.instead,
        "on_denied": decision.on_denied,
    }


def usage_json(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_usd": usage.cost_usd,
        **({"estimated": True} if usage.estimated else {}),
    }


def _assistant_json(message: AssistantMessage) -> JsonObject:
    return {
        "role": "assistant",
        "content": parts_json(message.content),
        "stop_reason": message.stop_reason,
        "provider": message.provider,
        "model": message.model,
        "api": message.api,
        "response_id": message.response_id,
        "usage": usage_json(message.usage),
        "error_message": message.error_message,
        "error_retryable": message.error_retryable,
        "timestamp": timestamp(message.timestamp),
    }


def _tool_result_json(message: ToolResultMessage) -> JsonObject:
    return {
        "role": "tool_result",
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
        "content": parts_json(message.content),
        "is_error": message.is_error,
        "timestamp": timestamp(message.timestamp),
    }


def _part_json(part: AssistantContent | ToolResultContent) -> JsonObject:
    match part:
        case TextContent():
            return {"type": "text", "text": part.text, **_replay(part)}
        case ImageContent():
            return {"type": "image", "mime_type": part.mime_type, "data_base64": part.data_base64}
        case ThinkingContent():
            return {"type": "thinking", "text": part.text, **_replay(part)}
        case ToolCall():
            call = {"type": "tool_call", "id": part.id, "name": part.name, **arguments_json(part.arguments_json)}
            return call | _replay(part)
    assert_never(part)


def _replay(part: AssistantContent) -> JsonObject:
    return {} if part.replay is None else {"replay": part.replay}


def _fact_json(fact: FactVerdict) -> JsonObject:
    return {
        "kind": fact.kind,
        "value": fact.value,
        "granted_by": fact.granted_by,
        "forbidden_by": fact.forbidden_by,
    }
