"""A transcript as SARIF 2.1.0, for pages that show findings beside the code: rules that denied, and kinds of errors.

Section numbers are those of the OASIS standard; limits are GitHub's ("SARIF support for code scanning").
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final
from urllib.parse import quote

from ci_agent.exit_codes import signal_of
from ci_agent.json_types import Json, JsonObject
from ci_agent.reports.calls import MAX_REASON_CHARS, MAX_RULE_CHARS, failing_calls, short
from ci_agent.reports.findings import Finding, broken_rule, findings_of, fingerprint, told
from ci_agent.reports.outcome import caveats, conclusion, why_it_ended
from ci_agent.reports.places import place_of, root_of
from ci_agent.spelling import counted
from ci_agent.terminal import inert_json, one_line

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_ROOT: Final = "%SRCROOT%"
"""GitHub's name for the folder that relative paths begin at."""

MAX_RESULTS: Final = 5_000
"""GitHub takes 25,000 and shows 5,000."""

_MAX_RESULTS_BYTES: Final = 9_000_000
"""GitHub takes 10 MB once it is compressed; this much before that, with the rules and the run beside it, is safe."""

_MAX_NUMBERS = 100


def render_sarif(document: JsonObject) -> str:
    """JSON in ASCII, in which no part is a command to GitHub's runner either."""
    problems = findings_of(document)
    rules = _first_calls(problems)
    rule_index = {rule_id: index for index, rule_id in enumerate(rules)}
    failing = failing_calls(document)
    results = list(_bounded(_result(calls, rule_index, failing, document) for calls in problems))
    run: JsonObject = {
        "tool": {"driver": _driver(document, rules)},
        "invocations": [_invocation(document, len(problems) - len(results))],
        "results": results,
        "columnKind": "utf16CodeUnits",
    }
    root = _folder_uri(document)
    if root is not None:
        run["originalUriBaseIds"] = {_ROOT: {"uri": root}}
    report = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return _json_text(report) + "\n"


def _json_text(value: Json) -> str:
    return inert_json(json.dumps(value, separators=(",", ":")))


def _bounded(results: Iterable[JsonObject]) -> Iterator[JsonObject]:
    size = 0
    for result in islice(results, MAX_RESULTS):
        size += len(_json_text(result))
        if size > _MAX_RESULTS_BYTES:
            return
        yield result


def _first_calls(problems: Iterable[Finding]) -> dict[str, JsonObject]:
    """Each rule with the first call that broke it."""
    calls: dict[str, JsonObject] = {}
    for group in problems:
        calls.setdefault(broken_rule(group[0]), group[0])
    return calls


def _driver(document: JsonObject, rules: Mapping[str, JsonObject]) -> JsonObject:
    driver: JsonObject = {"name": "ci-agent", "rules": [_rule(*each) for each in rules.items()]}
    if document["run"] is not None:
        driver["version"] = short(document["run"]["version"], MAX_RULE_CHARS)
    return driver


def _rule(rule_id: str, call: JsonObject) -> JsonObject:
    kind, _, name = rule_id.partition("/")
    decision = call["decision"] or {}
    source = {"source": short(decision["source"], MAX_RULE_CHARS)} if kind == "policy" and decision["source"] else {}
    if kind == "policy":
        what = f"Denied by policy rule {name}"
        because = one_line(decision["because"] or what, MAX_REASON_CHARS)
        cure = f"The rule stands at {source.get('source', 'an unknown place')}."
    elif rule_id == "denied/not_offered":
        what = because = "Denied, for the tool was not offered"
        cure = "If the call is wanted, name the tool in `--tools`; the policy does not forbid it."
    elif kind == "denied":
        what = because = f"Denied by the policy ({name})"
        cure = "If the call is wanted, `ci-agent policy explain` says why it was denied; add a rule for it."
    else:
        what = because = f"Tool call failed ({name.replace('_', ' ')})"
        cure = "Read the result of the call in the transcript."
    return {
        "id": rule_id,
        "shortDescription": {"text": _message(what)},
        "fullDescription": {"text": _message(because)},
        "help": {"text": _message(cure)},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["ci-agent", kind], **source},
    }


def _result(
    calls: Finding, rule_index: Mapping[str, int], failing: Collection[int], document: JsonObject
) -> JsonObject:
    call = calls[0]
    rule_id, known_by = broken_rule(call), fingerprint(call)
    return {
        "ruleId": rule_id,
        "ruleIndex": rule_index[rule_id],
        "level": "error" if any(each["seq"] in failing for each in calls) else "warning",
        "message": {"text": _message(told(call))},
        "locations": [_location(call, document)],
        "occurrenceCount": len(calls),
        # The first is the one that GitHub knows a result by.
        "partialFingerprints": {"primaryLocationLineHash": f"{known_by[:16]}:1", "ciAgentCall/v1": known_by},
        "properties": {"calls": [each["seq"] for each in calls[:_MAX_NUMBERS]], "status": call["status"]},
    }


def _location(call: JsonObject, document: JsonObject) -> JsonObject:
    """GitHub refuses results without one; a call that points to no file stands at the repository itself."""
    place = place_of(call, document["run"])
    artifact = {"uri": quote(place.path) if place else "./", "uriBaseId": _ROOT}
    region = {"startLine": (place and place.line) or 1}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _invocation(document: JsonObject, left_out: int) -> JsonObject:
    run, code = document["run"], document["result"]["exit_code"]
    reasons = "\n".join(filter(None, (conclusion(document), why_it_ended(document), *caveats(document))))
    notifications = [] if code == 0 else [_notification("error", reasons)]
    if left_out:
        notifications.append(_notification("warning", f"{counted(left_out, 'more result')}: see the transcript."))
    invocation: JsonObject = {"executionSuccessful": code == 0, "toolExecutionNotifications": notifications}
    if code is not None:
        invocation["exitCode"] = code
        invocation |= {} if signal_of(code) is None else {"exitSignalNumber": signal_of(code)}
    if run is not None:
        invocation["startTimeUtc"] = run["started_at"]
    return invocation


def _notification(level: str, text: str) -> JsonObject:
    return {"level": level, "message": {"text": _message(text)}}


def _folder_uri(document: JsonObject) -> str | None:
    """The top of the repository, with the slash at its end that 3.14.14 asks for."""
    run = document["run"]
    if run is None or not root_of(run).startswith("/"):
        return None
    return f"file://{quote(root_of(run).rstrip('/'), errors='replace')}/"


def _message(text: str) -> str:
    """A message's text, in which braces are doubled (3.11.5) and no link begins (3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "\\](")
