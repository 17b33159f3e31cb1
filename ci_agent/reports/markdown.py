"""A transcript as Markdown for a job's summary: the outcome and what to do first, then the evidence.

Whatever a model or a tool said stands in a fence or, with every character of markup written as its number, in `<code>`
inside of a block of HTML: neither Markdown nor the links of @names and #numbers reach there.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.reports.call_lines import call_lines
from ci_agent.reports.calls import (
    MAX_REASON_CHARS,
    MAX_RULE_CHARS,
    arguments_of,
    counts_of,
    problems_of,
    result_text,
    same_problems,
    short,
    tool_name,
    what_went_wrong,
)
from ci_agent.reports.outcome import (
    answer_heading,
    caveats,
    conclusion,
    explain_commands,
    next_steps,
    usage_text,
    why_it_ended,
)
from ci_agent.spelling import counted
from ci_agent.terminal import inert_lines

MAX_SUMMARY_BYTES: Final = 1_000 * 1024
"""GitHub takes 1,024 KiB a step, and nothing of a larger summary. Each part is kept so small that the sum fits."""

_MAX_ROWS = 50
_MAX_ANSWER_BYTES = 200 * 1024
_MAX_LIST_BYTES = 400 * 1024
_MIN_TELLING_LINES = 2
_MAX_OUTPUTS = 10
_MAX_OUTPUT_LINES = 40
_MAX_OUTPUT_BYTES = 12 * 1024
_MAX_NOTES = 20
_MAX_SHOWN_NUMBERS = 5

_MARKUP: Final = {ord(char): f"&#{ord(char)};" for char in "&<>\"'`*_~[]!#@|\\:$^{}"}

_COLUMNS = ("call", "status", "what", "why", "rule")


def render_markdown(document: JsonObject) -> str:
    """At most `MAX_SUMMARY_BYTES` of UTF-8, the last line with its end; what is left out is said in its place."""
    went_well = document["result"]["exit_code"] == 0
    sections = (
        _outcome(document),
        *(() if went_well else [_next(document)]),
        _problems(document),
        _answer(document),
        *([_next(document)] if went_well else ()),
        _facts(document),
        _outputs(document),
        _all_calls(document["tool_calls"]),
    )
    return "\n\n".join(block for section in sections for block in section) + "\n"


def _outcome(document: JsonObject) -> Iterator[str]:
    result = document["result"]
    mark = {0: "✅", None: "⚠️"}.get(result["exit_code"], "❌")
    ending, _, meaning = conclusion(document).partition(": ")
    yield f"## {mark} ci-agent: {ending}"
    if meaning:
        yield f"{meaning[0].upper()}{meaning[1:]}."
    why = why_it_ended(document)
    if why is not None:
        yield f"<p><b>Why:</b> {why if result['error'] is None else _code(why)}</p>"
    yield from (f"<p>⚠️ {_code(caveat)}</p>" for caveat in caveats(document))


def _next(document: JsonObject) -> Iterator[str]:
    steps = list(next_steps(document))
    commands = explain_commands(document)
    if steps or commands:
        yield "### What to do next"
    yield from steps
    if commands:
        yield f"Why {'it was' if len(commands) == 1 else 'they were'} denied:"
        yield fenced("\n".join(commands), "sh")


def _problems(document: JsonObject) -> Iterator[str]:
    problems = problems_of(document)
    if not problems:
        return
    groups = same_problems(problems)
    yield f"### Denied and failed calls ({counts_of(problems)})"
    yield _table(_COLUMNS, map(_problem_row, groups[:_MAX_ROWS]))
    if len(groups) > _MAX_ROWS:
        left_out = sum(map(len, groups[_MAX_ROWS:]))
        yield f"{counted(left_out, 'more call')} of this kind: see the list of all calls, or the transcript."


def _problem_row(calls: Sequence[JsonObject]) -> Iterator[str]:
    call, decision = calls[0], calls[0]["decision"]
    denied = call["status"] == "denied" and decision is not None
    rule, source = (decision["rule_id"], decision["source"]) if denied else (None, None)
    if denied and source is None and decision["nearest"] is not None:
        source = f"nearest: {decision['nearest']['source']}"
    yield _numbers(calls)
    yield call["status"]
    yield f"{_code(tool_name(call))} {_code(arguments_of(call))}"
    yield _code(what_went_wrong(call))
    named = _code(short(rule, MAX_RULE_CHARS)) if rule else _no_rule(call)
    yield f"{named} {_code(short(source, MAX_RULE_CHARS))}" if source else named


def _no_rule(call: JsonObject) -> str:
    """What stands where a rule would: the policy's code or the road that an error took. Both are our own words."""
    decided = call["decision"] if call["status"] == "denied" else None
    return (decided["code"] if decided else call["stage"] or "interrupted").replace("_", " ")


def _numbers(calls: Sequence[JsonObject]) -> str:
    """`&#35;` keeps the numbers of calls from being links to issues."""
    shown = ", ".join(f"&#35;{call['seq']}" for call in calls[:_MAX_SHOWN_NUMBERS])
    return shown if len(calls) <= _MAX_SHOWN_NUMBERS else f"{shown}, … ({len(calls)} calls)"


def _answer(document: JsonObject) -> Iterator[str]:
    yield f"### {answer_heading(document)}"
    text = document["result"]["final_text"]
    if text is None:
        return
    beginning = inert_lines(text[:_MAX_ANSWER_BYTES])
    kept = _cut(beginning, _MAX_ANSWER_BYTES)
    yield fenced(kept.rstrip("\n"))
    if len(text) > _MAX_ANSWER_BYTES or kept != beginning:
        yield f"The answer is cut here: it has {len(text):,} characters, and the transcript holds all of them."


def _facts(document: JsonObject) -> Iterator[str]:
    run, model, policy = document["run"], document["model"], document["policy"]
    yield f"### Usage\n\n{usage_text(document['usage'])}"
    facts = []
    if model is not None:
        facts.append(f"model {_code(short(model['provider'] + ':' + model['model'], MAX_RULE_CHARS))}")
    if policy is not None:
        facts.append(f"policy {_code(short(policy['name'], MAX_RULE_CHARS))} ({counted(policy['rules'], 'rule')})")
    if run is not None:
        took = "" if run["duration_s"] is None else f", took {run['duration_s']:.1f} s"
        facts.append(f"run {_code(short(run['id'], MAX_RULE_CHARS))}{took}")
    if facts:
        yield f"<p>{' · '.join(facts)}</p>"
    notes = document["notes"]
    if notes:
        lines = (f"{note['at']}  {note['about'][:MAX_RULE_CHARS]}  {note['text']}" for note in notes[:_MAX_NOTES])
        yield from _collapsed(
            f"Notes ({len(notes)})", fenced(inert_lines("\n".join(short(each, MAX_REASON_CHARS) for each in lines)))
        )


def _outputs(document: JsonObject) -> Iterator[str]:
    """The end of what failed calls printed: there the reason stands that one line cannot hold."""
    failed = [
        call for call in document["tool_calls"] if call["status"] == "error" and "\n" in result_text(call).strip()
    ]
    if not failed:
        return
    blocks = [block for call in failed[:_MAX_OUTPUTS] for block in _output(call)]
    more = len(failed) - _MAX_OUTPUTS
    blocks += [f"{counted(more, 'more output')}: see the transcript."] if more > 0 else []
    yield from _collapsed("What failed calls printed", *blocks)


def _output(call: JsonObject) -> Iterator[str]:
    lines = result_text(call).strip().split("\n")
    shown = lines[-_MAX_OUTPUT_LINES:]
    yield f"<p>{_numbers([call])} {_code(tool_name(call))} {_code(arguments_of(call))}</p>"
    if len(lines) > len(shown):
        yield f"{len(lines) - len(shown):,} lines before these are in the transcript."
    text = "\n".join(line[:_MAX_OUTPUT_BYTES] for line in shown)
    yield fenced(_cut(inert_lines(text), _MAX_OUTPUT_BYTES))


def _all_calls(calls: Sequence[JsonObject]) -> Iterator[str]:
    if not calls:
        yield "No tool calls."
        return
    lines, size = [], 0
    for (line,) in call_lines(calls):
        size += len(line.encode()) + 1
        if size > _MAX_LIST_BYTES:
            break
        lines.append(line)
    left_out = len(calls) - len(lines)
    more = [f"{counted(left_out, 'more call')}: see the transcript."] if left_out else []
    yield from _collapsed(f"All calls ({counts_of(calls)})", fenced("\n".join(lines)), *more)


def _collapsed(summary: str, *blocks: str) -> Iterator[str]:
    """Blocks of Markdown behind one line; the blank lines around them end the blocks of HTML."""
    yield f"<details><summary>{summary}</summary>"
    yield from blocks
    yield "</details>"


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """One block of HTML: no line of it is empty, and Markdown has no say inside."""
    head = "".join(f"<th>{column}</th>" for column in columns)
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return "\n".join(["<table>", f"<tr>{head}</tr>", *(f"<tr>{line}</tr>" for line in lines), "</table>"])


def _code(text: str) -> str:
    """Printable text that is only seen; to be used inside of a block of HTML."""
    return f"<code>{text.translate(_MARKUP)}</code>"


def fenced(text: str, language: str = "text") -> str:
    """Inert lines behind a fence that is longer than any run of backticks in them."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _cut(text: str, max_bytes: int) -> str:
    """The beginning of it in at most so many bytes of UTF-8, which end with a whole character."""
    return text.encode()[:max_bytes].decode("utf-8", "ignore")
