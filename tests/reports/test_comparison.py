"""Two runs side by side: what each was and used, and every call that is not the same in both."""

from typing import Any

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.reports.comparison import are_alike, comparison_json, render_comparison
from ci_agent.transcript.compare import compare_calls


@pytest.fixture
def runs(records: Any) -> tuple[JsonObject, JsonObject]:
    """A call that both made alike, one that is denied now, one under another rule, other output, one gone, one new."""
    allowed = records.decision("allow", "rule", "Allowed.", "git", "policy.yml:3")
    other = records.decision("allow", "rule", "Allowed.", "look", "policy.yml:9")
    denied = records.decision("deny", "rule", "not at night", "no-push", "policy.yml:7")
    push, status = {"command": "git push"}, {"command": "git status"}
    before = records.transcript(
        [
            records.call(1, "read", {"path": "a"}, "ok", "text"),
            records.call(2, "bash", push, "ok", "pushed", decision=allowed),
            records.call(3, "ls", {}, "ok", "a\nb"),
            records.call(4, "bash", status, "ok", "clean", decision=allowed),
            records.call(5, "read", {"path": "date"}, "ok", "Monday"),
        ]
    )
    after = records.transcript(
        [
            records.call(1, "read", {"path": "a"}, "ok", "text"),
            records.call(2, "bash", push, "denied", "not at night", decision=denied),
            records.call(3, "bash", status, "ok", "clean", decision=other),
            records.call(4, "read", {"path": "date"}, "ok", "Tuesday"),
            records.call(5, "grep", {"pattern": "x"}, "error", "no such folder"),
        ],
        result=records.result("denied", 5),
    )
    after["run"]["duration_s"] = 10.0
    after["usage"] = after["usage"] | {"output_tokens": 50, "cost_usd": 0.25}
    return before, after


def test_the_whole_comparison(runs: tuple[JsonObject, JsonObject]) -> None:
    assert (
        render_comparison(*runs, compare_calls(*runs))
        == """\
            before                  after
outcome     completed, exit code 0  denied, exit code 5      changed
model       scripted:demo.yaml      scripted:demo.yaml
policy      review 01234567         review 01234567
took        12.3 s                  10.0 s                   -2.3 s
cost        unknown                 0.2500 USD
tokens in   1,200                   1,200
tokens out  30                      50                       +20
turns       1                       1
calls       5 ok                    1 denied, 1 error, 3 ok  changed

6 calls: 1 alike, 3 changed, 1 added, 1 removed
  ~  #2    #2      bash  git push  ok -> denied, by no-push (policy.yml:7): not at night
  -  #3            ls  {}  ok
  ~  #4    #3      bash  git status  git -> look
  ~  #5    #4      read  date  other output
  +        #5      grep  x  error"""
    )


def test_the_same_for_a_program(runs: tuple[JsonObject, JsonObject]) -> None:
    told = comparison_json(*runs, compare_calls(*runs))
    assert {key: [call["seq"] for call in told[key]] for key in ("added", "removed")} == {"added": [5], "removed": [3]}
    assert [(call["before"]["seq"], call["after"]["seq"], call["changes"]) for call in told["changed"]] == [
        (2, 2, ["decision", "output", "status"]),
        (4, 3, ["decision"]),
        (5, 4, ["output"]),
    ]
    assert told["changed"][0]["after"] == {
        "seq": 2,
        "tool": "bash",
        "args": {"command": "git push"},
        "status": "denied",
        "decision": {"effect": "deny", "code": "rule", "rule_id": "no-push", "reason": "not at night"},
    }
    assert told["unchanged"] == 1
    assert told["after"] == {
        "run_id": "run-1",
        "reason": "denied",
        "exit_code": 5,
        "model": {"provider": "scripted", "model": "demo.yaml"},
        "policy": {"name": "review", "sha256": "0123456789abcdef" * 4},
        "duration_s": 10.0,
        "turns": 1,
        "usage": runs[1]["usage"],
    }


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ({}, True),
        ({"content": [{"type": "text", "text": "other"}]}, True),
        ({"decision": {"effect": "allow", "code": "rule", "rule_id": "other"}}, True),
        ({"status": "error"}, False),
        ({"arguments": {"path": "b"}}, False),
        ({"tool": "write"}, False),
    ],
)
def test_runs_are_alike_when_their_calls_ended_alike(records: Any, change: JsonObject, alike: bool) -> None:
    call = records.call(1, "read", {"path": "a"}, "ok", "text")
    before, after = ({"tool_calls": [each]} for each in (call, call | change))
    assert are_alike(compare_calls(before, after)) == alike


def test_records_that_were_cut_off_can_be_compared(records: Any) -> None:
    whole = records.transcript([records.call(1, "bash", None, "error", "no JSON", arguments_json='{"a')])
    cut = records.transcript(
        [records.call(1, "bash", None, "unknown", "", arguments_json='{"a', duration_s=None)],
        run=None,
        model=None,
        policy=None,
        messages=[],
        result=records.result("unknown", None),
    )
    told = render_comparison(whole, cut, compare_calls(whole, cut))
    assert "outcome     completed, exit code 0  unknown, no exit code  changed" in told
    assert "took        12.3 s                  unknown" in told
    assert "error -> unknown" in told


def test_hostile_text_stays_in_its_line(records: Any) -> None:
    bad = "\n::error::x ##[error]y \x1b[31m\u202e"
    call = records.call(1, bad, {"path": bad}, "ok", bad)
    document = records.transcript([call], policy={"name": bad, "sha256": "0" * 64, "rules": 1, "limits": {}})
    told = render_comparison(document, records.transcript([]), compare_calls(document, records.transcript([])))
    assert len(told.splitlines()) == 13
    assert "##[" not in told
    assert "\x1b" not in told
    assert "\u202e" not in told
