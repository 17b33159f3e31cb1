"""What the record says of calls: which of them failed the run, and which are the same problem."""

from typing import Any

from ci_agent.reports.calls import failing_calls, problems_of, same_problems


def some_calls(records: Any) -> list[Any]:
    soft = records.decision("deny", "default", "Blocked: no")
    hard = records.decision("deny", "rule", "Blocked: no", "stop", "p.yml:1", on_denied="fail")
    return [
        records.call(1, "ls", {}, "ok", ""),
        records.call(2, "bash", {"command": "a"}, "error", "e"),
        records.call(3, "bash", {"command": "b"}, "denied", "", decision=soft),
        records.call(4, "bash", {"command": "c"}, "denied", "", decision=hard),
        records.call(5, "bash", {"command": "b"}, "denied", "", decision=soft),
        records.call(6, "bash", {"command": "d"}, "cancelled", "", stage="cancelled"),
    ]


def test_denials_fail_the_run_when_their_rule_says_so_or_all_of_them_together(records: Any) -> None:
    calls = some_calls(records)
    assert failing_calls(records.transcript(calls, result=records.result("denied", 5))) == {4}
    assert failing_calls(records.transcript(calls[:3] + calls[4:5], result=records.result("denied", 5))) == {3, 5}
    assert failing_calls(records.transcript(calls)) == set()


def test_errors_fail_the_run_unless_something_else_made_it_negative(records: Any) -> None:
    calls = some_calls(records)
    assert failing_calls(records.transcript(calls, result=records.result("completed", 1))) == {2}
    assert failing_calls(records.transcript(calls, result=records.result("completed", 1, "stdout was closed"))) == set()


def test_no_call_fails_a_run_that_ended_otherwise(records: Any) -> None:
    calls = some_calls(records)
    for ending in (("provider_error", 4), ("cancelled", 143), ("unknown", None)):
        assert failing_calls(records.transcript(calls, result=records.result(*ending))) == set()


def test_problems_come_by_urgency_and_equal_ones_together(records: Any) -> None:
    groups = same_problems(problems_of(records.transcript(some_calls(records))))
    assert [[call["seq"] for call in group] for group in groups] == [[3, 5], [4], [2]]


def test_the_same_failure_that_took_another_time_is_the_same_problem(records: Any) -> None:
    ended = [f"{failed} failed in {took}\nexit status 1" for failed, took in ((3, "1.38s"), (3, "2 s"), (4, "1.38s"))]
    calls = [
        records.call(number, "bash", {"command": "pytest"}, "error", text, details={"exit_status": 1})
        for number, text in enumerate(ended, 1)
    ]
    assert [[call["seq"] for call in group] for group in same_problems(calls)] == [[1, 2], [3]]
