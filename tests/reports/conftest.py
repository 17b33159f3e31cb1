"""Records of runs, put together for reports, each checked against the schema of transcripts."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.transcript.document import document_digest
from ci_agent.transcript.records import document_problems

WHEN = "2026-01-01T12:00:00.000Z"


def decision(
    effect: str, code: str, reason: str, rule_id: str | None = None, source: str | None = None, **more: Any
) -> JsonObject:
    empty = dict.fromkeys(("fact", "argument", "span", "nearest", "because", "instead"))
    return {
        **empty,
        "effect": effect,
        "code": code,
        "rule_id": rule_id,
        "reason": reason,
        "facts": [],
        "on_denied": "record",
        "source": source,
        **more,
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
            "tool_calls": {},
            "error": None,
            "error_retryable": None,
        },
        "redactions": {"count": 0},
        "notes": [],
        **more,
    }
    document["result"]["tool_calls"] = {"ok": 0, "error": 0, "denied": 0, "cancelled": 0} | Counter(statuses)
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


def result(reason: str, exit_code: int | None, error: str | None = None, retryable: bool | None = None) -> JsonObject:
    return {
        "reason": reason,
        "exit_code": exit_code,
        "final_text": None,
        "structured_output": None,
        "tool_calls": {},
        "error": error,
        "error_retryable": retryable,
    }


def hostile_documents(texts: Iterator[str]) -> Iterator[JsonObject]:
    """Each with its texts in every place that a model, a tool or a policy fills."""
    plain = transcript([])
    for one, two, three in zip(texts, texts, texts, strict=False):
        no = decision("deny", "rule", two, one, three)
        calls = [
            call(1, one, {two: three}, "ok", one),
            call(2, "bash", {"command": one}, "error", f"{two}\n{three}\n{one}\n", details={"exit_status": 1}),
            call(3, two, {"path": three}, "denied", one, decision=no),
            call(4, "bash", None, "unknown", three, arguments_json=one),
        ]
        ending = {"final_text": f"{one}\n{two}\n{three}", "error": two, "exit_code": 1}
        yield plain | {
            "tool_calls": calls,
            "notes": [{"at": WHEN, "about": one, "text": two}],
            "run": plain["run"] | {"id": one, "version": two, "workspace": three},
            "model": plain["model"] | {"provider": two, "model": three},
            "policy": plain["policy"] | {"name": three},
            "result": plain["result"] | ending,
            "integrity": plain["integrity"] | {"problems": [three]},
        }


def odd_documents(count: int, seed: int) -> Iterator[JsonObject]:
    """Records that satisfy the schema in ways that no run has thought of: null where null may be, empty, huge."""
    random = Random(seed)
    sources = (None, "", "p.yml", "p.yml:x", "p.yml:99999999999999", "/srv/site/p.yml:3", ":3")
    for _ in range(count):
        near = random.choice((None, {"rule_id": "n", "source": random.choice(sources) or "", "stopped_at": ""}))
        decided = decision(
            random.choice(("allow", "deny")),
            random.choice(("rule", "default", "hazard", "unparsable", "limit", "arguments", "engine_error")),
            random.choice(("", "Blocked: x", "Blocked by policy rule r: x")),
            random.choice((None, "", "r")),
            random.choice(sources),
            nearest=near,
            on_denied=random.choice(("record", "fail", "stop")),
        )
        odd = call(
            1,
            random.choice(("", "read", "edit", "bash", "a.b")),
            random.choice((None, {}, {"path": 5}, {"path": "", "offset": True}, {"path": "a", "offset": 10**30})),
            random.choice(("ok", "error", "denied", "cancelled", "unknown")),
            random.choice(("", "\n", "\n\n\n")),
            decision=random.choice((None, decided)),
            stage=random.choice((None, "lookup", "before_tool_call", "truncated_turn")),
            duration_s=random.choice((None, 0.0, 1e9)),
            started_at=random.choice((None, WHEN)),
            details=random.choice(({}, {"exit_status": None}, {"timed_out": True})),
        )
        ending = result(
            random.choice(("completed", "unknown", "tampered")),
            random.choice((None, 0, 1, 2, 5, 9, 99, 143, 255, 100_000)),
            random.choice((None, "", " ", "x")),
            random.choice((None, True, False)),
        )
        images = [{"type": "image", "mime_type": "image/png", "data_base64": ""}]
        document = transcript(
            [random.choice((odd, odd | {"content": []}, odd | {"content": images}))],
            result=ending | {"final_text": random.choice((None, "", "\n", "x"))},
        )
        document["run"]["workspace"] = random.choice(("/srv/site", "", ".", "/", "//", "rel"))
        lost: JsonObject = {key: None for key in ("run", "model", "policy") if random.random() < 0.2}
        yield document | lost


class Records:
    """What tests make records with."""

    WHEN = WHEN
    decision = staticmethod(decision)
    call = staticmethod(call)
    transcript = staticmethod(transcript)
    result = staticmethod(result)
    hostile = staticmethod(hostile_documents)
    odd = staticmethod(odd_documents)


@pytest.fixture
def records() -> Records:
    return Records()
