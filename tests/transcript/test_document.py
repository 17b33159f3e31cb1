"""The document holds every message and every call with its one result; it is valid, sealed, and placed in one step."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from ci_agent.errors import RecordError
from ci_agent.events import AgentEvent
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.transcript.document import (
    amend_result,
    build_document,
    document_chunks,
    document_digest,
    stdout_json,
    write_document,
)
from ci_agent.transcript.journal import read_journal
from ci_agent.transcript.journal_lines import JournalContents
from ci_agent.transcript.plain_json import canonical_json
from ci_agent.transcript.records import transcript_schema
from ci_agent.transcript.verify import verify

RecordRun = Callable[[Path], JsonObject]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.json"


@pytest.fixture
def document(path: Path, record_run: RecordRun) -> JsonObject:
    return record_run(path)


def text_of(call: JsonObject) -> str:
    return "".join(part["text"] for part in call["content"] if part["type"] == "text")


def test_head_of_the_document(document: JsonObject) -> None:
    assert {key: document[key] for key in ("schema", "run", "model", "policy")} == {
        "schema": "ci-agent.transcript/1",
        "run": {
            "id": "run-1",
            "started_at": "2026-01-01T12:00:00.000Z",
            "duration_s": 40.5,
            "version": "0.1.0",
            "workspace": "/srv/site",
            "sandbox": {"kind": "landlock", "requested": "auto", "abi": 7},
            "ci": {
                "provider": "github",
                "repository": "acme/site",
                "run_url": "https://github.example/acme/site/actions/runs/1",
            },
            "checkout": {"root": "/srv", "started_in": "/srv/site"},
        },
        "model": {"provider": "scripted", "model": "demo.yaml", "options": {"temperature": 0.0}},
        "policy": {"name": "review", "sha256": "ab" * 32, "rules": 12, "limits": {"max_turns": 30}},
    }


def test_messages_in_order_with_results_shown_whole(document: JsonObject) -> None:
    roles = [(message["role"], message.get("tool_call_id")) for message in document["messages"]]
    assert roles == [
        ("user", None),
        ("assistant", None),
        ("tool_result", "call_1"),
        ("tool_result", "call_1"),
        ("tool_result", ""),
        ("assistant", None),
        ("tool_result", "call_4"),
        ("tool_result", "call_5"),
        ("tool_result", "call_6"),
        ("assistant", None),
    ]
    assert document["messages"][1]["content"] == [
        {"type": "thinking", "text": "hm", "replay": {"signature": "sig"}},
        {"type": "text", "text": "I look."},
        {"type": "tool_call", "id": "call_1", "name": "read", "arguments": {"path": "logo.png"}},
        {"type": "tool_call", "id": "call_1", "name": "bash", "arguments": {"command": "git push"}},
        {
            "type": "tool_call",
            "id": "",
            "name": "write",
            "arguments": None,
            "arguments_json": '{"path": "a.txt", "cont',
        },
    ]
    assert document["messages"][2] == {
        "role": "tool_result",
        "tool_call_id": "call_1",
        "tool_name": "read",
        "content": [
            {"type": "text", "text": "a picture"},
            {"type": "image", "mime_type": "image/png", "data_base64": "aGVsbG8="},
        ],
        "is_error": False,
        "timestamp": "2026-01-01T12:00:00.000Z",
    }


def test_a_denied_call_carries_its_whole_decision(document: JsonObject) -> None:
    assert document["tool_calls"][1] == {
        "seq": 2,
        "turn": 1,
        "id": "call_1",
        "tool": "bash",
        "arguments": {"command": "git push"},
        "decision": {
            "effect": "deny",
            "code": "default",
            "rule_id": None,
            "source": None,
            "reason": "Blocked by policy: no rule grants `git push`",
            "fact": {"kind": "exec", "value": "git push", "granted_by": None, "forbidden_by": None},
            "facts": [
                {"kind": "exec", "value": "git push", "granted_by": None, "forbidden_by": None},
                {"kind": "exec", "value": "git status", "granted_by": "inspect", "forbidden_by": None},
            ],
            "argument": "command",
            "span": [0, 8],
            "nearest": {"rule_id": "inspect", "source": "policy.yml:7", "stopped_at": "push"},
            "because": None,
            "instead": None,
            "on_denied": "fail",
        },
        "status": "denied",
        "stage": "before_tool_call",
        "is_error": True,
        "content": [{"type": "text", "text": "Blocked by policy: no rule grants `git push`"}],
        "details": {},
        "started_at": "2026-01-01T12:00:08.000Z",
        "duration_s": 4.0,
        "output_bytes": 0,
        "truncated": False,
    }


def test_every_call_has_one_result_that_says_which_road_it_took(document: JsonObject) -> None:
    shown = [
        (call["seq"], call["tool"], call["status"], call["stage"], (call["decision"] or {}).get("effect"))
        for call in document["tool_calls"]
    ]
    assert shown == [
        (1, "read", "ok", None, "allow"),
        (2, "bash", "denied", "before_tool_call", "deny"),
        (3, "write", "error", "arguments", None),
        (4, "serach", "error", "lookup", None),
        (5, "bash", "error", "execute", "allow"),
        (6, "bash", "cancelled", "cancelled", None),
    ]
    failed = document["tool_calls"][4]
    assert failed["details"] == {"output_bytes": 70_000, "truncated": True, "replaced_characters": 1}
    assert (failed["output_bytes"], failed["truncated"], text_of(failed)) == (70_000, True, "exit status 1\ufffd")


def test_tail_of_the_document(document: JsonObject) -> None:
    assert {key: document[key] for key in ("usage", "result", "redactions", "notes")} == {
        "usage": {
            "input_tokens": 30,
            "output_tokens": 6,
            "cache_read_tokens": 9,
            "cache_write_tokens": 12,
            "cost_usd": 0.75,
        },
        "result": {
            "reason": "denied",
            "exit_code": 5,
            "final_text": "All is well.",
            "structured_output": {"answer": 42},
            "tool_calls": {"ok": 1, "error": 3, "denied": 1, "cancelled": 1},
            "error": None,
            "error_retryable": None,
        },
        "redactions": {"count": 0},
        "notes": [{"at": "2026-01-01T12:00:40.000Z", "about": "retry", "text": "the server was overloaded"}],
    }


def test_the_document_is_a_pure_function_of_the_journal(path: Path, document: JsonObject) -> None:
    contents = read_journal(path.with_name("t.json.journal"))
    assert build_document(contents) == document == build_document(contents)
    assert document["integrity"] == {
        "complete": True,
        "records": len(contents.records),
        "journal_sha256": contents.head,
        "dropped_bytes": 0,
        "problems": [],
        "document_sha256": document_digest(document),
    }


def test_the_placed_file_is_the_document_and_satisfies_its_schema(path: Path, document: JsonObject) -> None:
    placed = parse_json(path.read_bytes().decode("utf-8", "strict"))
    assert placed == document
    jsonschema.validate(placed, transcript_schema(), cls=jsonschema.Draft202012Validator)


def test_the_digest_is_of_the_content_however_it_is_laid_out(document: JsonObject) -> None:
    content = {key: value for key, value in document.items() if key != "integrity"}
    assert document_digest(document) == document_digest(content)
    assert document_digest(json.loads(json.dumps(document, indent=4, sort_keys=True))) == document_digest(document)
    assert document_digest(document) == hashlib.sha256(canonical_json(content).encode()).hexdigest()


def test_one_unknown_price_makes_the_cost_unknown(path: Path, events: list[AgentEvent], document: JsonObject) -> None:
    contents = read_journal(path.with_name("t.json.journal"))
    records = json.loads(json.dumps(contents.records))
    next(record for record in records if record.get("message", {}).get("role") == "assistant")["message"]["usage"][
        "cost_usd"
    ] = None
    assert build_document(JournalContents(tuple(records), contents.head))["usage"]["cost_usd"] is None


def test_a_run_of_no_messages_has_no_text_and_no_cost(path: Path, document: JsonObject) -> None:
    start, *_, end = read_journal(path.with_name("t.json.journal")).records
    empty = build_document(JournalContents((start, end), "0" * 64))
    assert (empty["messages"], empty["tool_calls"], empty["result"]["final_text"]) == ([], [], None)
    assert empty["usage"]["cost_usd"] is None


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"content": [{"type": "text", "text": "half an ans"}], "stop_reason": "error"}, None),
        ({"content": [{"type": "text", "text": "half an ans"}], "stop_reason": "aborted"}, None),
        ({"content": [], "stop_reason": "stop"}, "I look."),
        ({"content": [{"type": "text", "text": "done"}], "stop_reason": "length"}, "done"),
    ],
)
def test_the_final_text_is_the_last_that_the_model_finished(
    path: Path, document: JsonObject, last: JsonObject, expected: str | None
) -> None:
    contents = read_journal(path.with_name("t.json.journal"))
    records = json.loads(json.dumps(contents.records))
    answers = [record["message"] for record in records if record.get("message", {}).get("role") == "assistant"]
    answers[-1].update(last)
    assert build_document(JournalContents(tuple(records), ""))["result"]["final_text"] == expected


def test_the_text_has_a_line_for_each_message_and_call(path: Path, document: JsonObject) -> None:
    lines = path.read_text().splitlines()
    assert lines[0] == "{"
    assert lines[-1] == "}"
    assert sum(line.startswith('{"role":') for line in lines) == len(document["messages"])
    assert sum(line.startswith('{"seq":') for line in lines) == len(document["tool_calls"])


def test_nothing_on_stdout_is_a_command_to_the_runner_and_it_reads_back_the_same(
    document: JsonObject, runner_commands: Callable[[str], list[str]]
) -> None:
    hostile = [
        "::error::x",
        "a\n::add-mask::b",
        "##[add-mask]a",
        "###[x]",
        "\\##[x]",
        "x\r::debug::y",
        "\u2028::warning::z",
    ]
    for place in (document["messages"][0]["content"], document["tool_calls"][0]["content"]):
        place += [{"type": "text", "text": text} for text in hostile]
    document["tool_calls"][0]["details"] = dict.fromkeys(hostile, "##[group]")
    assert runner_commands("".join(document_chunks(document))) != []
    printed = stdout_json(document)
    assert runner_commands(printed) == []
    assert json.loads(printed) == document


def test_a_file_of_that_name_is_replaced_whole_and_nothing_else_is_left(path: Path, document: JsonObject) -> None:
    path.write_text("old")
    write_document(path, document)
    assert parse_json(path.read_text()) == document
    assert sorted(os.listdir(path.parent)) == ["t.json", "t.json.journal"]


def test_the_file_has_the_rights_that_the_user_gives_new_files(path: Path, document: JsonObject) -> None:
    mask = os.umask(0o027)
    try:
        write_document(path, document)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_of_that_name_is_replaced_and_what_it_leads_to_stays(path: Path, document: JsonObject) -> None:
    other = path.with_name("other")
    other.write_text("precious")
    path.unlink()
    path.symlink_to(other)
    write_document(path, document)
    assert not path.is_symlink()
    assert other.read_text() == "precious"


def test_a_document_that_cannot_be_placed_is_an_error_and_leaves_the_old_one(path: Path, document: JsonObject) -> None:
    before = path.read_bytes()
    unwritable = document | {"notes": [object()]}
    with pytest.raises(TypeError):
        write_document(path, unwritable)
    gone = path.parent / "gone" / "t.json"
    with pytest.raises(RecordError, match=re.escape(f"the transcript '{gone}' cannot be written: No such file")):
        write_document(gone, document)
    path.with_name("folder").mkdir()
    with pytest.raises(RecordError, match="Is a directory"):
        write_document(path.with_name("folder"), document)
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == ["folder", "t.json", "t.json.journal"]


def test_a_result_that_turns_out_worse_is_amended_and_sealed_anew(document: JsonObject, path: Path) -> None:
    amended = amend_result(document, 1, "nobody took the output")
    assert amended["result"] == {**document["result"], "exit_code": 1, "error": "nobody took the output"}
    assert {key: value for key, value in amended.items() if key not in ("result", "integrity")} == {
        key: value for key, value in document.items() if key not in ("result", "integrity")
    }
    write_document(path, amended)
    assert verify(path) == []
