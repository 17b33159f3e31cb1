"""JUnit's XML as Jenkins and GitLab read it: well-formed, in the common shape, counts that add up."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.reports.junit import render_junit

Hostile = Callable[[int, int], Iterator[str]]

SHAPE: dict[str, tuple[set[str], set[str], str]] = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, set(), "(testsuite )*"),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time"},
        {"timestamp"},
        "(testcase )*(system-out )?",
    ),
    "testcase": ({"classname", "name", "time"}, set(), "((failure|error|skipped|system-out) )?"),
    "failure": ({"message", "type"}, set(), ""),
    "error": ({"message", "type"}, set(), ""),
    "skipped": ({"message"}, set(), ""),
    "system-out": (set(), set(), ""),
}
"""Each element with the attributes that it must and may have, and its children in their order: the part of Jenkins'
schema (junit-10.xsd) that is used here."""


def parsed(document: JsonObject) -> ET.Element:
    """The report, whose shape and counts are checked."""
    root = ET.fromstring(render_junit(document).encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        must, may, children = SHAPE[element.tag]
        assert must <= set(element.keys()) <= must | may, element.tag
        assert re.fullmatch(children, "".join(f"{child.tag} " for child in element)), element.tag
    (suite,) = root
    cases = suite.findall("testcase")
    counts = {name: len(suite.findall(f"testcase/{name}")) for name in ("failure", "error", "skipped")}
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        str(len(cases)),
        *(str(counts[name]) for name in ("failure", "error", "skipped")),
    )
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        name: suite.get(name) for name in ("tests", "failures", "errors")
    }
    return suite


def told(case: ET.Element) -> tuple[str | None, ...]:
    """A case in its parts: class, name, outcome, type and message."""
    outcome = case[0] if len(case) else None
    if outcome is None:
        return case.get("classname"), case.get("name"), "passed"
    return case.get("classname"), case.get("name"), outcome.tag, outcome.get("type"), outcome.get("message")


def test_a_case_for_each_call_and_the_answer_beside_them(records: Any) -> None:
    no = records.decision("deny", "rule", "Blocked by policy rule no-env: it is <secret>", "no-env", "p.yml:7")
    calls = [
        records.call(1, "read", {"path": ".env"}, "denied", "", decision=no),
        records.call(2, "bash", {"command": "make"}, "error", "cc\nexit status 2", details={"exit_status": 2}),
        records.call(3, "bash", {"command": "make"}, "ok", ""),
        records.call(4, "a.b", {}, "cancelled", "Cancelled", stage="cancelled"),
        records.call(5, "bash", {"command": "x"}, "unknown", "Nobody knows"),
    ]
    suite = parsed(records.transcript(calls, result=records.result("denied", 5) | {"final_text": "Done & dusted."}))
    assert list(map(told, suite.findall("testcase"))) == [
        ("ci-agent.read", "read .env", "failure", "by no-env (p.yml:7)", "it is <secret>"),
        ("ci-agent.bash", "bash make", "error", "execute", "exit status 2: cc"),
        ("ci-agent.bash", "bash make (2)", "passed"),
        ("ci-agent.a_b", "a.b {}", "skipped", None, "Cancelled"),
        ("ci-agent.bash", "bash x", "error", "interrupted", "Nobody knows"),
    ]
    assert suite.findtext("testcase[2]/error") == "call 2, turn 1: execute: exit status 2: cc\ncc\nexit status 2"
    assert (suite.findtext("system-out") or "").endswith("cost unknown\n\nDone & dusted.")


def test_a_run_without_calls_has_one_case(records: Any) -> None:
    cases = parsed(records.transcript([])).findall("testcase")
    assert list(map(told, cases)) == [("ci-agent", "the run comes to its end", "passed")]


def test_a_failure_that_no_call_shows_is_a_case_of_its_own(records: Any) -> None:
    calls = [records.call(1, "ls", {}, "ok", "")]
    suite = parsed(records.transcript(calls, result=records.result("provider_error", 4, "overloaded", True)))
    assert [told(case)[:3] for case in suite.findall("testcase")] == [
        ("ci-agent", "the run comes to its end", "error"),
        ("ci-agent.ls", "ls {}", "passed"),
    ]
    assert suite.findtext("testcase/error") == "overloaded\nRunning again later can help."


def test_a_killed_run_whose_beginning_is_lost_is_an_error(records: Any) -> None:
    ending = records.result("unknown", None, "the run did not come to its end")
    suite = parsed(records.transcript([], run=None, model=None, policy=None, result=ending))
    assert [told(case)[2] for case in suite.findall("testcase")] == ["error"]


def test_attack_hostile_text_leaves_the_document_well_formed(records: Any, hostile_texts: Hostile) -> None:
    for document in records.hostile(hostile_texts(900, 2)):
        suite = parsed(document)
        assert len(suite.findall("testcase")) == 5
        assert not re.search("[^\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", render_junit(document))


def test_no_case_of_a_run_that_ended_well_is_red_and_what_was_denied_or_failed_is_told(records: Any) -> None:
    no = records.decision("deny", "rule", "Blocked by policy rule no-env: it is secret", "no-env", "p.yml:7")
    calls = [
        records.call(1, "bash", {"command": "ruff check"}, "error", "E501\nexit status 1", details={"exit_status": 1}),
        records.call(2, "bash", {"command": "slow"}, "error", "timed out", details={"timed_out": True}),
        records.call(3, "read", {"path": "gone"}, "error", "there is no such file"),
        records.call(4, "read", {"path": ".env"}, "denied", "", decision=no),
    ]
    good = parsed(records.transcript(calls, result=records.result("completed", 0)))
    assert [told(case)[1:] for case in good.findall("testcase")] == [
        ("bash ruff check", "system-out", None, None),
        ("bash slow", "system-out", None, None),
        ("read gone", "system-out", None, None),
        ("read .env", "skipped", None, "denied by no-env (p.yml:7): it is secret"),
    ]
    assert good.findtext("testcase/system-out") == "call 1, turn 1: execute: exit status 1: E501\nE501\nexit status 1"
    bad = parsed(records.transcript(calls, result=records.result("completed", 1)))
    assert [told(case)[2] for case in bad.findall("testcase")] == ["error", "error", "error", "failure"]


@pytest.mark.parametrize(("exit_code", "element"), [(0, "skipped"), (1, "error"), (None, "error")])
def test_a_call_without_a_known_end_is_red_unless_the_run_ended_well(
    records: Any, exit_code: int | None, element: str
) -> None:
    calls = [records.call(1, "bash", {"command": "x"}, "unknown", "Nobody knows")]
    suite = parsed(records.transcript(calls, result=records.result("completed", exit_code)))
    case = suite.findall("testcase")[-1]
    assert [(case.get("name"), told(case)[2])] == [("bash x", element)]
    assert all(found.get("message") for found in case)


def test_what_makes_the_record_doubtful_stands_beside_the_cases(records: Any) -> None:
    document = records.transcript([], result=records.result("completed", 0))
    document["result"]["exit_code"] = 1
    beside = parsed(document).findtext("system-out") or ""
    assert "\nIt was changed after it was written: what it says need not be what happened.\n" in beside
