"""The table of exit codes, row by row, and which row wins when several apply."""

from itertools import combinations
from pathlib import Path

import pytest

from ci_agent.errors import BusyError, CIAgentError, ConfigurationError, InvalidFileError, RecordError
from ci_agent.exit_codes import (
    EXIT_CODES,
    Conclusion,
    ExitName,
    ResultReason,
    RunFacts,
    ToolCallCounts,
    When,
    conclude,
    exit_name,
    signal_of,
)

ALL_OK = ToolCallCounts(ok=3)
ONE_DENIED = ToolCallCounts(ok=2, denied=1)
ONLY_DENIED = ToolCallCounts(denied=1)
ONE_ERROR = ToolCallCounts(ok=2, error=1)
ONLY_ERRORS = ToolCallCounts(error=2)


def facts(*reasons: ResultReason) -> RunFacts:
    return RunFacts(reasons=frozenset(reasons))


def test_the_codes_are_the_documented_ones() -> None:
    assert {name: row.code for name, row in EXIT_CODES.items()} == {
        "completed": 0,
        "negative": 1,
        "usage": 2,
        "configuration": 3,
        "provider": 4,
        "denied": 5,
        "limit": 6,
        "schema": 7,
        "busy": 8,
        "tampered": 9,
        "internal": 70,
        "timeout": 124,
        "signal": 128,
    }


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (facts("completed"), Conclusion("completed", "completed", 0)),
        (facts(), Conclusion("completed", "completed", 0)),
        (facts("stopped"), Conclusion("stopped", "completed", 0)),
        (facts("limit"), Conclusion("limit", "limit", 6)),
        (facts("provider_error"), Conclusion("provider_error", "provider", 4)),
        (facts("denied"), Conclusion("denied", "denied", 5)),
        (facts("schema_mismatch"), Conclusion("schema_mismatch", "schema", 7)),
        (facts("timeout"), Conclusion("timeout", "timeout", 124)),
        (facts("tampered"), Conclusion("tampered", "tampered", 9)),
        (facts("internal_error"), Conclusion("internal_error", "internal", 70)),
        (facts("cancelled"), Conclusion("cancelled", "signal", 130)),
        (RunFacts(frozenset({"cancelled"}), signal=1), Conclusion("cancelled", "signal", 129)),
        (RunFacts(frozenset({"cancelled"}), signal=2), Conclusion("cancelled", "signal", 130)),
        (RunFacts(frozenset({"cancelled"}), signal=15), Conclusion("cancelled", "signal", 143)),
        (RunFacts(signal=15), Conclusion("cancelled", "signal", 143)),
        (RunFacts(denial_fails=True, tool_calls=ONE_DENIED), Conclusion("denied", "denied", 5)),
        (
            RunFacts(frozenset({"stopped"}), denial_fails=True, tool_calls=ONE_DENIED),
            Conclusion("stopped", "denied", 5),
        ),
        (RunFacts(output_lost=True), Conclusion("completed", "negative", 1)),
        (RunFacts(frozenset({"stopped"}), output_lost=True), Conclusion("stopped", "negative", 1)),
    ],
    ids=str,
)
def test_each_way_of_ending_has_its_reason_and_code(run: RunFacts, expected: Conclusion) -> None:
    assert conclude(run) == expected


@pytest.mark.parametrize(
    ("when", "calls", "code"),
    [
        ("never", ONLY_DENIED, 0),
        ("never", ONE_DENIED, 0),
        ("all", ToolCallCounts(), 0),
        ("all", ALL_OK, 0),
        ("all", ONE_DENIED, 0),
        ("all", ONLY_DENIED, 5),
        ("all", ToolCallCounts(denied=1, error=2), 5),
        ("any", ALL_OK, 0),
        ("any", ONE_DENIED, 5),
        ("any", ONLY_DENIED, 5),
    ],
)
def test_fail_on_denied(when: When, calls: ToolCallCounts, code: int) -> None:
    assert conclude(RunFacts(tool_calls=calls, fail_on_denied=when)).exit_code == code


@pytest.mark.parametrize(
    ("when", "calls", "code"),
    [
        ("never", ONLY_ERRORS, 0),
        ("all", ToolCallCounts(), 0),
        ("all", ALL_OK, 0),
        ("all", ONE_ERROR, 0),
        ("all", ONLY_ERRORS, 1),
        ("any", ALL_OK, 0),
        ("any", ONE_ERROR, 1),
        ("any", ToolCallCounts(ok=1, cancelled=1), 0),
    ],
)
def test_fail_on_error(when: When, calls: ToolCallCounts, code: int) -> None:
    assert conclude(RunFacts(tool_calls=calls, fail_on_error=when)).exit_code == code


def test_a_run_whose_every_call_was_denied_fails_unless_told_otherwise() -> None:
    assert conclude(RunFacts(tool_calls=ONLY_DENIED)) == Conclusion("denied", "denied", 5)


PRECEDENCE: tuple[tuple[ExitName, RunFacts], ...] = (
    ("signal", RunFacts(frozenset({"cancelled"}), signal=15)),
    ("timeout", facts("timeout")),
    ("internal", facts("internal_error")),
    ("tampered", facts("tampered")),
    ("provider", facts("provider_error")),
    ("limit", facts("limit")),
    ("denied", RunFacts(denial_fails=True)),
    ("schema", facts("schema_mismatch")),
    ("negative", RunFacts(output_lost=True)),
    ("completed", RunFacts()),
)


@pytest.mark.parametrize(("first", "second"), list(combinations(PRECEDENCE, 2)), ids=lambda row: row[0])
def test_when_two_apply_the_first_of_the_order_wins(
    first: tuple[ExitName, RunFacts], second: tuple[ExitName, RunFacts]
) -> None:
    both = RunFacts(
        reasons=first[1].reasons | second[1].reasons,
        signal=first[1].signal or second[1].signal,
        denial_fails=first[1].denial_fails or second[1].denial_fails,
        output_lost=first[1].output_lost or second[1].output_lost,
    )
    assert conclude(both).name == first[0]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (CIAgentError, "internal"),
        (ConfigurationError, "configuration"),
        (InvalidFileError, "configuration"),
        (RecordError, "configuration"),
        (BusyError, "busy"),
    ],
)
def test_each_error_for_a_person_carries_a_code_of_the_table(error: type[CIAgentError], name: ExitName) -> None:
    assert exit_name(error.exit_code) == name


def test_a_code_leads_back_to_its_row() -> None:
    assert [exit_name(code) for code in (0, 9, 70, 124, 129, 143)] == [
        "completed",
        "tampered",
        "internal",
        "timeout",
        "signal",
        "signal",
    ]
    assert (exit_name(128), exit_name(42), signal_of(143), signal_of(124)) == (None, None, 15, None)


def test_every_row_but_success_tells_what_to_do() -> None:
    assert [name for name, row in EXIT_CODES.items() if not row.advice] == ["completed"]


def test_the_documentation_shows_this_table() -> None:
    page = (Path(__file__).parents[1] / "docs" / "exit-codes.md").read_text()
    rows = [
        f"| {'128+n' if row.name == 'signal' else row.code} | {row.name} | {row.meaning} |"
        for row in EXIT_CODES.values()
    ]
    assert [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| code")] == rows
    order = ", ".join(name for name, _ in PRECEDENCE if name != "completed")
    assert f"the first of: {order}." in page
