"""A transcript as text for a person: what went wrong first, then the rest, the answer, and what to do next."""

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from ci_agent.call_summary import summarise_arguments, summarise_failure
from ci_agent.exit_codes import EXIT_CODES, exit_name
from ci_agent.json_types import JsonObject
from ci_agent.spelling import counted
from ci_agent.terminal import prefixed, printable, shortened

Paint: TypeAlias = Callable[[str, int], str]
"""Text and an SGR number to text."""

_STATUS_ORDER = ("denied", "error", "unknown", "cancelled", "ok")
_COLORS = {"denied": 31, "error": 31, "unknown": 33, "cancelled": 33, "ok": 32}
_BOLD = 1

_MAX_TOOL_CHARS = 20
_MAX_REASON_CHARS = 160
_MAX_COMMAND_CHARS = 300


def render_text(document: JsonObject, *, color: bool = False) -> str:
    """Several lines, the last without an end. None begins with text of a model or a tool, and nothing in them
    controls a terminal or commands a CI runner; colours only when asked for."""
    paint = partial(_painted, color=color)
    sections = (
        _head(document),
        _calls(document["tool_calls"], paint),
        _answer(document["result"]["final_text"], paint),
        _notes(document["notes"], paint),
        _outcome(document, paint),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section)))


def _painted(text: str, code: int, *, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text


def _head(document: JsonObject) -> Iterator[str]:
    run, model, policy = document["run"], document["model"], document["policy"]
    if run is None:
        yield "Run of which the beginning is lost"
        return
    took = _took(", took ", run["duration_s"])
    yield f"Run {printable(run['id'])}, begun {run['started_at']}{took}, ci-agent {printable(run['version'])}"
    if model is not None:
        yield f"  model      {printable(model['provider'])}:{printable(model['model'])}"
    if policy is not None:
        rules = counted(policy["rules"], "rule")
        yield f"  policy     {printable(policy['name'])} ({rules}, sha256 {policy['sha256'][:12]})"
    yield f"  workspace  {printable(run['workspace'])}"
    if run["sandbox"] is not None:
        yield f"  sandbox    {printable(run['sandbox']['kind'])}"


def _calls(calls: Sequence[JsonObject], paint: Paint) -> Iterator[str]:
    if not calls:
        yield paint("No tool calls", _BOLD)
        return
    yield f"{paint('Tool calls', _BOLD)}  {_counts(calls)}"
    tool_width = max(len(_tool_name(call)) for call in calls)
    summary_width = max(len(_summary(call)) for call in calls)
    for call in sorted(calls, key=lambda call: (_STATUS_ORDER.index(call["status"]), call["seq"])):
        status = paint(f"{call['status']:<9}", _COLORS[call["status"]])
        what = f"{_tool_name(call):<{tool_width}}  {_summary(call):<{summary_width}}"
        yield f"  {status}  #{call['seq']:<3}  turn {call['turn']:<2}  {what}  {_ending(call)}"


def _counts(calls: Sequence[JsonObject]) -> str:
    statuses = [call["status"] for call in calls]
    return ", ".join(f"{statuses.count(status)} {status}" for status in _STATUS_ORDER if status in statuses)


def _tool_name(call: JsonObject) -> str:
    return shortened(printable(call["tool"]), _MAX_TOOL_CHARS)


def _summary(call: JsonObject) -> str:
    return summarise_arguments(call["arguments"], call.get("arguments_json", ""))


def _ending(call: JsonObject) -> str:
    if call["status"] == "ok":
        cut = ", cut" if call["truncated"] else ""
        return f"{call['output_bytes']:,} bytes{cut}{_took(', ', call['duration_s'])}"
    if call["status"] == "denied" and call["decision"] is not None:
        decision = call["decision"]
        by = f"by {printable(decision['rule_id'])}" if decision["rule_id"] else f"({decision['code']})"
        return f"{by}: {_short(decision['reason'], _MAX_REASON_CHARS)}"
    told = next((part["text"] for part in call["content"] if part["type"] == "text"), "")
    return f"{call['stage'] or 'interrupted'}: {summarise_failure(told, call['details'])}"


def _answer(text: str | None, paint: Paint) -> Iterator[str]:
    if text is None:
        yield paint("No answer", _BOLD)
        return
    yield paint("Answer", _BOLD)
    yield prefixed(text, "  | ")


def _notes(notes: Sequence[JsonObject], paint: Paint) -> Iterator[str]:
    if notes:
        yield paint("Notes", _BOLD)
    for note in notes:
        yield f"  {note['at']}  {printable(note['about'])}  {_short(note['text'], _MAX_REASON_CHARS)}"


def outcome_line(document: JsonObject) -> str:
    """How a run ended and what became of its calls, in one line: the last one of a log."""
    calls = document["tool_calls"]
    counts = f"{len(calls)} call{'s' if len(calls) > 1 else ''} ({_counts(calls)})" if calls else "no calls"
    result = document["result"]
    ending = f"{result['reason']}, exit code {result['exit_code']}"
    if result["error"]:
        ending += f" ({_short(result['error'], _MAX_REASON_CHARS)})"
    return f"{ending}; {counts}; {_usage(document['usage'])}"


def _outcome(document: JsonObject, paint: Paint) -> Iterator[str]:
    result, integrity = document["result"], document["integrity"]
    yield f"{paint('Usage', _BOLD)}    {_usage(document['usage'])}"
    yield f"{paint('Outcome', _BOLD)}  {_conclusion(result)}"
    if result["error"] is not None:
        yield f"  Error: {printable(result['error'])}"
    if not integrity["complete"]:
        yield "  This was recovered from the run's journal; calls after the last may be missing."
    yield from (f"  The journal was damaged: {printable(problem)}" for problem in integrity["problems"])
    yield from (f"  {step}" for step in _next_steps(document))


def _usage(usage: JsonObject) -> str:
    cost = "cost unknown" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f} USD"
    cache = ""
    if usage["cache_read_tokens"] or usage["cache_write_tokens"]:
        cache = f", cache {usage['cache_read_tokens']:,} read, {usage['cache_write_tokens']:,} written"
    return f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out{cache}; {cost}"


def _conclusion(result: JsonObject) -> str:
    if result["exit_code"] is None:
        return f"{result['reason']}, no exit code"
    name = exit_name(result["exit_code"])
    meaning = f": {EXIT_CODES[name].meaning}" if name not in (None, "completed") else ""
    return f"{result['reason']}, exit code {result['exit_code']}{meaning}"


def _next_steps(document: JsonObject) -> Iterator[str]:
    result = document["result"]
    name = None if result["exit_code"] is None else exit_name(result["exit_code"])
    if name is not None and EXIT_CODES[name].advice:
        yield f"Next: {EXIT_CODES[name].advice}"
    if name == "provider" and result["error_retryable"] is not None:
        yield "Running again later can help." if result["error_retryable"] else "Running again will not help by itself."
    denied = next((call for call in document["tool_calls"] if call["status"] == "denied"), None)
    command = denied and _explain_command(denied, document["policy"])
    if command:
        yield f"Why the first denial: {command}"


def _explain_command(call: JsonObject, policy: JsonObject | None) -> str | None:
    """The command that explains a denial, to be copied; None when it would be long or not what it looks like."""
    if policy is None or call["arguments"] is None:
        return None
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    words = ("--policy", policy["name"], "--tool", call["tool"], "--args", arguments)
    command = f"ci-agent policy explain {shlex.join(words)}"
    return command if command == printable(command) and len(command) <= _MAX_COMMAND_CHARS else None


def _took(before: str, seconds: float | None) -> str:
    return "" if seconds is None else f"{before}{seconds:.1f} s"


def _short(text: str, max_chars: int) -> str:
    return shortened(printable(text[: max_chars + 1]), max_chars)
