"""The job summary: the answer first, evidence collapsed, never too long, and nothing said by others has an effect."""

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

from ci_agent.reports.markdown import MAX_SUMMARY_BYTES, render_markdown

Hostile = Callable[[int, int], Iterator[str]]

ALLOWED_TAGS = {"p", "b", "code", "table", "tr", "th", "td", "details", "summary"}


def test_the_whole_summary_of_a_denied_run(records: Any) -> None:
    push = records.decision(
        "deny",
        "default",
        "Blocked: no policy rule allows running `git push`",
        nearest={"rule_id": "inspect", "source": "policy.yml:4", "stopped_at": "`push` is not `status`"},
    )
    no_env = records.decision("deny", "rule", "Blocked by policy rule no-env: it is secret", "no-env", "policy.yml:7")
    calls = [
        records.call(1, "read", {"path": ".env"}, "denied", "", decision=no_env),
        records.call(2, "bash", {"command": "git push"}, "denied", "", decision=push),
        records.call(3, "read", {"path": ".env"}, "denied", "", decision=no_env),
        records.call(
            4, "bash", {"command": "make"}, "error", "cc a.c\na.c:1: oops\nexit status 2", details={"exit_status": 2}
        ),
        records.call(5, "ls", {"path": "."}, "ok", "src"),
    ]
    ending = records.result("denied", 5) | {"final_text": "See ```` there."}
    took = "took 12.3 s"
    no_env_place = f"{code('no-env')} {code('policy.yml&#58;7')}"
    nearest = f"default {code('nearest&#58; policy.yml&#58;4')}"
    no_push = "=no policy rule allows running &#96;git push&#96;"
    assert render_markdown(records.transcript(calls, result=ending)) == (
        f"""\
## ❌ ci-agent: denied, exit code 5

`--fail-on-denied` applies, or a rule with `on_denied: fail` or `stop` matched.

<p><b>Why:</b> 3 of 5 calls were denied</p>

### What to do next

If a denied call is wanted, ask `ci-agent policy explain`: it says why, and shows the smallest rule for it.

Rules for what no rule allows: `ci-agent policy suggest --policy review TRANSCRIPT`.

Why they were denied:

```sh
ci-agent policy explain --policy review --tool read --args '{{"path": ".env"}}'
ci-agent policy explain --policy review --tool bash --args '{{"command": "git push"}}'
```

### Denied and failed calls (3 denied, 1 error)

<table>
<tr><th>call</th><th>status</th><th>what</th><th>why</th><th>rule</th></tr>
{row("&#35;1, &#35;3", "denied", f"{code('read')} {code('.env')}", "=it is secret", no_env_place)}
{row("&#35;2", "denied", f"{code('bash')} {code('git push')}", no_push, nearest)}
{row("&#35;4", "error", f"{code('bash')} {code('make')}", "=exit status 2&#58; a.c&#58;1&#58; oops", "execute")}
</table>

### Answer

`````text
See ```` there.
`````

### Usage

1,200 tokens in, 30 out; cost unknown

<p>model <code>scripted&#58;demo.yaml</code> · policy <code>review</code> (12 rules) · run {code("run-1")}, {took}</p>

<details><summary>What failed calls printed</summary>

<p>&#35;4 <code>bash</code> <code>make</code></p>

```text
cc a.c
a.c:1: oops
exit status 2
```

</details>

<details><summary>All calls (3 denied, 1 error, 1 ok)</summary>

```text
denied     #1  turn 1  read  .env      by no-env (policy.yml:7): it is secret
denied     #2  turn 1  bash  git push  (default, nearest rule policy.yml:4): no policy rule allows running `git push`
denied     #3  turn 2  read  .env      by no-env (policy.yml:7): it is secret
error      #4  turn 2  bash  make      execute: exit status 2: a.c:1: oops
ok         #5  turn 3  ls    .         3 bytes, 0.2 s
```

</details>
"""
    )


_SAID = "="


def row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{code(cell[1:]) if cell[:1] == _SAID else cell}</td>' for cell in cells)}</tr>"


def code(text: str) -> str:
    return f"<code>{text}</code>"


def test_a_good_run_without_calls_is_short(records: Any) -> None:
    assert render_markdown(records.transcript([])).split("\n\n")[:3] == [
        "## ✅ ci-agent: completed, exit code 0",
        "### Answer",
        "```text\nAll is well.\nReally.\n```",
    ]


def test_a_killed_run_says_so_and_that_its_record_may_lack_calls(records: Any) -> None:
    ending = records.result("unknown", None, "the run did not come to its end")
    document = records.transcript([], result=ending, run=None, model=None, policy=None)
    assert render_markdown(document).split("\n\n")[:4] == [
        "## ⚠️ ci-agent: unknown, no exit code",
        "The run was killed, or its record was cut off.",
        "<p><b>Why:</b> <code>the run did not come to its end</code></p>",
        "<p>⚠️ <code>This was made of the run&#39;s journal; calls after the last may be missing.</code></p>",
    ]


@pytest.mark.parametrize("piece", ["`", "\U0001f600", "<|>", "\u202e", "\ud800", "line\n"], ids=ascii)
def test_five_megabytes_in_every_place_fit_and_what_is_missing_is_said(piece: str, records: Any) -> None:
    huge = piece * (5_000_000 // len(piece))
    no = records.decision("deny", "rule", huge, huge, huge)
    calls = [records.call(1, huge, {"path": huge}, "denied", huge, decision=no)]
    calls += [records.call(2, "bash", {"command": huge}, "error", huge, details={"exit_status": 1})]
    document = records.transcript([]) | {"tool_calls": calls, "notes": [{"at": "now", "about": huge, "text": huge}]}
    document["result"] |= {"final_text": huge, "error": huge}
    document["run"] |= {"id": huge}
    summary = render_markdown(document)
    assert len(summary.encode()) < MAX_SUMMARY_BYTES
    assert f"it has {len(huge):,} characters, and the transcript holds all of them." in summary
    assert fences_are_closed(summary)


def test_five_thousand_different_problems_fit(records: Any) -> None:
    shape = "|" * 300
    calls = [
        records.call(n, f"t{n}" + shape, {"path": shape}, "error", f"{shape}\n" * 50, decision=None)
        for n in range(1, 5_001)
    ]
    document = records.transcript([]) | {"tool_calls": calls, "notes": [{"at": "", "about": "x", "text": shape}] * 500}
    document["result"]["final_text"] = "`\n" * 500_000
    summary = render_markdown(document)
    assert len(summary.encode()) < MAX_SUMMARY_BYTES
    assert "4950 more calls of this kind" in summary
    assert re.search(r"\n\d+ more calls: see the transcript\.\n\n</details>\n$", summary)
    assert fences_are_closed(summary)


def fences_are_closed(summary: str) -> bool:
    return "</details>" in outside_of_fences(summary)[-1]


def outside_of_fences(summary: str) -> list[str]:
    """The lines that Markdown reads as such: a fence ends only where a run of backticks is as long as its own."""
    lines, fence = [], ""
    for line in summary.rstrip("\n").split("\n"):
        mark = re.match("`{3,}", line)
        if not fence and mark:
            fence = mark[0]
        elif fence and line.strip() and not line.strip().strip("`") and len(line.strip()) >= len(fence):
            fence = ""
        elif not fence:
            lines.append(line)
    assert not fence
    return lines


class Page(HTMLParser):
    """What a browser would make of the blocks of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.others: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)


def test_attack_hostile_text_stays_behind_fences_and_in_code(records: Any, hostile_texts: Hostile) -> None:
    for document in records.hostile(hostile_texts(900, 1)):
        lines = outside_of_fences(render_markdown(document))
        page = Page()
        page.feed("\n".join(lines))
        page.close()
        assert page.tags <= ALLOWED_TAGS, lines
        assert (page.attributes, page.others) == ([], []), lines
        ours = re.sub("<code>.*?</code>", "", "\n".join(lines))
        assert not re.search(r"@octocat|\[x\]|example\.com|javascript|alert|octocat|::", ours), ours
        assert not re.search(
            r"[`*\[\]@|\\]|(?<!&)#", re.sub("</?code>", "", "".join(re.findall("<code>.*?</code>", "".join(lines))))
        )
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", "".join(lines))


def test_a_known_cost_is_shown(records: Any) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 0, "cache_write_tokens": 0, "cost_usd": 0.5}
    assert "\n1 tokens in, 2 out; 0.5000 USD\n" in render_markdown(records.transcript([], usage=usage))


@pytest.mark.parametrize(("code", "headings"), [(0, ["Answer", "What to do next"]), (5, ["What to do next", "Answer"])])
def test_what_to_do_next_comes_first_only_when_the_run_failed(code: int, headings: list[str], records: Any) -> None:
    denied = records.call(1, "ls", {}, "denied", "no", decision=records.decision("deny", "default", "no"))
    result = records.result("completed" if code == 0 else "denied", code) | {"final_text": "Done."}
    report = render_markdown(records.transcript([denied], result=result))
    found = re.findall(r"^### (Answer|What to do next)$", report, re.MULTILINE)
    assert found == headings
