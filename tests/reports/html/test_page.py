"""The page as text: it holds everything, refers to nothing, and allows the browser exactly its own scripts."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from typing import Any

import pytest

from ci_agent.json_types import Json, JsonObject
from ci_agent.reports.html import render_html


class Scripts(HTMLParser):
    """Collects the elements of a page with the text in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        kind, attributes = self.tags[-1] if self.tags else ("", {})
        if kind in ("script", "style") and data.strip():
            self.texts.append((str(attributes.get("type", kind)), data))


def hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def content_policy(page: str) -> str:
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found is not None
    return found[1]


def details_in(page: str) -> list[JsonObject]:
    blocks = [text for kind, text in Scripts(page).texts if kind == "application/octet-stream"]
    return [item for block in blocks for item in json.loads(zlib.decompress(base64.b64decode(block)))]


def test_the_browser_may_run_the_scripts_of_the_page_and_nothing_else(records: Any) -> None:
    page = render_html(records.transcript([]))
    texts = Scripts(page).texts
    scripts = " ".join(hash_source(text) for kind, text in texts if kind == "script")
    style = next(hash_source(text) for kind, text in texts if kind == "style")
    assert content_policy(page) == (
        f"default-src 'none'; script-src {scripts}; style-src {style}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def test_what_our_own_words_quote_is_code(records: Any) -> None:
    page = render_html(records.transcript([], result=records.result("denied", 5)))
    assert "<h1>denied, exit code 5</h1>" in page
    assert '<p class="soft"><code>--fail-on-denied</code> applies, or a rule with' in page
    assert "ask <code>ci-agent policy explain</code>: it says why" in page


def test_the_page_refers_to_nothing_outside(records: Any) -> None:
    page = render_html(records.transcript([records.call(1, "ls", {}, "denied", "no")]))
    referring = [(tag, at) for tag, at in Scripts(page).tags if {"src", "href", "action", "srcset", "data"} & at.keys()]
    assert referring == [("a", {"href": "#call-1"})]
    assert "@import" not in page
    assert "url(" not in page


def test_hostile_text_opens_no_element_and_no_attribute(records: Any, hostile: str) -> None:
    plain = records.transcript([records.call(1, "ls", {"path": "x"}, "error", "x")])
    bad = records.transcript(
        [records.call(1, hostile, {hostile: hostile}, "error", hostile, id=hostile)],
        result=records.result("internal_error", 70, hostile) | {"final_text": hostile},
        notes=[{"at": records.WHEN, "about": hostile, "text": hostile}],
    )
    bad["policy"] |= {"name": hostile}
    bad["run"] |= {"workspace": hostile, "version": hostile}
    expected = {tag for tag, _ in Scripts(render_html(plain)).tags}
    page = Scripts(render_html(bad))
    assert {tag for tag, _ in page.tags} == expected | {"p"}
    assert [at for tag, at in page.tags if tag == "script" and at] == [
        {"type": "application/json", "id": "run"},
        {"type": "application/octet-stream", "id": "block-0"},
    ]
    assert not [at for _, at in page.tags if any(name.startswith("on") for name in at)]


def test_the_details_hold_what_the_record_says_of_a_call(records: Any, hostile: str) -> None:
    denied = records.decision("deny", "rule", "no", "no-push", "policy.yml:7")
    call = records.call(1, "bash", {"command": hostile}, "denied", hostile, decision=denied, details={"a": 1})
    turn, details = details_in(render_html(records.transcript([call])))
    assert details == {
        "id": "call_1",
        "arguments": {"command": hostile},
        "decision": denied,
        "stage": "execute",
        "content": [{"type": "text", "text": hostile}],
        "details": {"a": 1},
        "started_at": records.WHEN,
        "output_bytes": len(hostile),
        "truncated": False,
        "explain": None,
    }
    assert turn == {
        "parts": [],
        "model": "scripted:demo.yaml",
        "stop_reason": "tool_use",
        "error_message": None,
        "usage": "1,200 tokens in, 30 out; cost unknown",
        "timestamp": records.WHEN,
    }


def index_in(page: str) -> Json:
    return next(json.loads(text) for kind, text in Scripts(page).texts if kind == "application/json")


def test_times_are_seconds_since_the_run_began_and_never_before_it(records: Any) -> None:
    late, early = "2026-01-01T12:00:02.500Z", "2026-01-01T11:59:00.000Z"
    calls = [
        records.call(1, "ls", {}, "ok", "", started_at=late),
        records.call(2, "ls", {}, "ok", "", started_at=early),
    ]
    calls.append(records.call(3, "ls", {}, "cancelled", "", started_at=None, duration_s=None, stage="cancelled"))
    index: Any = index_in(render_html(records.transcript(calls)))
    assert [(call["start_s"], call["duration_s"]) for turn in index["turns"] for call in turn["calls"]] == [
        (2.5, 0.25),
        (0.0, 0.25),
        (None, None),
    ]
    assert index["duration_s"] == 12.34


def test_a_record_without_its_beginning_is_shown_as_far_as_it_goes(records: Any) -> None:
    document = records.transcript(
        [records.call(5, "bash", {"command": "make"}, "unknown", "nobody knows", duration_s=None)],
        result=records.result("unknown", None, "the run did not come to its end"),
        run=None,
        model=None,
        policy=None,
        messages=[],
    )
    page = render_html(document)
    index: Any = index_in(page)
    assert "the beginning of its record is lost" in page
    assert [(turn["number"], turn["summary"]) for turn in index["turns"]] == [(3, "not on record")]
    assert index["turns"][0]["calls"][0]["start_s"] == 0.0


@pytest.mark.parametrize(
    ("url", "links"),
    [("https://ci.example/1", ["https://ci.example/1"]), ("javascript:alert(1)", []), (None, []), ("http://x", [])],
)
def test_the_run_of_the_ci_system_is_linked_if_it_is_an_https_address(
    records: Any, url: str | None, links: Any
) -> None:
    document = records.transcript([])
    document["run"]["ci"] = {"provider": "github", "repository": "acme/site", "run_url": url}
    page = Scripts(render_html(document))
    assert [at["href"] for tag, at in page.tags if tag == "a"] == links


def test_a_thousand_problems_alike_are_one_line(records: Any) -> None:
    calls = [records.call(seq, "ls", {"path": "x"}, "error", "no such folder") for seq in range(1, 1001)]
    page = render_html(records.transcript(calls))
    assert page.count('<li><span class="status error">') == 1
    assert '<a href="#call-1"><code>ls x</code></a> 1,000 times' in page


def test_what_makes_the_record_doubtful_stands_above_the_facts(records: Any) -> None:
    document = records.transcript([])
    document["integrity"] |= {"problems": ["line 3: <cut>"]}
    document["result"]["exit_code"] = 1
    head, _, _ = render_html(document).partition('<dl class="facts">')
    assert "<p>⚠️ It was changed after it was written: what it says need not be what happened.</p>" in head
    assert "<p>⚠️ The journal was damaged: line 3: &lt;cut&gt;</p>" in head


def test_blanks_of_a_reason_are_kept_and_numbers_have_room(records: Any) -> None:
    page = render_html(records.transcript([records.call(1, "edit", {}, "error", "no such text: '    if b:'")]))
    assert "no such text: &#x27;    if b:&#x27;</span></li>" in page
    assert ".problems .soft { white-space: pre-wrap; }" in page
