"""Calls that were denied or failed as findings, for services that show them beside the code and follow them from run to
run: the same rule, tool and arguments are one finding."""

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import (
    MAX_RULE_CHARS,
    arguments_of,
    failing_calls,
    problems_of,
    short,
    tool_name,
    what_went_wrong,
)
from ci_agent.transcript.plain_json import canonical_json

Finding: TypeAlias = Sequence[JsonObject]
"""Calls that are the same finding, the first that was made first; never empty."""


def findings_of(document: JsonObject) -> list[Finding]:
    """Those that fail the run come first."""
    failing = failing_calls(document)
    groups: dict[str, list[JsonObject]] = {}
    for call in sorted(problems_of(document), key=lambda call: call["seq"] not in failing):
        groups.setdefault(fingerprint(call), []).append(call)
    return list(groups.values())


def fingerprint(call: JsonObject) -> str:
    """The same in every run that makes this call and fails on it in the same way; 64 hexadecimal digits."""
    what = [broken_rule(call), call["tool"], call["arguments"], call.get("arguments_json")]
    return hashlib.sha256(canonical_json(what).encode()).hexdigest()


def broken_rule(call: JsonObject) -> str:
    """`policy/no-push`, `denied/default`, `error/execute`."""
    decision = call["decision"]
    if call["status"] != "denied" or decision is None:
        return f"{call['status']}/{call['stage'] or 'interrupted'}"
    rule_id = decision["rule_id"]
    return f"denied/{decision['code']}" if rule_id is None else f"policy/{short(rule_id, MAX_RULE_CHARS)}"


def told(call: JsonObject) -> str:
    """`read .env: secrets stay out of the run`."""
    return f"{tool_name(call)} {arguments_of(call)}: {what_went_wrong(call)}"
