"""A transcript as one page that needs nothing else: what went wrong on top, then a timeline of every call.

The page is made here as far as a person needs it who runs no script; the timeline is made in the browser by the scripts
in `viewer/`, out of data that stands in the page. What models and tools wrote is only ever text there.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.reports.calls import (
    arguments_of,
    counts_of,
    decided_by,
    problems_of,
    result_text,
    same_problems,
    tool_name,
)
from ci_agent.reports.calls import what_went_wrong as reason_of
from ci_agent.reports.outcome import caveats, conclusion, next_steps, usage_text, why_it_ended
from ci_agent.reports.timeline import timeline_of
from ci_agent.spelling import counted
from ci_agent.terminal import inert_json, printable
from ci_agent.transcript.plain_json import well_formed

_SCRIPTS: Final = ("text.js", "data.js", "rows.js", "details.js", "main.js")
"""In the order in which they need each other."""


_QUOTED: Final = re.compile(r"`([^`]+)`")

_MAX_PROBLEMS: Final = 50


def render_html(document: JsonObject) -> str:
    """The whole page. It asks for nothing over the network and forbids the browser to do so."""
    style = _asset("style.css")
    scripts = [_asset(name) for name in _SCRIPTS]
    index, blocks = timeline_of(document)
    return Template(_asset("page.html")).substitute(
        content_policy=_content_policy(style, scripts),
        title=escape(_title(document)),
        style=style,
        head="\n".join(_head(document)),
        data=_as_script_data(index),
        blocks="\n".join(_block(number, block) for number, block in enumerate(blocks)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _asset(name: str) -> str:
    return files("ci_agent.reports").joinpath("viewer", name).read_text(encoding="utf-8")


def _content_policy(style: str, scripts: Iterable[str]) -> str:
    """Exactly the page's own style and scripts, and pictures that are in it."""
    allowed = " ".join(map(_hash_source, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _as_script_data(value: Json) -> str:
    """JSON that ends no script element and opens no comment, whatever its texts hold (HTML, 13.2.5.17 and after); and
    that is no command to GitHub's runner, when the page goes to a log."""
    text, _ = well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return inert_json(text.replace("<", "\\u003c"))


def _block(number: int, packed: str) -> str:
    return f'<script type="application/octet-stream" id="block-{number}">{packed}</script>'


def _title(document: JsonObject) -> str:
    result = document["result"]
    return f"{result['reason']}, exit code {result['exit_code']}, ci-agent"


# What stands above the timeline


def _head(document: JsonObject) -> Iterator[str]:
    yield from _outcome(document)
    yield from _facts(document)
    yield from _problems(document["tool_calls"], problems_of(document))
    yield from _text("Answer", document["result"]["final_text"])
    yield from _prompt(document)
    yield from _notes(document["notes"])


def _outcome(document: JsonObject) -> Iterator[str]:
    good = document["result"]["exit_code"] == 0
    ending, _, meaning = conclusion(document).partition(": ")
    yield f'<header class="outcome {"good" if good else "bad"}"><h1>{_prose(ending)}</h1>'
    told = why_it_ended(document)
    if told:
        yield f"<p>{escape(told)}</p>"
    yield from (f"<p>⚠️ {escape(caveat)}</p>" for caveat in caveats(document))
    if meaning:
        yield f'<p class="soft">{_prose(f"{meaning[0].upper()}{meaning[1:]}.")}</p>'
    yield from (f'<p class="soft">{_prose(step)}</p>' for step in next_steps(document))
    yield "</header>"


def _prose(text: str) -> str:
    """Words of our own, with what they quote in backticks set as code."""
    return _QUOTED.sub(r"<code>\1</code>", escape(text))


def _facts(document: JsonObject) -> Iterator[str]:
    yield '<dl class="facts">'
    for name, value in _fact_pairs(document):
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
    yield "</dl>"


def _fact_pairs(document: JsonObject) -> Iterator[tuple[str, str]]:
    """Names with values that are HTML already."""
    run, model, policy, calls = document["run"], document["model"], document["policy"], document["tool_calls"]
    yield "Calls", escape(f"{len(calls)} ({counts_of(calls)})" if calls else "none")
    if run is not None and run["duration_s"] is not None:
        yield "Took", f"{run['duration_s']:.1f} s"
    yield "Used", escape(usage_text(document["usage"]))
    if model is not None:
        yield "Model", escape(printable(f"{model['provider']}:{model['model']}"))
    if policy is not None:
        yield "Policy", escape(f"{printable(policy['name'])} ({counted(policy['rules'], 'rule')})")
    if run is None:
        yield "Run", "the beginning of its record is lost"
        return
    yield "Begun", escape(_second(run["started_at"]))
    yield "Workspace", escape(printable(run["workspace"]))
    if run["sandbox"] is not None:
        yield "Sandbox", escape(printable(run["sandbox"]["kind"]))
    if run["ci"] is not None:
        yield "CI", _ci(run["ci"])
    yield "ci-agent", escape(printable(run["version"]))


def _second(timestamp: str) -> str:
    """`2026-01-01 12:00:00 UTC`; the transcript has the fractions."""
    date, _, time = timestamp.removesuffix("Z").partition("T")
    return f"{date} {time.partition('.')[0]} UTC"


def _ci(ci: JsonObject) -> str:
    name = escape(printable(ci["repository"] or ci["provider"]))
    url = ci["run_url"] or ""
    return f'<a href="{escape(url)}" rel="noreferrer">{name}</a>' if url.startswith("https://") else name


def _problems(calls: list[JsonObject], problems: list[JsonObject]) -> Iterator[str]:
    if not problems:
        return
    groups = same_problems(problems)
    yield f"<h2>{counted(len(problems), 'problem')} in {counted(len(calls), 'call')}</h2>"
    yield '<ol class="problems">'
    yield from map(_problem, groups[:_MAX_PROBLEMS])
    yield "</ol>"
    if len(groups) > _MAX_PROBLEMS:
        yield f'<p class="hint">and {len(groups) - _MAX_PROBLEMS:,} more in the timeline</p>'


def _problem(alike: list[JsonObject]) -> str:
    """One of several alike, with a link to the first."""
    call = alike[0]
    what = escape(f"{tool_name(call)} {arguments_of(call)}")
    why = escape(f"{decided_by(call)}: {reason_of(call)}")
    times = f" {len(alike):,} times" if len(alike) > 1 else ""
    return (
        f'<li><span class="status {call["status"]}">{call["status"]}</span> '
        f'<a href="#call-{call["seq"]}"><code>{what}</code></a>{times}<br><span class="soft">{why}</span></li>'
    )


def _text(heading: str, text: str | None) -> Iterator[str]:
    if text is not None:
        yield f'<h2>{heading}</h2>\n<pre tabindex="0">{_paragraphs(text)}</pre>'


def _prompt(document: JsonObject) -> Iterator[str]:
    """What was asked, folded: whoever looks at a result knows it most of the time."""
    first = next((message for message in document["messages"] if message["role"] == "user"), None)
    if first is not None:
        text = _paragraphs(result_text(first))
        yield f'<details><summary>Prompt</summary><pre tabindex="0">{text}</pre></details>'


def _notes(notes: list[JsonObject]) -> Iterator[str]:
    if notes:
        yield "<h2>Notes</h2>"
        lines = "\n".join(escape(printable(f"{note['at']}  {note['about']}: {note['text']}")) for note in notes)
        yield f'<pre tabindex="0">{lines}</pre>'


def _paragraphs(text: str) -> str:
    """Text of several lines, in which nothing is invisible but line ends and tabs, and none begins as a command to
    GitHub's runner does."""
    lines = ("\t".join(escape(printable(piece)) for piece in line.split("\t")) for line in text.split("\n"))
    return "\n".join(lines).replace("::", ":&#58;")
