"""Calls of earlier runs as plain data: what was called, and what the policy of the time said."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent.hooks import DecisionCode, Effect
from ci_agent.json_types import JsonObject

Skip: TypeAlias = Literal[
    "lookup",  # no tool of that name
    "arguments",  # they broke the tool's schema
    "cancelled",  # it was never taken up
    "truncated_turn",  # the model's message was cut off
    "no_policy",  # nothing decided on it
    "run_limit",  # the run's own limit of calls; the policy was not asked
    "not_offered",  # the policy allowed it, `--tools` did not: whatever a policy says, it stays denied
    "not_recorded",  # its arguments were too large or too deep to be recorded
    "redacted",  # a secret was taken out of its arguments, so they are not what was decided
]
"""Why a recorded call cannot be decided again."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What a policy said of a call."""

    effect: Effect
    code: DecisionCode
    rule_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that a policy decided."""

    transcript: str
    """The file's name as it was given, or found in a folder that was given."""
    seq: int
    tool: str
    arguments: JsonObject
    answer: RecordedAnswer


@dataclass(frozen=True, slots=True)
class SkippedCall:
    transcript: str
    seq: int
    tool: str
    why: Skip


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The calls of one run, in their order."""

    transcript: str
    workspace: str | None
    """The folder that the run worked in; None: the beginning of the record is lost."""
    calls: tuple[RecordedCall, ...]
    skipped: tuple[SkippedCall, ...]
