"""What a model behind Bedrock's Converse API takes: the makers differ, and the model's id tells the maker."""

import json

from ci_agent.json_types import JsonObject
from ci_agent.provider import StreamOptions, ThinkingLevel
from ci_agent.providers.anthropic.models import can_enforce, claude_version, max_tokens, thinking_request
from ci_agent.providers.wire.api import Target
from ci_agent.providers.wire.history import cleaned

_FIRST_CACHING = (3, 7)
_CACHING_BEFORE = "claude-3-5-haiku"
_EFFORTS: dict[ThinkingLevel, str] = {
    "off": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
}


def is_claude(target: Target) -> bool:
    return "claude" in target.model.id


def takes_signatures(target: Target) -> bool:
    """Whether signed thinking may go back with its signature. An ARN may hide whose model it is; if thinking came
    signed from there, it is one that signs."""
    return is_claude(target) or _hides_its_maker(target)


def takes_cache_points(target: Target) -> bool:
    if not is_claude(target):
        return False
    version = claude_version(target.model.id)
    return version is None or version >= _FIRST_CACHING or _CACHING_BEFORE in target.model.id


def thinking_fields(target: Target, options: StreamOptions, *, goes_on_without_thinking: bool) -> JsonObject:
    """Fields of `additionalModelRequestFields`, which go to the model as they are.

    `goes_on_without_thinking`: the model is in the middle of a turn whose last calls do not begin with thinking; some
    may not begin to think then.
    """
    level = options.thinking
    if is_claude(target):
        return _thinking_of_claude(target, options, goes_on_without_thinking=goes_on_without_thinking)
    if level is None or target.facts.thinks is False:
        return {}
    if "gpt-oss" in target.model.id:
        return {"reasoning_effort": _EFFORTS[level]}
    if "nova-2" in target.model.id:
        kind: JsonObject = {"type": "disabled"} if level == "off" else {"type": "enabled"}
        effort: JsonObject = {} if level == "off" else {"maxReasoningEffort": _EFFORTS[level]}
        return {"reasoningConfig": kind | effort}
    return {}


def inference_config(target: Target, options: StreamOptions, thinking: JsonObject) -> JsonObject:
    """A budget for thinking is a part of what may be said, which therefore has to be named along with it."""
    config: JsonObject = {}
    has_budget = "budget_tokens" in thinking.get("thinking", {})
    if options.max_output_tokens is not None or has_budget:
        config["maxTokens"] = max_tokens(target, options)
    thinks = thinking.get("thinking", {"type": "disabled"})["type"] != "disabled"
    if options.temperature is not None and not thinks and target.facts.takes_temperature is not False:
        config["temperature"] = options.temperature
    return config


def output_config(target: Target, options: StreamOptions) -> JsonObject:
    """The schema is sent only where the model can be held to all of it; the caller checks anyway."""
    schema = options.output_schema
    if schema is None or not can_enforce(schema, target):
        return {}
    definition = {"name": "answer", "schema": json.dumps(cleaned(schema), ensure_ascii=False)}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def _thinking_of_claude(target: Target, options: StreamOptions, *, goes_on_without_thinking: bool) -> JsonObject:
    request = thinking_request(target, options)
    if request.field is None or (request.needs_thinking_before_calls and goes_on_without_thinking):
        return {}
    fields: JsonObject = {"thinking": request.field}
    if request.effort is not None:
        fields["output_config"] = {"effort": request.effort}
    if request.beta is not None:
        fields["anthropic_beta"] = [request.beta]
    return fields


def _hides_its_maker(target: Target) -> bool:
    kind = target.model.id.rpartition("/")[0].rpartition(":")[2]
    return target.model.id.startswith("arn:") and kind not in ("foundation-model", "inference-profile")
