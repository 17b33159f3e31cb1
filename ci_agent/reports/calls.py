"""What the record says of a call, worded once for every report: printable, one line, bounded."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ci_agent.call_summary import summarise_arguments, summarise_failure, without_colours
from ci_agent.exit_codes import exit_name
from ci_agent.json_types import JsonObject
from ci_agent.terminal import one_line, printable, shortened

STATUS_ORDER: Final = ("denied", "error", "unknown", "cancelled", "ok")
"""What a person must see first comes first."""

PROBLEMS: Final = frozenset({"denied", "error", "unknown"})
"""Statuses that ask for a look."""

MAX_TOOL_CHARS: Final = 20
MAX_RULE_CHARS: Final = 120
MAX_REASON_CHARS: Final = 240

_TIME = re.compile(r"\d+(\.\d+)? ?(m?s|seconds)\b")


def by_urgency(calls: Iterable[JsonObject]) -> list[JsonObject]:
    """By status, and in each status in the order of the run."""
    return sorted(calls, key=lambda call: (STATUS_ORDER.index(call["status"]), call["seq"]))


def problems_of(document: JsonObject) -> list[JsonObject]:
    """Calls that were denied, failed or have no known end; denials first."""
    return by_urgency(call for call in document["tool_calls"] if call["status"] in PROBLEMS)


def same_problems(calls: Iterable[JsonObject]) -> list[list[JsonObject]]:
    """Calls that a person would call the same thing, together; each group stands where its first call does."""
    groups: dict[tuple[str, ...], list[JsonObject]] = {}
    for call in calls:
        shape = (call["status"], tool_name(call), arguments_of(call), decided_by(call), timeless(what_went_wrong(call)))
        groups.setdefault(shape, []).append(call)
    return list(groups.values())


def timeless(told: str) -> str:
    """`2 failed in 1.4s` is the same ending as `2 failed in 1.5s`."""
    return _TIME.sub("", told)


def counts_of(calls: Sequence[JsonObject]) -> str:
    """`2 denied, 1 ok`."""
    statuses = [call["status"] for call in calls]
    return ", ".join(f"{statuses.count(status)} {status}" for status in STATUS_ORDER if status in statuses)


def tool_name(call: JsonObject) -> str:
    return short(call["tool"], MAX_TOOL_CHARS) or '""'


def arguments_of(call: JsonObject) -> str:
    """The most telling argument."""
    return summarise_arguments(call["arguments"], call.get("arguments_json", ""))


def decided_by(call: JsonObject) -> str:
    """Who denied it, and where that stands: `by no-push (policy.yml:7)`, `(default)`; of an error, the road it took."""
    decision = call["decision"]
    if call["status"] != "denied" or decision is None:
        return call["stage"] or "interrupted"
    if decision["rule_id"] is None:
        near = decision["nearest"]
        by = f", nearest rule {short(near['source'], MAX_RULE_CHARS)}" if near else ""
        return f"({decision['code']}{by})"
    place = f" ({short(decision['source'], MAX_RULE_CHARS)})" if decision["source"] else ""
    return f"by {short(decision['rule_id'], MAX_RULE_CHARS)}{place}"


def what_went_wrong(call: JsonObject) -> str:
    """The reason of a denial without what `decided_by` says, or the telling line of an error; empty of an `ok` one."""
    if call["status"] == "ok":
        return ""
    decision = call["decision"]
    if call["status"] != "denied" or decision is None:
        return summarise_failure(result_text(call), call["details"])
    lead = f"Blocked by policy rule {decision['rule_id']}: "
    return one_line(decision["reason"].removeprefix(lead).removeprefix("Blocked: "), MAX_REASON_CHARS)


def result_text(call: JsonObject) -> str:
    """What the model read, without colours and images."""
    return without_colours("\n".join(part["text"] for part in call["content"] if part["type"] == "text"))


def how_it_ended(call: JsonObject) -> str:
    """Size and time of a call that went well; of another one, who stopped it and why."""
    if call["status"] != "ok":
        return f"{decided_by(call)}: {what_went_wrong(call)}"
    cut = ", cut" if call["truncated"] else ""
    took = "" if call["duration_s"] is None else f", {call['duration_s']:.1f} s"
    return f"{call['output_bytes']:,} bytes{cut}{took}"


def failing_calls(document: JsonObject) -> set[int]:
    """Numbers of the calls that made the run fail, as far as its record tells: of denials those whose rule says so,
    or all of them when none does; of errors all, when they alone made the outcome negative."""
    result, calls = document["result"], document["tool_calls"]
    name = None if result["exit_code"] is None else exit_name(result["exit_code"])
    if name == "denied":
        denied = [call for call in calls if call["status"] == "denied"]
        named = [call for call in denied if _says_so(call["decision"])]
        return {call["seq"] for call in named or denied}
    if name == "negative" and result["error"] is None:
        return {call["seq"] for call in calls if call["status"] == "error"}
    return set()


def answering_calls(document: JsonObject) -> set[int]:
    """Numbers of the commands that ended by themselves, with another exit status than 0, in a run that ended well: to a
    model that can be the answer it asked for, as the findings of a linter are."""
    if document["result"]["exit_code"] != 0:
        return set()
    return {call["seq"] for call in document["tool_calls"] if _has_exit_status(call)}


def short(text: str, max_chars: int) -> str:
    """Printable, and no more of it looked at than is shown."""
    return shortened(printable(text[: max_chars + 1]), max_chars)


def _says_so(decision: Mapping[str, str] | None) -> bool:
    return decision is not None and decision["on_denied"] != "record"


def _has_exit_status(call: JsonObject) -> bool:
    """Another than 0; a command that was killed, also for its time, has none."""
    details = call["details"]
    if call["status"] != "error" or call["stage"] != "execute" or not isinstance(details, dict):
        return False
    return bool(details.get("exit_status")) and not (details.get("timed_out") or details.get("killed_because"))
