"""Patterns for tool names: exact, with alternatives, and with `*` inside one part of a `server__tool` name."""

import re
from dataclasses import dataclass
from functools import lru_cache

from ci_agent.policy.matchers.wildcards import Wildcard, parse_wildcards, wildcard

_ALLOWED = re.compile(r"[A-Za-z0-9_.*{},-]+")


@dataclass(frozen=True, slots=True)
class ToolPattern:
    text: str
    alternatives: tuple[tuple[Wildcard, ...], ...]
    """Each a name cut at every `__`."""
    literals: tuple[str, ...] | None
    """The names that it matches; None when there is a `*`."""

    def covers(self, name: str) -> bool:
        """Whether an allow rule with this pattern is about the tool.

        A name with `___` can be cut in two ways, so only its exact spelling covers it.
        """
        if "___" in name:
            return self.literals is not None and name in self.literals
        parts = name.split("__")
        return any(_part_by_part(alternative, parts) for alternative in self.alternatives)

    def may_mean(self, name: str) -> bool:
        """Whether a deny rule with this pattern is about the tool: in doubt it is."""
        if "___" not in name:
            return self.covers(name)
        return any(_joined(alternative).matches(name) for alternative in self.alternatives)


@lru_cache(maxsize=1024)
def parse_tool_pattern(text: str) -> ToolPattern:
    """Read a tool name pattern; ValueError says what is wrong with it."""
    if not text:
        raise ValueError("a tool name is empty")
    if not _ALLOWED.fullmatch(text):
        raise ValueError(f"the tool name {text!r} may hold letters, digits, '_', '-', '.', and '*' or '{{a,b}}' alone")
    alternatives = tuple(_cut(alternative) for alternative in parse_wildcards(text))
    return ToolPattern(text, alternatives, _literals(alternatives))


def _literals(alternatives: tuple[tuple[Wildcard, ...], ...]) -> tuple[str, ...] | None:
    if any(part.literal is None for parts in alternatives for part in parts):
        return None
    return tuple("__".join(part.prefix for part in parts) for parts in alternatives)


def _cut(alternative: Wildcard) -> tuple[Wildcard, ...]:
    return tuple(wildcard(part) for part in "\0".join(alternative.chunks).split("__"))


def _joined(parts: tuple[Wildcard, ...]) -> Wildcard:
    return wildcard("__".join("\0".join(part.chunks) for part in parts))


def _part_by_part(pattern: tuple[Wildcard, ...], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(
        wild.matches(part, gap=1) for wild, part in zip(pattern, parts, strict=True)
    )
