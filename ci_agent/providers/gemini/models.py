"""What a model of Gemini takes: how it is told to think, and what only newer ones can. From the model's name, since
nothing else says it; a name without a number means the newest."""

import re

from ci_agent.json_types import JsonObject
from ci_agent.provider import StreamOptions, ThinkingLevel
from ci_agent.providers.wire.api import Target

_VERSION = re.compile(r"gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)")
_FIRST_THINKING = (2, 5)
_THIRD = (3, 0)

_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576}
_LEAST_BUDGET_OF_PRO = 128
"""It cannot be told not to think."""
_LEVELS: dict[ThinkingLevel, str] = {
    "off": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
}
_LEVELS_OF_ALL: dict[ThinkingLevel, str] = {
    "off": "LOW",
    "minimal": "LOW",
    "low": "LOW",
    "medium": "HIGH",
    "high": "HIGH",
}


def is_third_or_later(target: Target) -> bool:
    """Whether the model checks signatures of calls, takes images in results, and a schema for its answer along with
    tools."""
    version = _version(target)
    return version is None or version >= _THIRD


def thinking_config(target: Target, options: StreamOptions) -> JsonObject | None:
    """The value of `thinkingConfig`; None: not sent. Models from 3 on take a level and cannot be told not to think; 2.5
    takes a budget of tokens, of which the answer keeps at least half of what may be said."""
    level, version = options.thinking, _version(target)
    is_too_old = version is not None and version < _FIRST_THINKING
    if level is None or target.facts.thinks is False or is_too_old:
        return None
    shown: JsonObject = {"includeThoughts": level != "off"}
    if is_third_or_later(target):
        levels = _LEVELS if "flash" in target.model.id else _LEVELS_OF_ALL
        return shown | {"thinkingLevel": levels[level]}
    return shown | {"thinkingBudget": _budget(target, level, options.max_output_tokens)}


def _budget(target: Target, level: ThinkingLevel, max_output_tokens: int | None) -> int:
    budget = _BUDGETS.get(level, 0)
    if max_output_tokens is not None:
        budget = min(budget, max_output_tokens // 2)
    if "pro" in target.model.id:
        return max(budget, _LEAST_BUDGET_OF_PRO)
    return 0 if level == "off" else max(budget, _BUDGETS["minimal"])


def _version(target: Target) -> tuple[int, int] | None:
    match = _VERSION.search(target.model.id)
    return None if match is None else (int(match[1]), int(match[2] or 0))
