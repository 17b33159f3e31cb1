"""Two runs of the same task side by side, for a person and for a program."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, assert_never

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import arguments_of, counts_of, decided_by, how_it_ended, tool_name
from ci_agent.spelling import counted
from ci_agent.terminal import printable, shortened
from ci_agent.transcript.compare import Added, ComparedCall, Kept, Removed

_MAX_CELL_CHARS: Final = 40
_UNKNOWN: Final = "unknown"


def render_comparison(before: JsonObject, after: JsonObject, calls: Sequence[ComparedCall]) -> str:
    """A table of what the runs were and used, then a line for each call that is not the same in both."""
    return "\n".join(
        [*_table(before, after), "", _counts(calls), *(_line(call) for call in calls if _sign(call) != "=")]
    )


def comparison_json(before: JsonObject, after: JsonObject, calls: Sequence[ComparedCall]) -> JsonObject:
    """The same for a program."""
    kept = [call for call in calls if isinstance(call, Kept)]
    return {
        "before": _run_json(before),
        "after": _run_json(after),
        "added": [_call_json(each.call) for each in calls if isinstance(each, Added)],
        "removed": [_call_json(each.call) for each in calls if isinstance(each, Removed)],
        "changed": [
            {"before": _call_json(each.before), "after": _call_json(each.after), "changes": sorted(each.changes)}
            for each in kept
            if each.changes
        ],
        "unchanged": sum(not each.changes for each in kept),
    }


def are_alike(calls: Sequence[ComparedCall]) -> bool:
    """Whether both runs made the same calls and each ended alike, whatever it printed and whichever rule allowed it."""
    return all(isinstance(call, Kept) and "status" not in call.changes for call in calls)


# The runs


def _table(before: JsonObject, after: JsonObject) -> Iterator[str]:
    rows = [("", "before", "after", "")]
    for name, cell, change in _ROWS:
        told = (cell(before), cell(after))
        rows.append((name, *told, change(before, after) if told[0] != told[1] else ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _outcome(document: JsonObject) -> str:
    result = document["result"]
    code = result["exit_code"]
    return f"{result['reason']}, no exit code" if code is None else f"{result['reason']}, exit code {code}"


def _model(document: JsonObject) -> str:
    model = document["model"]
    return _UNKNOWN if model is None else _cell(f"{model['provider']}:{model['model']}")


def _policy(document: JsonObject) -> str:
    policy = document["policy"]
    return _UNKNOWN if policy is None else _cell(f"{policy['name']} {policy['sha256'][:8]}")


def _took(document: JsonObject) -> str:
    seconds = _seconds(document)
    return _UNKNOWN if seconds is None else f"{seconds:.1f} s"


def _cost(document: JsonObject) -> str:
    cost = document["usage"]["cost_usd"]
    return _UNKNOWN if cost is None else f"{cost:.4f} USD"


def _input(document: JsonObject) -> str:
    usage = document["usage"]
    return f"{usage['input_tokens'] + usage['cache_read_tokens'] + usage['cache_write_tokens']:,}"


def _output(document: JsonObject) -> str:
    return f"{document['usage']['output_tokens']:,}"


def _turns(document: JsonObject) -> str:
    return str(sum(message["role"] == "assistant" for message in document["messages"]))


def _calls(document: JsonObject) -> str:
    return counts_of(document["tool_calls"]) or "none"


def _seconds(document: JsonObject) -> float | None:
    run = document["run"]
    return None if run is None else run["duration_s"]


def _more_seconds(before: JsonObject, after: JsonObject) -> str:
    first, second = _seconds(before), _seconds(after)
    return "" if first is None or second is None else f"{second - first:+.1f} s"


def _more_usd(before: JsonObject, after: JsonObject) -> str:
    first, second = before["usage"]["cost_usd"], after["usage"]["cost_usd"]
    return "" if first is None or second is None else f"{second - first:+.4f} USD"


def _more_output(before: JsonObject, after: JsonObject) -> str:
    return f"{after['usage']['output_tokens'] - before['usage']['output_tokens']:+,}"


def _changed(_before: JsonObject, _after: JsonObject) -> str:
    return "changed"


def _cell(text: str) -> str:
    return shortened(printable(text), _MAX_CELL_CHARS)


_ROWS: Final[tuple[tuple[str, Callable[[JsonObject], str], Callable[[JsonObject, JsonObject], str]], ...]] = (
    ("outcome", _outcome, _changed),
    ("model", _model, _changed),
    ("policy", _policy, _changed),
    ("took", _took, _more_seconds),
    ("cost", _cost, _more_usd),
    ("tokens in", _input, _changed),
    ("tokens out", _output, _more_output),
    ("turns", _turns, _changed),
    ("calls", _calls, _changed),
)


def _run_json(document: JsonObject) -> JsonObject:
    run = document["run"]
    return {
        "run_id": run and run["id"],
        "reason": document["result"]["reason"],
        "exit_code": document["result"]["exit_code"],
        "model": document["model"] and {key: document["model"][key] for key in ("provider", "model")},
        "policy": document["policy"] and {key: document["policy"][key] for key in ("name", "sha256")},
        "duration_s": _seconds(document),
        "turns": int(_turns(document)),
        "usage": document["usage"],
    }


# The calls


_WORDS: Final = {"=": "alike", "~": "changed", "+": "added", "-": "removed"}


def _sign(call: ComparedCall) -> str:
    match call:
        case Added():
            return "+"
        case Removed():
            return "-"
        case Kept():
            return "~" if call.changes else "="
    assert_never(call)


def _counts(calls: Sequence[ComparedCall]) -> str:
    signs = Counter(map(_sign, calls))
    told = [f"{signs[sign]} {word}" for sign, word in _WORDS.items() if signs[sign]]
    return f"{counted(len(calls), 'call')}: {', '.join(told)}" if calls else "no calls"


def _line(compared: ComparedCall) -> str:
    match compared:
        case Added(call):
            return _columns("+", "", call, call["status"])
        case Removed(call):
            return _columns("-", f"#{call['seq']}", call, call["status"], after="")
        case Kept(before, after):
            return _columns("~", f"#{before['seq']}", after, _what_changed(compared))
    assert_never(compared)


def _columns(sign: str, before: str, call: JsonObject, told: str, after: str | None = None) -> str:
    number = f"#{call['seq']}" if after is None else after
    return f"  {sign}  {before:<6}{number:<6}  {tool_name(call)}  {arguments_of(call)}  {told}"


def _what_changed(kept: Kept) -> str:
    if "status" in kept.changes:
        return f"{kept.before['status']} -> {kept.after['status']}, {how_it_ended(kept.after)}"
    if "decision" in kept.changes:
        return f"{_rule(kept.before)} -> {_rule(kept.after)}"
    return "other output"


def _rule(call: JsonObject) -> str:
    decision = call["decision"]
    return decided_by(call) if decision is None else printable(decision["rule_id"] or decision["code"])


def _call_json(call: JsonObject) -> JsonObject:
    decision = call["decision"]
    return {
        "seq": call["seq"],
        "tool": call["tool"],
        "args": call["arguments"],
        "status": call["status"],
        "decision": decision and {key: decision[key] for key in ("effect", "code", "rule_id", "reason")},
    }
