"""What stands beneath the last line of a log when the run failed."""

from pathlib import Path
from typing import Any

import pytest

from ci_agent.reports.failure import failure_hints


def test_hints_say_why_what_to_do_and_where_to_read(
    records: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = records.transcript([records.call(1, "ls", {}, "error", "e")], result=records.result("completed", 1))
    assert list(failure_hints(failed, tmp_path / "a b.json")) == [
        "  Why: 1 of 1 call failed, which --fail-on-error makes a failure",
        "  Next: Read the failed calls, the notes and the error in the record.",
        "  All of it: ci-agent report 'a b.json'",
    ]


def test_a_reason_that_the_last_line_tells_is_not_told_again(records: Any) -> None:
    failed = records.transcript([], result=records.result("completed", 1, "stdout was closed"))
    assert [line[:7] for line in failure_hints(failed, None)] == ["  Next:", "  With "]


def test_a_current_folder_that_is_gone_changes_nothing(
    records: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    failed = records.transcript([], result=records.result("limit", 6, "2 turns"))
    assert list(failure_hints(failed, tmp_path / "t.json"))[-1] == f"  All of it: ci-agent report {tmp_path / 't.json'}"
