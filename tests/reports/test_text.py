"""The text report: what went wrong first, one line a call, what to do next; hostile text does nothing."""

import re
import shlex
from typing import Any

import pytest

from ci_agent.exit_codes import EXIT_CODES
from ci_agent.json_types import JsonObject
from ci_agent.reports.text import render_text


def test_the_answer_ends_with_its_last_line(records: Any) -> None:
    document = records.transcript([], result=records.result("completed", 0) | {"final_text": "Done.\n\n"})
    assert "Answer\n  | Done.\n\nUsage" in render_text(document)


def test_the_whole_report_of_a_run(records: Any) -> None:
    no = "Blocked: no rule grants `git push`"
    calls = [
        records.call(1, "read", {"path": "README.md"}, "ok", "x" * 70_000, truncated=True, output_bytes=1_234_567),
        records.call(
            2, "bash", {"command": "git push"}, "denied", no, decision=records.decision("deny", "default", no)
        ),
        records.call(3, "serach", {}, "error", "Tool serach not found\nAvailable: grep", stage="lookup"),
        records.call(4, "write", None, "error", "arguments: not JSON", stage="arguments", arguments_json='{"path": "a'),
        records.call(5, "grep", {"pattern": "TODO", "limit": 5}, "ok", "", duration_s=None),
        records.call(6, "bash", {"command": "sleep 9"}, "cancelled", "Cancelled: time-out", stage="cancelled"),
        records.call(
            7,
            "edit",
            {"path": ".env"},
            "denied",
            "",
            decision=records.decision("deny", "rule", "secrets stay", "no-secrets", "policy.yml:7"),
        ),
    ]
    assert render_text(records.transcript(calls)) == (
        """\
Run run-1, begun 2026-01-01T12:00:00.000Z, took 12.3 s, ci-agent 0.1.0
  model      scripted:demo.yaml
  policy     review (12 rules, sha256 0123456789ab)
  workspace  /srv/site
  sandbox    landlock

Tool calls  2 denied, 2 error, 1 cancelled, 2 ok
  denied     #2  turn 1  bash    git push     (default): no rule grants `git push`
  denied     #7  turn 4  edit    .env         by no-secrets (policy.yml:7): secrets stay
  error      #3  turn 2  serach  {}           lookup: Tool serach not found
  error      #4  turn 2  write   {"path": "a  arguments: arguments: not JSON
  cancelled  #6  turn 3  bash    sleep 9      cancelled: Cancelled: time-out
  ok         #1  turn 1  read    README.md    1,234,567 bytes, cut, 0.2 s
  ok         #5  turn 3  grep    TODO         0 bytes

Answer
  | All is well.
  | Really.

Usage    1,200 tokens in, 30 out; cost unknown
Outcome  completed, exit code 0
  Why the first denial: ci-agent policy explain --policy review --tool bash --args '{"command": "git push"}'"""
    )


def test_in_a_terminal_long_reasons_are_wrapped_and_nothing_is_wider(records: Any) -> None:
    why = "Blocked: no policy rule allows running `git push`. " + "The nearest does not fit. " * 4
    calls = [
        records.call(
            1, "bash", {"command": "git push"}, "denied", "", decision=records.decision("deny", "default", why)
        ),
        records.call(2, "read", {"path": "deep/" * 30}, "ok", "x"),
        records.call(3, "read", {"path": "a"}, "error", "a is a folder"),
    ]
    shown = render_text(records.transcript(calls), columns=72).split("\n\n")[1]
    assert (
        shown
        == """\
Tool calls  1 denied, 1 error, 1 ok
  denied     #1  bash  git push
             | (default): no policy rule allows running `git push`. The
             | nearest does not fit. The nearest does not fit. The
             | nearest does not fit. The nearest does not fit.
  error      #3  read  a
             | execute: a is a folder
  ok         #2  read  deep/deep/deep/deep/deep/deep/de…  1 bytes, 0.2 s"""
    )


def test_what_went_wrong_in_a_long_run_is_named_again_at_its_end(records: Any) -> None:
    no = records.decision("deny", "rule", "Blocked by policy rule no-env: it is secret", "no-env", "policy.yml:9")
    calls = [records.call(n, "read", {"path": ".env"}, "denied", "", decision=no) for n in range(1, 31)]
    calls += [records.call(n, "bash", {"command": f"x{n}"}, "error", "failed") for n in range(31, 35)]
    calls += [records.call(n, "ls", {}, "ok", "") for n in range(35, 300)]
    assert outcome_of(records.transcript(calls))[1:5] == [
        "  denied 30x, first #1: read .env: by no-env (policy.yml:9): it is secret",
        "  error 1x, first #31: bash x31: execute: failed",
        "  error 1x, first #32: bash x32: execute: failed",
        "  and 2 other problems, at the head of the list of calls",
    ]


def test_a_run_without_calls_and_answer(records: Any) -> None:
    report = render_text(records.transcript([], result=records.result("completed", 0)))
    assert report.split("\n\n")[1:] == [
        "No tool calls",
        "No answer",
        "Usage    1,200 tokens in, 30 out; cost unknown\nOutcome  completed, exit code 0",
    ]


def outcome_of(document: JsonObject) -> list[str]:
    return render_text(document).split("\n\n")[-1].splitlines()[1:]


@pytest.mark.parametrize(
    ("ending", "lines"),
    [
        (
            ("provider_error", 4, "overloaded", True),
            [
                f"Outcome  provider_error, exit code 4: {EXIT_CODES['provider'].meaning}",
                "  Why: overloaded",
                "  Next: Running again later can help.",
            ],
        ),
        (
            ("cancelled", 143, "SIGTERM", None),
            [
                "Outcome  cancelled, exit code 143: 128 + the number of the signal that cancelled the run",
                "  Why: SIGTERM",
                "  Next: Run again when it suits.",
            ],
        ),
        (
            ("unknown", None, "the run did not come to its end", None),
            [
                "Outcome  unknown, no exit code: the run was killed, or its record was cut off",
                "  Why: the run did not come to its end",
                "  This was made of the run's journal; calls after the last may be missing.",
            ],
        ),
    ],
    ids=["provider_error", "cancelled", "unknown"],
)
def test_the_outcome_says_what_to_do_next(ending: tuple[Any, ...], lines: list[str], records: Any) -> None:
    assert outcome_of(records.transcript([], result=records.result(*ending))) == lines


def test_a_lost_beginning_a_damaged_journal_and_notes_are_said(records: Any) -> None:
    note = {"at": records.WHEN, "about": "retry", "text": "overloaded"}
    document = records.transcript([], run=None, model=None, policy=None, notes=[note])
    document["integrity"]["problems"] = ["line 3: is no record"]
    report = render_text(document)
    assert report.startswith("Run of which the beginning is lost\n\n")
    assert f"Notes\n  {records.WHEN}  retry  overloaded" in report
    assert report.endswith("  The journal was damaged: line 3: is no record")


def test_cost_and_cache_are_shown_when_known(records: Any) -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3000,
        "cache_write_tokens": 4,
        "cost_usd": 0.0125,
    }
    assert "1 tokens in, 2 out, cache 3,000 read, 4 written; 0.0125 USD" in render_text(
        records.transcript([], usage=usage)
    )


def test_colours_only_when_asked_for(records: Any) -> None:
    document = records.transcript([records.call(1, "read", {}, "ok", "")])
    assert "\x1b" not in render_text(document)
    colored = render_text(document, color=True)
    assert "\x1b[32mok       \x1b[0m" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == render_text(document)


HOSTILE = "::error::x\n::add-mask::e\r##[group]y \x1b[2J\x9b31m\u202e\u2028::debug::z"


def test_hostile_text_neither_controls_the_terminal_nor_commands_the_runner(records: Any) -> None:
    calls = [
        records.call(1, HOSTILE, {HOSTILE: HOSTILE}, "ok", HOSTILE),
        records.call(2, "bash", {"command": HOSTILE}, "error", HOSTILE),
        records.call(
            3, "bash", {"command": HOSTILE}, "denied", "", decision=records.decision("deny", "rule", HOSTILE, HOSTILE)
        ),
        records.call(4, "bash", None, "unknown", HOSTILE, arguments_json=HOSTILE),
    ]
    document = records.transcript(calls, notes=[{"at": records.WHEN, "about": HOSTILE, "text": HOSTILE}])
    document["run"] |= {"id": HOSTILE, "version": HOSTILE, "workspace": HOSTILE}
    document["model"] |= {"provider": HOSTILE, "model": HOSTILE}
    document["policy"]["name"] = HOSTILE
    document["result"] |= {"final_text": HOSTILE, "error": HOSTILE}
    document["integrity"]["problems"] = [HOSTILE]
    report = render_text(document)
    assert "##[" not in report
    assert all(char.isprintable() or char == "\n" for char in report)
    assert [line for line in report.split("\n") if line.lstrip().startswith("::")] == []


def test_the_command_that_explains_is_left_out_when_it_could_not_be_copied(records: Any) -> None:
    for arguments in ({"command": "x" * 400}, {"command": "a\u202eb"}):
        denied = records.call(1, "bash", arguments, "denied", "", decision=records.decision("deny", "default", "no"))
        assert "policy explain" not in render_text(records.transcript([denied]))


def test_arguments_that_would_break_out_of_quotes_stay_inside(records: Any) -> None:
    denied = records.call(
        1, "bash", {"command": "a'; rm -rf /; '"}, "denied", "", decision=records.decision("deny", "default", "no")
    )
    command = render_text(records.transcript([denied])).rpartition("Why the first denial: ")[2]
    assert shlex.split(command)[-1] == '{"command": "a\'; rm -rf /; \'"}'


def test_a_huge_record_renders_in_bounded_lines(records: Any) -> None:
    calls = [records.call(n, "t" * 500, {"path": "p" * 100_000}, "error", "e" * 100_000) for n in range(1, 200)]
    lines = render_text(records.transcript(calls)).split("\n")
    assert max(map(len, lines)) < 400


def test_in_a_terminal_a_problem_that_was_told_refers_to_its_first_call(records: Any) -> None:
    no = records.decision("deny", "default", "Blocked: no policy rule allows calling edit")
    calls = [records.call(n, "edit", {"path": f"{n}.txt"}, "denied", "", decision=no) for n in range(1, 4)]
    assert render_text(records.transcript(calls), columns=110).split("\n\n")[1].splitlines()[1:] == [
        "  denied     #1  turn 1  edit  1.txt  (default): no policy rule allows calling edit",
        "  denied     #2  turn 1  edit  2.txt  as #1",
        "  denied     #3  turn 2  edit  3.txt  as #1",
    ]
    assert "as #1" not in render_text(records.transcript(calls))


def test_an_answer_that_was_cut_off_says_so(records: Any) -> None:
    document = records.transcript([])
    document["messages"][0]["stop_reason"] = "length"
    assert "Answer, cut off at its maximum length\n  | All is well." in render_text(document)


def test_a_document_that_was_changed_says_so_and_its_exit_code_is_not_explained(records: Any) -> None:
    calls = [records.call(1, "read", {"path": "a"}, "error", "no")]
    true = records.transcript(calls, result=records.result("completed", 1))
    assert "which --fail-on-error makes a failure" in render_text(true)
    changed = records.transcript(calls, result=records.result("completed", 0))
    changed["result"]["exit_code"] = 1
    report = render_text(changed)
    assert "  It was changed after it was written: what it says need not be what happened.\n" in report
    assert "--fail-on-error" not in report.replace("`--fail-on-error`", "")
