"""The text report: what went wrong first, one line a call, what to do next; hostile text does nothing."""

import re
import shlex
from typing import Any

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.reports.text import render_text
from ci_agent.transcript.document import document_digest
from ci_agent.transcript.records import document_problems

WHEN = "2026-01-01T12:00:00.000Z"


def decision(effect: str, code: str, reason: str, rule_id: str | None = None) -> JsonObject:
    empty = dict.fromkeys(("source", "fact", "argument", "span", "nearest", "because", "instead"))
    return {
        **empty,
        "effect": effect,
        "code": code,
        "rule_id": rule_id,
        "reason": reason,
        "facts": [],
        "on_denied": "record",
    }


def call(seq: int, tool: str, arguments: JsonObject | None, status: str, text: str, **more: Any) -> JsonObject:
    return {
        "seq": seq,
        "turn": (seq + 1) // 2,
        "id": f"call_{seq}",
        "tool": tool,
        "arguments": arguments,
        "decision": None,
        "status": status,
        "stage": None if status in ("ok", "unknown") else "execute",
        "is_error": status != "ok",
        "content": [{"type": "text", "text": text}],
        "details": {},
        "started_at": WHEN,
        "duration_s": 0.25,
        "output_bytes": len(text),
        "truncated": False,
        **more,
    }


def transcript(calls: list[JsonObject], **more: Any) -> JsonObject:
    parts = [{"type": "tool_call", "id": c["id"], "name": c["tool"], "arguments": c["arguments"]} for c in calls]
    usage = {
        "input_tokens": 1200,
        "output_tokens": 30,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost_usd": None,
    }
    assistant = {
        "role": "assistant",
        "content": parts,
        "stop_reason": "tool_use",
        "provider": "scripted",
        "model": "demo.yaml",
        "api": "scripted",
        "response_id": None,
        "usage": usage,
        "error_message": None,
        "error_retryable": None,
        "timestamp": WHEN,
    }
    statuses = [c["status"] for c in calls]
    document: JsonObject = {
        "schema": "ci-agent.transcript/1",
        "run": {
            "id": "run-1",
            "started_at": WHEN,
            "duration_s": 12.34,
            "version": "0.1.0",
            "workspace": "/srv/site",
            "sandbox": {"kind": "landlock", "requested": "auto", "abi": 7},
            "ci": None,
        },
        "model": {"provider": "scripted", "model": "demo.yaml", "options": {}},
        "policy": {"name": "review", "sha256": "0123456789abcdef" * 4, "rules": 12, "limits": {}},
        "messages": [assistant],
        "tool_calls": calls,
        "usage": usage,
        "result": {
            "reason": "completed",
            "exit_code": 0,
            "final_text": "All is well.\nReally.",
            "structured_output": None,
            "tool_calls": {status: statuses.count(status) for status in ("ok", "error", "denied", "cancelled")},
            "error": None,
            "error_retryable": None,
        },
        "redactions": {"count": 0},
        "notes": [],
        **more,
    }
    document["integrity"] = {
        "complete": document["result"]["reason"] != "unknown",
        "records": 9,
        "journal_sha256": "0" * 64,
        "dropped_bytes": 0,
        "problems": [],
        "document_sha256": document_digest(document),
    }
    assert document_problems(document) == []
    return document


def result(
    reason: str, exit_code: int | None, error: str | None = None, *, retryable: bool | None = None
) -> JsonObject:
    counts = {"ok": 0, "error": 0, "denied": 0, "cancelled": 0}
    return {
        "reason": reason,
        "exit_code": exit_code,
        "final_text": None,
        "structured_output": None,
        "tool_calls": counts,
        "error": error,
        "error_retryable": retryable,
    }


def test_the_whole_report_of_a_run() -> None:
    no = "Blocked by policy: no rule grants `git push`"
    calls = [
        call(1, "read", {"path": "README.md"}, "ok", "x" * 70_000, truncated=True, output_bytes=1_234_567),
        call(2, "bash", {"command": "git push"}, "denied", no, decision=decision("deny", "default", no)),
        call(3, "serach", {}, "error", "Tool serach not found\nAvailable: grep", stage="lookup"),
        call(4, "write", None, "error", "arguments: not JSON", stage="arguments", arguments_json='{"path": "a'),
        call(5, "grep", {"pattern": "TODO", "limit": 5}, "ok", "", duration_s=None),
        call(6, "bash", {"command": "sleep 9"}, "cancelled", "Cancelled: time-out", stage="cancelled"),
        call(
            7, "edit", {"path": ".env"}, "denied", "", decision=decision("deny", "rule", "secrets stay", "no-secrets")
        ),
    ]
    assert render_text(transcript(calls)) == (
        """\
Run run-1, begun 2026-01-01T12:00:00.000Z, took 12.3 s, ci-agent 0.1.0
  model      scripted:demo.yaml
  policy     review (12 rules, sha256 0123456789ab)
  workspace  /srv/site
  sandbox    landlock

Tool calls  2 denied, 2 error, 1 cancelled, 2 ok
  denied     #2    turn 1   bash    git push     (default): Blocked by policy: no rule grants `git push`
  denied     #7    turn 4   edit    .env         by no-secrets: secrets stay
  error      #3    turn 2   serach  {}           lookup: Tool serach not found
  error      #4    turn 2   write   {"path": "a  arguments: arguments: not JSON
  cancelled  #6    turn 3   bash    sleep 9      cancelled: Cancelled: time-out
  ok         #1    turn 1   read    README.md    1,234,567 bytes, cut, 0.2 s
  ok         #5    turn 3   grep    TODO         0 bytes

Answer
  | All is well.
  | Really.

Usage    1,200 tokens in, 30 out; cost unknown
Outcome  completed, exit code 0
  Why the first denial: ci-agent policy explain --policy review --tool bash --args '{"command": "git push"}'"""
    )


def test_a_run_without_calls_and_answer() -> None:
    report = render_text(transcript([], result=result("completed", 0)))
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
            result("provider_error", 4, "overloaded", retryable=True),
            [
                "Outcome  provider_error, exit code 4: the model could not be reached or refused, after retries",
                "  Error: overloaded",
                "  Next: Read the error in the record: it says whether trying again can help.",
                "  Running again later can help.",
            ],
        ),
        (
            result("cancelled", 143, "SIGTERM"),
            [
                "Outcome  cancelled, exit code 143: 128 + the number of the signal that cancelled the run",
                "  Error: SIGTERM",
                "  Next: Run again when it suits.",
            ],
        ),
        (
            result("unknown", None, "the run did not come to its end"),
            [
                "Outcome  unknown, no exit code",
                "  Error: the run did not come to its end",
                "  This was recovered from the run's journal; calls after the last may be missing.",
            ],
        ),
    ],
    ids=lambda part: part["reason"] if isinstance(part, dict) else "",
)
def test_the_outcome_says_what_to_do_next(ending: JsonObject, lines: list[str]) -> None:
    assert outcome_of(transcript([], result=ending)) == lines


def test_a_lost_beginning_a_damaged_journal_and_notes_are_said() -> None:
    note = {"at": WHEN, "about": "retry", "text": "overloaded"}
    document = transcript([], run=None, model=None, policy=None, notes=[note])
    document["integrity"]["problems"] = ["line 3: is no record"]
    report = render_text(document)
    assert report.startswith("Run of which the beginning is lost\n\n")
    assert f"Notes\n  {WHEN}  retry  overloaded" in report
    assert report.endswith("  The journal was damaged: line 3: is no record")


def test_cost_and_cache_are_shown_when_known() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3000,
        "cache_write_tokens": 4,
        "cost_usd": 0.0125,
    }
    assert "1 tokens in, 2 out, cache 3,000 read, 4 written; 0.0125 USD" in render_text(transcript([], usage=usage))


def test_colours_only_when_asked_for() -> None:
    document = transcript([call(1, "read", {}, "ok", "")])
    assert "\x1b" not in render_text(document)
    colored = render_text(document, color=True)
    assert "\x1b[32mok       \x1b[0m" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == render_text(document)


HOSTILE = "::error::x\n::add-mask::e\r##[group]y \x1b[2J\x9b31m\u202e\u2028::debug::z"


def test_hostile_text_neither_controls_the_terminal_nor_commands_the_runner() -> None:
    calls = [
        call(1, HOSTILE, {HOSTILE: HOSTILE}, "ok", HOSTILE),
        call(2, "bash", {"command": HOSTILE}, "error", HOSTILE),
        call(3, "bash", {"command": HOSTILE}, "denied", "", decision=decision("deny", "rule", HOSTILE, HOSTILE)),
        call(4, "bash", None, "unknown", HOSTILE, arguments_json=HOSTILE),
    ]
    document = transcript(calls, notes=[{"at": WHEN, "about": HOSTILE, "text": HOSTILE}])
    document["run"] |= {"id": HOSTILE, "version": HOSTILE, "workspace": HOSTILE}
    document["model"] |= {"provider": HOSTILE, "model": HOSTILE}
    document["policy"]["name"] = HOSTILE
    document["result"] |= {"final_text": HOSTILE, "error": HOSTILE}
    document["integrity"]["problems"] = [HOSTILE]
    report = render_text(document)
    assert "##[" not in report
    assert all(char.isprintable() or char == "\n" for char in report)
    assert [line for line in report.split("\n") if line.lstrip().startswith("::")] == []


def test_the_command_that_explains_is_left_out_when_it_could_not_be_copied() -> None:
    for arguments in ({"command": "x" * 400}, {"command": "a\u202eb"}):
        denied = call(1, "bash", arguments, "denied", "", decision=decision("deny", "default", "no"))
        assert "policy explain" not in render_text(transcript([denied]))


def test_arguments_that_would_break_out_of_quotes_stay_inside() -> None:
    denied = call(1, "bash", {"command": "a'; rm -rf /; '"}, "denied", "", decision=decision("deny", "default", "no"))
    command = render_text(transcript([denied])).rpartition("Why the first denial: ")[2]
    assert shlex.split(command)[-1] == '{"command": "a\'; rm -rf /; \'"}'


def test_a_huge_record_renders_in_bounded_lines() -> None:
    calls = [call(n, "t" * 500, {"path": "p" * 100_000}, "error", "e" * 100_000) for n in range(1, 200)]
    lines = render_text(transcript(calls)).split("\n")
    assert max(map(len, lines)) < 400
