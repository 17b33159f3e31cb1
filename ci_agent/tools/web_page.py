"""What a model gets to see of an answer from the web: text within limits, or an error that says why there is none."""

import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import urljoin

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.terminal import printable, shortened
from ci_agent.tool import ToolResult
from ci_agent.tools.define import text_result
from ci_agent.tools.file_kinds import describe_binary
from ci_agent.tools.html_text import html_to_text
from ci_agent.tools.text_stream import HEAD_BYTES, detect_encoding
from ci_agent.tools.truncate import MAX_BYTES, MAX_LINES, count_of, keep_head
from ci_agent.tools.web_request import MAX_BODY_BYTES, UnreachableError, WebResponse, open_response, read_body
from ci_agent.tools.web_url import WebUrl
from ci_agent.urls import Address

_MAX_TEXT_BYTES = MAX_BYTES - 3_000
"""What the headers and the notes leave for the text."""

_MAX_ERROR_BYTES = 2_000
_MAX_HEADER_CHARS = 1_000
_SHOWN_HEADERS = ("content-type", "content-length", "last-modified", "etag")

_HTML_TYPES = {"text/html", "application/xhtml+xml"}
_TEXT_TYPE = re.compile(
    r"text/.*|application/(?:json|xml|javascript|ecmascript|yaml|x-yaml|toml|x-toml|x-ndjson|sql|x-sh|graphql)"
    r"|(?:application|image|model)/.*\+(?:json|xml|yaml)"
)

_CHARSET = re.compile(
    r"utf-?8|utf-?16(?:-?[lb]e)?|(?:us-)?ascii|latin-?1|iso-?8859-?\d{1,2}|(?:windows|cp)-?\d{3,4}|koi8-[ru]"
    r"|shift[-_]jis|euc-(?:jp|kr)|gb2312|gbk|gb18030|big5"
)
"""Python knows codecs by name that are no character sets."""

_META_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_-]{1,40})", re.IGNORECASE)


def fetch_page(
    url: WebUrl, addresses: Sequence[Address], method: str, ssl_context: ssl.SSLContext | None, cancel: CancelToken
) -> ToolResult:
    """Ask the first of the addresses that can be reached; ToolError for a failure, and for a status from 400 on."""
    unreachable = ToolError(f"{url.host} has no address.")
    for address in addresses:
        try:
            with open_response(url, address, method, ssl_context, cancel) as response:
                return _result(url, address, method, response, cancel)
        except UnreachableError as error:
            unreachable = error
    raise unreachable


def _result(url: WebUrl, address: Address, method: str, response: WebResponse, cancel: CancelToken) -> ToolResult:
    heading = f"{method} {shortened(url.text, _MAX_HEADER_CHARS)}: {response.status_line}"
    details: JsonObject = {"status": response.status, "address": str(address), "truncated": False}
    location = response.headers.get("location")
    if 300 <= response.status < 400 and location is not None:
        target = shortened(printable(_absolute(url, location)), _MAX_HEADER_CHARS)
        text = f"{heading}\nIt redirects to {target}\nNothing was followed: fetch that URL if it is what you need."
        return text_result(text, details | {"redirect_to": target})
    if response.status >= 400:
        raise ToolError(f"{heading}{_error_text(url, method, response, cancel)}")
    if method == "HEAD":
        return text_result("\n".join([heading, *_shown_headers(response)]), details)
    return _page(url, heading, details, response, cancel)


def _absolute(url: WebUrl, location: str) -> str:
    try:
        return urljoin(url.text, location)
    except ValueError:
        return location


def _shown_headers(response: WebResponse) -> Iterator[str]:
    for name in _SHOWN_HEADERS:
        if name in response.headers:
            yield f"{name}: {shortened(printable(response.headers[name]), _MAX_HEADER_CHARS)}"


def _error_text(url: WebUrl, method: str, response: WebResponse, cancel: CancelToken) -> str:
    if method == "HEAD" or not _is_text(response):
        return ""
    body, _ = read_body(response, MAX_BODY_BYTES, cancel)
    text = keep_head(_readable(url, response, body).encode(), _MAX_ERROR_BYTES, MAX_LINES).decode()
    return f"\n{text}" if text.strip() else ""


def _page(url: WebUrl, heading: str, details: JsonObject, response: WebResponse, cancel: CancelToken) -> ToolResult:
    if not _is_text(response):
        raise ToolError(f"{heading}\nIt is {_kind(response)}, not text; fetch shows only text.")
    body, is_cut = read_body(response, MAX_BODY_BYTES, cancel)
    if not _media_type(response) and detect_encoding(body[:HEAD_BYTES]) is None:
        raise ToolError(f"{heading}\nIt is {describe_binary(body)} without a type, not text; fetch shows only text.")
    text = _readable(url, response, body).encode()
    shown = keep_head(text, _MAX_TEXT_BYTES, MAX_LINES)
    details |= {"content_type": _media_type(response), "size_bytes": len(body), "truncated": is_cut or shown != text}
    size = f"more than {MAX_BODY_BYTES:,} bytes" if is_cut else count_of(len(body), "byte")
    lines = [heading, f"{_media_type(response) or 'no type'}, {size}", "", shown.decode()]
    if details["truncated"]:
        lines.append(f"[The first {count_of(len(shown), 'byte')} of the text are shown; the rest is left out.]")
    return text_result("\n".join(lines), details)


def _media_type(response: WebResponse) -> str:
    value = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return shortened(printable(value), 100)


def _is_text(response: WebResponse) -> bool:
    media_type = _media_type(response)
    return media_type == "" or _TEXT_TYPE.fullmatch(media_type) is not None or media_type in _HTML_TYPES


def _kind(response: WebResponse) -> str:
    length = response.headers.get("content-length", "")
    size = f" ({count_of(int(length), 'byte')})" if re.fullmatch("[0-9]{1,15}", length) else ""
    return f"{_media_type(response)}{size}"


def _readable(url: WebUrl, response: WebResponse, body: bytes) -> str:
    is_html = _media_type(response) in _HTML_TYPES
    text = _decode(body, _charset(response, body, is_html))
    return html_to_text(text, url.text, max_chars=2 * MAX_BYTES) if is_html else text


def _charset(response: WebResponse, body: bytes, is_html: bool) -> str:
    declared = re.search(r"charset\s*=\s*[\"']?([^\s\"';,]{1,40})", response.headers.get("content-type", ""))
    meta = _META_CHARSET.search(body[:1_024]) if is_html and not declared else None
    return declared[1] if declared else meta[1].decode("ascii") if meta else "utf-8"


def _decode(body: bytes, charset: str) -> str:
    if _CHARSET.fullmatch(charset.lower()):
        with suppress(LookupError):
            return body.decode(charset, "replace")
    return body.decode("utf-8", "replace")
