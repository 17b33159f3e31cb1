"""SARIF 2.1.0: what the standard and GitHub ask for, fingerprints that last, bounds that hold."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from ci_agent.json_types import JsonObject
from ci_agent.reports.sarif import MAX_RESULTS, render_sarif

Hostile = Callable[[int, int], Iterator[str]]

URI = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=@%/-]+")


def checked(document: JsonObject) -> Any:
    """The only run of the report; what the standard and GitHub demand of it is asserted."""
    report = json.loads(render_sarif(document))
    assert list(report) == ["$schema", "version", "runs"]
    assert report["version"] == "2.1.0"
    (run,) = report["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note", "none")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note", "none")
        assert result["occurrenceCount"] >= 1
        check_message(result["message"]["text"])
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
        assert URI.fullmatch(physical["artifactLocation"]["uri"])
        assert not physical["artifactLocation"]["uri"].startswith(("/", ".."))
        assert physical["region"]["startLine"] >= 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    prints = [result["partialFingerprints"]["ciAgentCall/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    for base in run.get("originalUriBaseIds", {}).values():
        assert base["uri"].startswith("file:///")
        assert base["uri"].endswith("/")
    for notification in run["invocations"][0]["toolExecutionNotifications"]:
        check_message(notification["message"]["text"])
    return run


def check_message(text: str) -> None:
    assert text
    assert not re.search("[{}]", text.replace("{{", "").replace("}}", ""))
    assert not re.search(r"(?<!\\)\]\(", text)


def test_denials_and_errors_are_results_at_the_place_to_look_at(records: Any) -> None:
    no_env = records.decision(
        "deny", "rule", "Blocked by policy rule no-env: secret", "no-env", "ci/p.yml:7", because="secret"
    )
    default = records.decision("deny", "default", "Blocked: no policy rule allows running `x`")
    calls = [
        records.call(1, "read", {"path": ".env"}, "denied", "", decision=no_env),
        records.call(2, "bash", {"command": "x"}, "denied", "", decision=default),
        records.call(3, "read", {"path": "src/a b.py", "offset": 9}, "error", "too short"),
        records.call(4, "read", {"path": ".env"}, "denied", "", decision=no_env),
        records.call(5, "ls", {}, "ok", ""),
        records.call(6, "bash", {"command": "y"}, "cancelled", "Cancelled", stage="cancelled"),
    ]
    run = checked(records.transcript(calls, result=records.result("denied", 5)))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "policy/no-env",
        "denied/default",
        "error/execute",
    ]
    assert run["tool"]["driver"]["rules"][0]["help"] == {"text": "The rule stands at ci/p.yml:7."}
    assert [
        (
            result["ruleId"],
            result["level"],
            result["message"]["text"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
            result["occurrenceCount"],
            result["properties"]["calls"],
        )
        for result in run["results"]
    ] == [
        ("policy/no-env", "error", "read .env: secret", "ci/p.yml", 7, 2, [1, 4]),
        ("denied/default", "error", "bash x: no policy rule allows running `x`", "./", 1, 1, [2]),
        ("error/execute", "warning", "read src/a b.py: too short", "src/a%20b.py", 9, 1, [3]),
    ]
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///srv/site/"}}
    assert run["invocations"] == [
        {
            "executionSuccessful": False,
            "toolExecutionNotifications": [
                {
                    "level": "error",
                    "message": {
                        "text": "denied, exit code 5: `--fail-on-denied` applies, or a rule with `on_denied: fail` or "
                        "`stop` matched\n3 of 6 calls were denied"
                    },
                }
            ],
            "exitCode": 5,
            "startTimeUtc": "2026-01-01T12:00:00.000Z",
        }
    ]


def test_fingerprints_are_the_same_in_another_run_and_other_for_another_call(records: Any) -> None:
    def prints(*commands: str, **more: Any) -> list[str]:
        calls = [records.call(n, "bash", {"command": text}, "error", text) for n, text in enumerate(commands, 1)]
        return [each["partialFingerprints"]["ciAgentCall/v1"] for each in checked(records.transcript(calls))["results"]]

    first, second = prints("make", "make test"), prints("true", "make test", "make")
    assert set(first) < set(second)
    assert len(set(second)) == 3


def test_runs_that_went_well_were_killed_or_cancelled(records: Any) -> None:
    assert checked(records.transcript([]))["invocations"][0] == {
        "executionSuccessful": True,
        "toolExecutionNotifications": [],
        "exitCode": 0,
        "startTimeUtc": "2026-01-01T12:00:00.000Z",
    }
    killed = checked(
        records.transcript([], run=None, model=None, policy=None, result=records.result("unknown", None, "killed"))
    )
    assert [*killed] == ["tool", "invocations", "results", "columnKind"]
    assert "exitCode" not in killed["invocations"][0]
    cancelled = checked(records.transcript([], result=records.result("cancelled", 143, "SIGTERM")))
    assert cancelled["invocations"][0]["exitSignalNumber"] == 15


def test_many_large_results_stay_within_githubs_limits_and_the_rest_is_counted(records: Any) -> None:
    calls = [
        records.call(n, "bash", {"command": f"{n} " + "\u65e5" * 80}, "error", "\u65e5" * 200) for n in range(1, 8_001)
    ]
    document = records.transcript([]) | {"tool_calls": calls}
    report, run = render_sarif(document), checked(document)
    assert len(report) < 10_000_000
    shown = len(run["results"])
    assert 0 < shown <= MAX_RESULTS
    assert run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"] == (
        f"{8_000 - shown} more results: see the transcript."
    )


def test_attack_hostile_text_is_a_plain_message(records: Any, hostile_texts: Hostile) -> None:
    for document in records.hostile(hostile_texts(900, 3)):
        assert len(checked(document)["results"]) == 3
        assert render_sarif(document).isascii()


def test_a_tool_that_was_not_offered_is_not_blamed_on_the_policy(records: Any) -> None:
    decision = records.decision("deny", "not_offered", "Tool ls is not offered in this run.")
    calls = [records.call(1, "ls", {}, "denied", "", decision=decision)]
    run = checked(records.transcript(calls, result=records.result("denied", 5)))
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "denied/not_offered"
    assert rule["help"] == {"text": "If the call is wanted, name the tool in `--tools`; the policy does not forbid it."}
