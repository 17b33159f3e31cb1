"""How a run ended, as a reason and an exit code: one table, one order of precedence, one pure function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

ResultReason: TypeAlias = Literal[
    "completed",  # the run ended by itself
    "stopped",  # a hook ended it, or a rule with `on_denied: stop`
    "limit",  # turns, calls, tokens, cost or disk used up, or the answer cut off at its maximum length
    "provider_error",  # the model could not be reached or refused, or the run did not go as its script expects
    "denied",  # it ended by itself, and what was denied makes it a failure
    "schema_mismatch",  # the answer never satisfied the output schema
    "timeout",  # wall clock
    "cancelled",  # by a signal, or by the program that embeds the run
    "tampered",  # a tool changed what only the runner or ci-agent may write
    "internal_error",  # a bug
]

When: TypeAlias = Literal["never", "all", "any"]
"""How many calls must have ended badly for the run to count as failed; `all`: some did and not one succeeded."""

ExitName: TypeAlias = Literal[
    "completed",
    "negative",
    "usage",
    "configuration",
    "provider",
    "denied",
    "limit",
    "schema",
    "busy",
    "tampered",
    "internal",
    "timeout",
    "signal",
]


@dataclass(frozen=True, slots=True)
class ExitCode:
    code: int
    """For `signal` the base, to which the signal's number is added."""
    name: ExitName
    meaning: str
    advice: str
    """What a person can do next; empty when there is nothing to do."""


EXIT_CODES: dict[ExitName, ExitCode] = {
    row.name: row
    for row in (
        ExitCode(0, "completed", "the run ended by itself and nothing below applies", ""),
        ExitCode(
            1,
            "negative",
            "completed, but with a negative outcome: a test, a check or a call failed, or the output had no reader",
            "Read the failed calls, the notes and the error in the record.",
        ),
        ExitCode(2, "usage", "the command line is wrong", "See `ci-agent COMMAND --help`."),
        ExitCode(
            3,
            "configuration",
            "a policy, task, script or schema is invalid, the transcript cannot be written, or a required sandbox "
            "is missing",
            "Correct what the message names and run again.",
        ),
        ExitCode(
            4,
            "provider",
            "the model could not be reached or refused, after retries; or a script did not fit the run",
            "Read the error in the record: it says whether trying again can help.",
        ),
        ExitCode(
            5,
            "denied",
            "`--fail-on-denied` applies, or a rule with `on_denied: fail` or `stop` matched",
            "If a denied call is wanted, ask `ci-agent policy explain`: it says why, and shows the smallest rule for "
            "it.",
        ),
        ExitCode(
            6,
            "limit",
            "turns, calls, tokens, cost or disk used up, or the answer was cut off at its maximum length",
            "See in the record what used the limit up; raise it, or make the task smaller.",
        ),
        ExitCode(
            7,
            "schema",
            "the answer never satisfied `--output-schema`",
            "Compare the answer in the record with the schema; ask for the format more plainly, or relax the schema.",
        ),
        ExitCode(
            8, "busy", "another run holds this transcript or lock", "Wait for the other run, or name other files."
        ),
        ExitCode(
            9,
            "tampered",
            "a tool changed what only the runner or ci-agent may write",
            "Do not trust this job's later steps; find the call that did it in the record.",
        ),
        ExitCode(
            70,
            "internal",
            "a bug (traceback on stderr), or the system refused what every command needs; transcript still closed",
            "Report it with the traceback; without one, free what the message names.",
        ),
        ExitCode(124, "timeout", "wall clock", "Raise `--timeout`, or make the task smaller."),
        ExitCode(128, "signal", "128 + the number of the signal that cancelled the run", "Run again when it suits."),
    )
}

SIGINT_NUMBER = 2
"""Stands for the signal when a program cancelled the run without one."""


@dataclass(frozen=True, slots=True)
class ToolCallCounts:
    ok: int = 0
    error: int = 0
    denied: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Everything that the exit code of a run depends on."""

    reasons: frozenset[ResultReason] = frozenset({"completed"})
    """All that happened; several can (a time-out, and a tool that touched the runner's files)."""
    signal: int | None = None
    """Its number, when one cancelled the run."""
    tool_calls: ToolCallCounts = ToolCallCounts()
    fail_on_denied: When = "all"
    fail_on_error: When = "never"
    denial_fails: bool = False
    """A call was denied by a rule with `on_denied` `fail` or `stop`."""
    diverged: bool = False
    """A replay parted from its record, and that counts as failed."""
    output_lost: bool = False
    """stdout was closed before the result could be written, or nobody takes what was proposed."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    reason: ResultReason
    name: ExitName
    exit_code: int


def conclude(facts: RunFacts) -> Conclusion:
    """The reason and the exit code of a run: the first row of the order of precedence that applies."""
    name, reason = next((name, reason) for name, reason, applies in _PRECEDENCE if applies(facts))
    if "stopped" in facts.reasons and name in _LEAVES_THE_REASON:
        reason = "stopped"
    return Conclusion(reason, name, _exit_code(name, facts.signal))


def signal_of(exit_code: int) -> int | None:
    """The number of the signal behind an exit code; None when it stands for none."""
    return exit_code - 128 if 128 < exit_code < 128 + 65 else None


def exit_name(exit_code: int) -> ExitName | None:
    """The row of the table that a code belongs to; None when it belongs to none."""
    if signal_of(exit_code) is not None:
        return "signal"
    return next((row.name for row in EXIT_CODES.values() if row.code == exit_code and row.name != "signal"), None)


def _exit_code(name: ExitName, signal: int | None) -> int:
    code = EXIT_CODES[name].code
    return code + (signal or SIGINT_NUMBER) if name == "signal" else code


def _failed(when: When, failed: int, succeeded: int) -> bool:
    return failed > 0 and (when == "any" or (when == "all" and succeeded == 0))


def _is_denied(facts: RunFacts) -> bool:
    calls = facts.tool_calls
    return facts.denial_fails or "denied" in facts.reasons or _failed(facts.fail_on_denied, calls.denied, calls.ok)


def _is_negative(facts: RunFacts) -> bool:
    calls = facts.tool_calls
    return facts.output_lost or facts.diverged or _failed(facts.fail_on_error, calls.error, calls.ok)


def _happened(reason: ResultReason) -> Callable[[RunFacts], bool]:
    return lambda facts: reason in facts.reasons


_PRECEDENCE: tuple[tuple[ExitName, ResultReason, Callable[[RunFacts], bool]], ...] = (
    ("signal", "cancelled", lambda facts: facts.signal is not None or "cancelled" in facts.reasons),
    ("timeout", "timeout", _happened("timeout")),
    ("internal", "internal_error", _happened("internal_error")),
    ("tampered", "tampered", _happened("tampered")),
    ("provider", "provider_error", _happened("provider_error")),
    ("limit", "limit", _happened("limit")),
    ("denied", "denied", _is_denied),
    ("schema", "schema_mismatch", _happened("schema_mismatch")),
    ("negative", "completed", _is_negative),
    ("completed", "completed", lambda _facts: True),
)

_LEAVES_THE_REASON: frozenset[ExitName] = frozenset({"denied", "negative", "completed"})
"""A run that was stopped says so, also when calls that failed decide its exit code."""
