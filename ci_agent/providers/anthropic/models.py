"""What a model behind the Anthropic Messages API takes: how much it may say, how it is told to think, which schemas it
can be held to. From the catalogue where it knows, else from the model's name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ci_agent.json_types import Json, JsonObject
from ci_agent.provider import StreamOptions, ThinkingLevel
from ci_agent.providers.wire.api import Target

DEFAULT_MAX_TOKENS = 32_000
"""Where nobody says: the API wants a number, and counts it against the context of some models."""
UNKNOWN_MAX_TOKENS = 16_384
"""For models whose limit nobody knows."""

_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?(?!\d)")
_FIRST_ADAPTIVE = (4, 6)
_FIRST_INTERLEAVED = (4, 0)
_FIRST_ENFORCING = (4, 5)
_INTERLEAVED = "interleaved-thinking-2025-05-14"

_MIN_BUDGET = 1_024
_BUDGETS: dict[ThinkingLevel, int] = {"minimal": _MIN_BUDGET, "low": 2_048, "medium": 8_192, "high": 16_384}
_EFFORTS: dict[ThinkingLevel, Literal["low", "medium", "high"]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
}


@dataclass(frozen=True, slots=True)
class ThinkingRequest:
    """The parts of a request that are about thinking."""

    field: JsonObject | None = None
    """The value of `thinking`; None: not sent."""
    effort: str | None = None
    beta: str | None = None
    thinks: bool = False
    needs_thinking_before_calls: bool = False
    """Whether the last calls in the history must begin with thinking."""


def max_tokens(target: Target, options: StreamOptions) -> int:
    """How much the model may say in one message, thinking included."""
    known = target.facts.max_output_tokens
    if options.max_output_tokens is not None:
        return options.max_output_tokens
    return UNKNOWN_MAX_TOKENS if known is None else min(known, DEFAULT_MAX_TOKENS)


def thinking_request(target: Target, options: StreamOptions) -> ThinkingRequest:
    """Models from 4.6 on take an effort and decide themselves; those before, and other makers', take a budget, of which
    the answer keeps at least half of what may be said."""
    level = options.thinking
    if level is None or target.facts.thinks is False:
        return ThinkingRequest()
    if _is_adaptive(target):
        if level == "off":
            return ThinkingRequest({"type": "disabled"})
        return ThinkingRequest({"type": "adaptive", "display": "summarized"}, effort=_EFFORTS[level], thinks=True)
    room = max_tokens(target, options)
    if level == "off" or room <= _MIN_BUDGET:
        return ThinkingRequest()
    budget = max(_MIN_BUDGET, min(_BUDGETS[level], room // 2))
    version = claude_version(target.model.id)
    return ThinkingRequest(
        {"type": "enabled", "budget_tokens": budget},
        beta=_INTERLEAVED if version is not None and version >= _FIRST_INTERLEAVED else None,
        thinks=True,
        needs_thinking_before_calls=True,
    )


def claude_version(model_id: str) -> tuple[int, int] | None:
    """(4, 5) of `claude-sonnet-4-5-20250929` and (4, 0) of `claude-opus-4-20250514`, whatever stands around them; None
    for other models, and for Claude without a number."""
    match = _VERSION.search(model_id.lower())
    return None if match is None else (int(match[1]), int(match[2] or 0))


def _is_adaptive(target: Target) -> bool:
    """A Claude without a number is a name for the newest."""
    if target.facts.adaptive_thinking is not None:
        return target.facts.adaptive_thinking
    version = claude_version(target.model.id)
    return version >= _FIRST_ADAPTIVE if version is not None else "claude-" in target.model.id.lower()


# Structured output

_PLAIN_KEYWORDS = frozenset(
    ["type", "enum", "const", "required", "title", "description", "default", "examples", "$ref", "$schema", "$id"]
)
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"])


def can_enforce(schema: JsonObject, target: Target) -> bool:
    """Whether the API can hold this model to all that the schema says."""
    enforces = target.facts.enforces_schema
    if enforces is None:
        version = claude_version(target.model.id)
        enforces = version is not None and version >= _FIRST_ENFORCING
    return enforces and all(_is_enforceable(part) for part in _subschemas(schema))


def _subschemas(schema: Json) -> Iterator[Json]:
    yield schema
    if not isinstance(schema, dict):
        return
    for key in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            for part in schema[key].values():
                yield from _subschemas(part)
    for key in ("anyOf", "allOf"):
        if isinstance(schema.get(key), list):
            for part in schema[key]:
                yield from _subschemas(part)
    if "items" in schema:
        yield from _subschemas(schema["items"])


def _is_enforceable(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    is_closed = schema.get("additionalProperties") is False
    return (is_closed or not _describes_object(schema)) and all(_is_known(key, schema[key]) for key in schema)


def _describes_object(schema: JsonObject) -> bool:
    return "properties" in schema or "object" in (schema.get("type"), *_as_list(schema.get("type")))


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _is_known(key: str, value: Json) -> bool:
    match key:
        case "properties" | "$defs" | "definitions":
            return isinstance(value, dict)
        case "anyOf" | "allOf":
            return isinstance(value, list)
        case "items":
            return isinstance(value, dict)
        case "additionalProperties":
            return value is False
        case "format":
            return isinstance(value, str) and value in _FORMATS
        case "minItems":
            return value in (0, 1)
        case _:
            return key in _PLAIN_KEYWORDS
