"""GitLab's code quality: the keys that it wants, fingerprints that last, bounds that hold."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import log_parsers

from ci_agent.json_types import JsonObject
from ci_agent.reports.codequality import MAX_FINDINGS, render_codequality

Hostile = Callable[[int, int], Iterator[str]]


def checked(document: JsonObject) -> list[Any]:
    """The findings; what GitLab demands of each is asserted."""
    findings: list[Any] = json.loads(render_codequality(document))
    for finding in findings:
        assert list(finding) == ["description", "check_name", "fingerprint", "severity", "location"]
        assert finding["description"].isprintable()
        assert finding["check_name"]
        assert re.fullmatch("[0-9a-f]{64}", finding["fingerprint"])
        assert finding["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert finding["location"]["path"]
        assert not finding["location"]["path"].startswith(("/", "./", ".."))
        assert finding["location"]["lines"]["begin"] >= 1
    assert len({finding["fingerprint"] for finding in findings}) == len(findings)
    return findings


def test_denials_and_errors_are_findings_at_the_place_to_look_at(records: Any) -> None:
    no_env = records.decision(
        "deny", "rule", "Blocked by policy rule no-env: secret", "no-env", "ci/p.yml:7", because="secret"
    )
    calls = [
        records.call(1, "read", {"path": ".env"}, "denied", "", decision=no_env),
        records.call(2, "read", {"path": "src/a b.py", "offset": 9}, "error", "too short"),
        records.call(3, "read", {"path": ".env"}, "denied", "", decision=no_env),
        records.call(4, "bash", {"command": "x"}, "error", "gone"),
        records.call(5, "ls", {}, "ok", ""),
    ]
    findings = checked(records.transcript(calls, result=records.result("denied", 5)))
    assert [
        (each["description"], each["check_name"], each["severity"], each["location"]["path"], each["location"]["lines"])
        for each in findings
    ] == [
        ("read .env: secret (2 times)", "policy/no-env", "major", "ci/p.yml", {"begin": 7}),
        ("read src/a b.py: too short", "error/execute", "minor", "src/a b.py", {"begin": 9}),
        ("bash x: gone", "error/execute", "minor", ".", {"begin": 1}),
    ]


def test_a_run_that_went_well_has_none_and_one_that_failed_by_itself_has_one(records: Any) -> None:
    assert render_codequality(records.transcript([])) == "[]\n"
    (finding,) = checked(records.transcript([], result=records.result("limit", 6, "max_turns: 3")))
    assert (finding["check_name"], finding["severity"]) == ("run/limit", "major")
    assert "exit code 6" in finding["description"]
    killed = records.transcript([], run=None, model=None, policy=None, result=records.result("unknown", None, "killed"))
    assert [each["check_name"] for each in checked(killed)] == ["run/unknown"]


def test_fingerprints_are_the_same_in_another_run(records: Any) -> None:
    def prints(*commands: str) -> list[str]:
        calls = [records.call(n, "bash", {"command": text}, "error", text) for n, text in enumerate(commands, 1)]
        return [each["fingerprint"] for each in checked(records.transcript(calls))]

    assert set(prints("make", "true")) < set(prints("true", "ls", "make"))


def test_many_findings_are_bounded(records: Any) -> None:
    calls = [records.call(n, "bash", {"command": f"{n}"}, "error", "x" * 9_000) for n in range(1, MAX_FINDINGS + 100)]
    document = records.transcript([]) | {"tool_calls": calls}
    assert len(checked(document)) == MAX_FINDINGS
    assert len(render_codequality(document)) < 4_000_000


def test_attack_hostile_text_is_a_plain_description(records: Any, hostile_texts: Hostile) -> None:
    for document in records.hostile(hostile_texts(900, 3)):
        assert len(checked(document)) in {3, 4}
        assert render_codequality(document).isascii()


def test_attack_no_report_in_a_log_commands_another_service(records: Any) -> None:
    lines = iter(log_parsers.HOSTILE * 3)
    for document in records.hostile(lines):
        report = render_codequality(document)
        assert [found for parse in log_parsers.PARSERS.values() for found in parse(report)] == []
