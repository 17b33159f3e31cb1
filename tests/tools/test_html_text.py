import time

import pytest

from ci_agent.tools.html_text import html_to_text


def text_of(page: str, max_chars: int = 100_000) -> str:
    return html_to_text(page, "https://example.org/dir/page", max_chars)


def test_a_page_becomes_text_that_reads_well() -> None:
    page = """<!DOCTYPE html><html><head><title>The &amp; page</title><style>p {}</style>
    <script>if (a<b) { "</p>" }</script></head><body><!-- no <p>comment</p> --><h1>Head<br>line</h1>
    <p>Some   <b>bold</b> text,
    5 &lt; 6 and a < b.</p><ul><li>one</li>
      <li> two <i>2</i></li></ul><table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
    </body></html>"""
    assert text_of(page) == (
        "The & page\n\n# Head\nline\n\nSome bold text, 5 < 6 and a < b.\n\n- one\n- two 2\n\n| A | B\n| 1 | 2\n"
    )


def test_preformatted_text_keeps_its_blanks() -> None:
    assert text_of("<p>x</p><pre><code>def f():\n    # y\n    return  1 &lt; 2\n</code></pre>z") == (
        "x\n\ndef f():\n    # y\n    return  1 < 2\n\nz\n"
    )


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<a href="https://other.org/x?a=1&amp;b=2">link</a>', "[link](https://other.org/x?a=1&b=2)\n"),
        ("<a class=x href='../up'>link</a>", "[link](https://example.org/up)\n"),
        ("<A HREF=/top>link</A>", "[link](https://example.org/top)\n"),
        ('<a href="#here">link</a>', "link\n"),
        ('<a href="javascript:alert(1)">link</a>', "link\n"),
        ('<a href="mailto:a@b.c">link</a>', "link\n"),
        ('<a href="http://[broken/">link</a>', "link\n"),
        ("<a name=x>no link</a>", "no link\n"),
        ('<a href="/one">one<a href="/two">two</a>', "[one](https://example.org/one)[two](https://example.org/two)\n"),
    ],
)
def test_links_are_kept_with_where_they_lead(page: str, text: str) -> None:
    assert text_of(page) == text


def test_markup_that_is_broken_still_gives_text() -> None:
    assert text_of("<p>one<p>two</div></b><unknown>three<script>never closed") == "one\n\ntwo\n\nthreenever closed\n"
    assert text_of("") == "\n"


def test_the_text_ends_soon_after_the_limit() -> None:
    assert len(text_of("<p>word</p>" * 100_000, max_chars=1000)) < 1010


@pytest.mark.parametrize(
    "piece", ["<a href='", "<p>", "&", "&#x", "<pre> ", "\n", " ", "<", "</", "<!--", "<script>", "<a "]
)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    started = time.process_time()
    text_of(piece * (500_000 // len(piece)))
    assert time.process_time() - started < 10
