"""How a run ended, what it used, and what a person can do next."""

import json
import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ci_agent.exit_codes import EXIT_CODES, ExitName, exit_name
from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import MAX_REASON_CHARS, counts_of, same_problems, short
from ci_agent.spelling import counted
from ci_agent.terminal import one_line, printable
from ci_agent.transcript.document import document_digest

_DENIED_BY_THE_RUN: Final = frozenset({"not_offered", "limit"})
"""Codes of decisions."""

UNTAKEN: Final = "nobody takes them: name a file with --proposals"
"""What is said of proposals that go nowhere; in the error of a run, they were lost."""

_MAX_COMMAND_CHARS = 300
_MAX_ERROR_CHARS = 1_000
_MAX_COMMANDS = 3
_MAX_DAMAGES = 3


def outcome_line(document: JsonObject) -> str:
    """How a run ended and what became of its calls, in one line: the last one of a log."""
    calls = document["tool_calls"]
    counts = f"{counted(len(calls), 'call')} ({counts_of(calls)})" if calls else "no calls"
    result = document["result"]
    ending = f"{result['reason']}, exit code {result['exit_code']}"
    if result["error"]:
        ending += f" ({short(result['error'], MAX_REASON_CHARS)})"
    return "; ".join([ending, counts, usage_text(document["usage"]), *passed_limits(document)])


def exit_row(document: JsonObject) -> ExitName | None:
    """The row of the table of exit codes; None when the run has no code, or one that is in no row."""
    code = document["result"]["exit_code"]
    return None if code is None else exit_name(code)


def conclusion(document: JsonObject) -> str:
    """Reason, exit code, and what the code means."""
    result, name = document["result"], exit_row(document)
    if result["exit_code"] is None:
        return f"{result['reason']}, no exit code: the run was killed, or its record was cut off"
    meaning = f": {_meaning(name)}" if name not in (None, "completed") else ""
    return f"{result['reason']}, exit code {result['exit_code']}{meaning}"


def _meaning(name: ExitName) -> str:
    """Of the code, without the word that the reason says already."""
    return EXIT_CODES[name].meaning.removeprefix("completed, but with ")


def why_it_ended(document: JsonObject) -> str | None:
    """One line about this run, where `conclusion` speaks of its kind; None when there is nothing to say."""
    error = document["result"]["error"]
    if error is not None:
        return one_line(error[: 4 * _MAX_ERROR_CHARS], _MAX_ERROR_CHARS)
    calls, name = document["tool_calls"], exit_row(document)
    status = {"denied": "denied", "negative": "error"}.get(name or "")
    if status is None:
        return None
    count = sum(call["status"] == status for call in calls)
    if status == "error" and (not count or was_changed(document)):  # what the code stands for, nobody knows
        return None
    were = "was" if count == 1 else "were"
    of = f"{count} of {counted(len(calls), 'call')}"
    return f"{of} {were} denied" if status == "denied" else f"{of} failed, which --fail-on-error makes a failure"


def answer_heading(document: JsonObject) -> str:
    """What stands above the answer: whether there is one, and whether all of it."""
    if document["result"]["final_text"] is None:
        return "No answer"
    said = [message for message in document["messages"] if message["role"] == "assistant"]
    return "Answer, cut off at its maximum length" if said and said[-1]["stop_reason"] == "length" else "Answer"


def next_steps(document: JsonObject, transcript: str | None = "TRANSCRIPT") -> Iterator[str]:
    """What a person can do next, a line each. `transcript`: where the document is, as a word of a command; None: it was
    put nowhere."""
    name, retryable = exit_row(document), document["result"]["error_retryable"]
    if name == "provider" and retryable is not None:
        yield "Running again later can help." if retryable else "Running again will not help by itself."
    elif name == "negative" and UNTAKEN in (document["result"]["error"] or ""):
        yield "Run again with --proposals FILE on the command line: a task file cannot name it."
    elif name is not None and EXIT_CODES[name].advice:
        yield EXIT_CODES[name].advice
    if name == "denied" and any(_is_denied_by_default(call) for call in document["tool_calls"]):
        policy = shlex.quote(document["policy"]["name"]) if document["policy"] else "FILE"
        first = "run again with --transcript FILE, then " if transcript is None else ""
        command = f"ci-agent policy suggest --policy {printable(policy)} {printable(transcript or 'FILE')}"
        yield f"Rules for what no rule allows: {first}`{command}`."


def _is_denied_by_default(call: JsonObject) -> bool:
    return call["status"] == "denied" and bool(call["decision"]) and call["decision"]["code"] == "default"


def passed_limits(document: JsonObject) -> Iterator[str]:
    """Of tokens and cost, which are known when they are spent: by how much more was used than the run's limit."""
    limits: JsonObject = (document["policy"] or {}).get("limits", {})
    usage = document["usage"]
    tokens = sum(usage[f"{kind}_tokens"] for kind in ("input", "output", "cache_read", "cache_write"))
    for used, limit, unit in (
        (tokens, limits.get("max_tokens"), "tokens"),
        (usage["cost_usd"], limits.get("max_cost_usd"), "USD"),
    ):
        if isinstance(limit, int | float) and used is not None and used > limit > 0:
            yield f"{used:,.10g} {unit}, {_times(used / limit)} the limit of {limit:,.10g}"


def _times(ratio: float) -> str:
    told = f"{ratio:,.1f}".removesuffix(".0")
    return "just over" if told == "1" else f"{told} times"


def caveats(document: JsonObject) -> Iterator[str]:
    """What else a person should know of it, a line each: limits that its last answer passed, and what makes the record
    itself doubtful."""
    yield from (f"More was used than the run's limit: {passed}." for passed in passed_limits(document))
    integrity = document["integrity"]
    if was_changed(document):
        yield "It was changed after it was written: what it says need not be what happened."
    if not integrity["complete"]:
        yield "This was made of the run's journal; calls after the last may be missing."
    problems = integrity["problems"]
    yield from (f"The journal was damaged: {short(each, MAX_REASON_CHARS)}" for each in problems[:_MAX_DAMAGES])
    if len(problems) > _MAX_DAMAGES:
        yield f"The journal was damaged in {len(problems) - _MAX_DAMAGES} more places: `ci-agent transcript verify`."


def was_changed(document: JsonObject) -> bool:
    """Whether the document is not the one that a run wrote, as far as its digest tells."""
    digest: str = document["integrity"]["document_sha256"]
    return digest != document_digest(document)


def explain_commands(document: JsonObject, max_commands: int = _MAX_COMMANDS) -> list[str]:
    """Commands that explain the first denials, each of another kind, to be copied. One is left out that would be long
    or not what it looks like."""
    policy = document["policy"]
    if policy is None:
        return []
    denied = [call for call in document["tool_calls"] if call["status"] == "denied"]
    commands = (explain_command(group[0], policy["name"]) for group in same_problems(denied))
    return list(islice(filter(None, commands), max_commands))


def explain_command(call: JsonObject, policy: str) -> str | None:
    """The command that explains a call's decision; None when it would be long or not what it looks like, and when the
    run denied the call and not its policy, which `explain` asks."""
    decision = call["decision"]
    if call["arguments"] is None or (decision is not None and decision["code"] in _DENIED_BY_THE_RUN):
        return None
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    words = ("--policy", policy, "--tool", call["tool"], "--args", arguments)
    command = f"ci-agent policy explain {shlex.join(words)}"
    return command if len(command) <= _MAX_COMMAND_CHARS and command == printable(command) else None


def usage_text(usage: JsonObject) -> str:
    """Tokens and cost; a cost that is not known says so, and so does a count that is a guess."""
    cost = "cost unknown" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f} USD"
    cache = ""
    if usage["cache_read_tokens"] or usage["cache_write_tokens"]:
        cache = f", cache {usage['cache_read_tokens']:,} read, {usage['cache_write_tokens']:,} written"
    estimated = " (estimated)" if usage.get("estimated") else ""
    return f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out{cache}{estimated}; {cost}"
