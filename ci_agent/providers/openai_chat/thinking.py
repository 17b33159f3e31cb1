"""What Chat Completions servers are told about how much to think."""

from typing import assert_never

from ci_agent.json_types import JsonObject
from ci_agent.provider import StreamOptions, ThinkingLevel
from ci_agent.providers.openai_chat.traits import ThinkingStyle
from ci_agent.providers.wire.api import Target


def thinking_fields(style: ThinkingStyle, target: Target, options: StreamOptions) -> JsonObject:
    """Fields of the request; none when nobody asked, or when a model that never thinks shall not."""
    level = options.thinking
    if level is None or (level == "off" and target.facts.thinks is False):
        return {}
    match style:
        case "effort":
            return {"reasoning_effort": _effort(level)}
        case "reasoning_object":
            return {"reasoning": {"effort": _effort(level)}}
        case "switch":
            return {"thinking": {"type": "disabled"}} if level == "off" else _switched_on(level)
        case "chat_template":
            return _for_template(level)
        case "groq":
            return _for_groq(target.model.id, level)
        case "none":
            return {}
    assert_never(style)


def _effort(level: ThinkingLevel) -> str:
    return "none" if level == "off" else level


def _at_least_low(level: ThinkingLevel) -> str:
    return "low" if level in ("off", "minimal") else level


def _switched_on(level: ThinkingLevel) -> JsonObject:
    return {"thinking": {"type": "enabled"}, "reasoning_effort": _at_least_low(level)}


def _for_template(level: ThinkingLevel) -> JsonObject:
    """A template ignores arguments that it does not know; models that have no template take the effort alone."""
    if level == "off":
        return {"chat_template_kwargs": {"enable_thinking": False}}
    effort = _at_least_low(level)
    template: JsonObject = {"enable_thinking": True, "reasoning_effort": effort}
    return {"chat_template_kwargs": template, "reasoning_effort": effort}


def _for_groq(model_id: str, level: ThinkingLevel) -> JsonObject:
    """gpt-oss takes an effort and cannot stop thinking; the others are switched, and think in their text unless told
    where else."""
    if "gpt-oss" in model_id:
        return {"reasoning_effort": _at_least_low(level)}
    if level == "off":
        return {"reasoning_effort": "none"}
    return {"reasoning_effort": "default", "reasoning_format": "parsed"}
