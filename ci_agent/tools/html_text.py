"""A web page as text that reads well: no markup, links kept, in linear time whatever the page is."""

import html
import re
from collections.abc import Iterator
from urllib.parse import urljoin

import re2

_UNSEEN_ELEMENTS = ("script", "style", "noscript", "template", "svg", "iframe")

_BREAKS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "\n\n# "),
    **dict.fromkeys(("p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "form"), "\n\n"),
    **dict.fromkeys(("ul", "ol", "dl", "table", "pre", "blockquote", "figure", "title", "body"), "\n\n"),
    **dict.fromkeys(("br", "tr", "dt", "dd", "option"), "\n"),
    **dict.fromkeys(("td", "th"), " | "),
    "li": "\n- ",
    "hr": "\n---\n",
}
"""What stands in the text where an element begins."""

_NO_BREAK_AT_END = {"br", "hr", "td", "th", "li", "tr", "dt", "dd", "option"}

# Possessive, so that a page of unclosed tags is scanned once and not once per character.
_TAG = re.compile(r"<(?:(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*+)(?P<attributes>[^<>]*+)|[!?/][^<>]*+)>")
_HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


def html_to_text(page: str, base_url: str, max_chars: int) -> str:
    """The text of a page; headings marked by #, list items by -, links as `[text](absolute URL)`.

    Ends soon after `max_chars`; a caller that shows less must say what it cuts.
    """
    pieces: list[str] = []
    length = 0
    for piece, preformatted in _pieces(_without_unseen(page), base_url):
        text = piece if preformatted else re.sub(r"[^\S\n]+", " ", piece)
        if not preformatted and (not pieces or pieces[-1].endswith(("\n", " "))):
            text = text.lstrip(" ")
        if text:
            pieces.append(text)
        length += len(text)
        if length > max_chars:
            break
    lines = "\n".join(line.rstrip() for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip("\n") + "\n"


def _without_unseen(page: str) -> str:
    """RE2, because an element that is never closed must not cost a scan to the end for each of its beginnings."""
    options = re2.Options()
    options.dot_nl = True
    options.case_sensitive = False
    options.log_errors = False
    data = page.encode("utf-8", "replace")
    data = re2.compile(rb"<!--.*?-->", options).sub(b"", data)
    for name in _UNSEEN_ELEMENTS:
        data = re2.compile(rb"<%b\b[^<>]*>.*?</%b\s*>" % (name.encode(), name.encode()), options).sub(b"", data)
    return str(data, "utf-8", "replace")


def _pieces(page: str, base_url: str) -> Iterator[tuple[str, bool]]:
    """The text and what stands for the tags, each with whether its blanks and line ends count."""
    position = 0
    link: str | None = None
    preformatted = False
    for tag in _TAG.finditer(page):
        yield _text(page[position : tag.start()], preformatted), preformatted
        position = tag.end()
        name, is_end = (tag["name"] or "").lower(), bool(tag["end"])
        if name == "pre":
            preformatted = not is_end
        if name == "a":
            yield (f"]({link})" if link else ""), True
            link = None if is_end else _target(tag["attributes"], base_url)
            yield ("[" if link else ""), True
        elif not is_end or name not in _NO_BREAK_AT_END:
            mark = _BREAKS.get(name, "")
            yield ("\n\n" if is_end and mark else mark), "\n" in mark
    yield _text(page[position:], preformatted), preformatted


def _text(source: str, preformatted: bool) -> str:
    text = html.unescape(source)
    return text if preformatted else text.replace("\n", " ")


def _target(attributes: str, base_url: str) -> str | None:
    """Where a link leads, absolute; None for what is no place to fetch from."""
    found = _HREF.search(attributes)
    if found is None:
        return None
    href = html.unescape(found[1] or found[2] or found[3] or "").strip()
    if not href or href.startswith("#"):
        return None
    try:
        target = urljoin(base_url, href)
    except ValueError:
        return None
    return target if target.lower().startswith(("http://", "https://")) else None
