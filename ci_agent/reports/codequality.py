"""A transcript as a code quality report of GitLab's: what was denied or failed, shown in the merge request.

The format is that of GitLab's "Code Quality report format", which is a part of Code Climate's.
"""

import hashlib
import json
from collections.abc import Collection
from itertools import islice
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import failing_calls
from ci_agent.reports.findings import Finding, broken_rule, findings_of, fingerprint, told
from ci_agent.reports.outcome import conclusion, why_it_ended
from ci_agent.reports.places import place_of
from ci_agent.terminal import inert_json, one_line

MAX_FINDINGS: Final = 5_000

_MAX_DESCRIPTION_CHARS = 500
_REPOSITORY: Final = "."
"""The place of what points to no file; GitLab leaves out what has none."""


def render_codequality(document: JsonObject) -> str:
    """A JSON list in ASCII, in which no part is a command to a runner; empty when all went well."""
    failing = failing_calls(document)
    findings = [_finding(calls, failing, document) for calls in islice(findings_of(document), MAX_FINDINGS)]
    if document["result"]["exit_code"] != 0 and not failing:
        findings.insert(0, _the_run(document))
    return inert_json(json.dumps(findings, separators=(",", ":"))) + "\n"


def _finding(calls: Finding, failing: Collection[int], document: JsonObject) -> JsonObject:
    call = calls[0]
    times = f" ({len(calls)} times)" if len(calls) > 1 else ""
    place = place_of(call, document["run"])
    return {
        "description": one_line(told(call), _MAX_DESCRIPTION_CHARS) + times,
        "check_name": broken_rule(call),
        "fingerprint": fingerprint(call),
        "severity": "major" if any(each["seq"] in failing for each in calls) else "minor",
        "location": {"path": place.path if place else _REPOSITORY, "lines": {"begin": (place and place.line) or 1}},
    }


def _the_run(document: JsonObject) -> JsonObject:
    """What no call shows: a limit, a model that could not be reached, a cut record."""
    reason = f"run/{document['result']['reason']}"
    why = "; ".join(filter(None, (conclusion(document), why_it_ended(document))))
    return {
        "description": one_line(why, _MAX_DESCRIPTION_CHARS),
        "check_name": reason,
        "fingerprint": hashlib.sha256(reason.encode()).hexdigest(),
        "severity": "major",
        "location": {"path": _REPOSITORY, "lines": {"begin": 1}},
    }
