import gzip
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.fetch import create_fetch_tool

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]


@dataclass
class Page:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Site:
    """A web server on loopback, and what it was asked."""

    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    asked_for_never: threading.Event = field(default_factory=threading.Event)
    never: threading.Event = field(default_factory=threading.Event)


class Answering(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.site.requests.append(
            (self.command, self.path, {key.lower(): value for key, value in self.headers.items()})
        )
        if self.path == "/never":
            self.site.asked_for_never.set()
            self.site.never.wait()
            return
        page = self.site.pages.get(self.path, Page(status=404, headers={"Content-Type": "text/plain"}, body=b"no such"))
        self.send_response(page.status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page.body)))
        self.send_header("Set-Cookie", "id=1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_args: Any) -> None:
        """Tests are silent."""


@pytest.fixture
def site() -> Iterator[Site]:
    yield from serve(None)


def serve(context: ssl.SSLContext | None) -> Iterator[Site]:
    class Handler(Answering):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Handler.site = Site(f"{'https' if context else 'http'}://localhost:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Handler.site
    Handler.site.never.set()
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Asked:
    """Permits what a set holds, and remembers what it was asked."""

    permitted: frozenset[str]
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, url: str, address: str) -> bool:
        self.asked.append((url, address))
        return address in self.permitted


def loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.fixture
def fetch() -> Tool:
    return create_fetch_tool(lambda _url, _address: True, resolve=loopback)


def test_text_comes_as_it_is_under_a_line_that_says_what_it_is(site: Site, fetch: Tool, call: Call) -> None:
    site.pages["/a?b=c"] = Page(b'{"x": [1]}\n', headers={"Content-Type": "application/json"})
    assert call(fetch, url=f"{site.url}/a?b=c#d") == ToolResult(
        (TextContent(f'GET {site.url}/a?b=c#d: 200 OK\napplication/json, 11 bytes\n\n{{"x": [1]}}\n'),),
        {
            "status": 200,
            "address": "127.0.0.1",
            "truncated": False,
            "content_type": "application/json",
            "size_bytes": 11,
        },
    )


def test_the_request_carries_nothing_from_the_environment(
    site: Site, fetch: Tool, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine localhost login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    site.pages["/"] = Page(b"x", headers={"Content-Type": "text/plain"})
    call(fetch, url=site.url)
    call(fetch, url=site.url)
    for method, path, headers in site.requests:
        assert (method, path) == ("GET", "/")
        assert headers["host"] == site.url.removeprefix("http://")
        assert set(headers) == {"host", "accept", "accept-encoding", "connection", "user-agent"}


def test_a_page_is_shown_as_text_with_absolute_links(site: Site, fetch: Tool, call: Call, text_of: TextOf) -> None:
    page = '<meta charset="latin1"><h1>Gr\u00fc\u00dfe</h1><a href="/x">there</a>'.encode("latin1")
    site.pages["/p"] = Page(page, headers={"Content-Type": "text/html"})
    assert text_of(call(fetch, url=f"{site.url}/p")).endswith(
        f"text/html, 59 bytes\n\n# Grüße\n\n[there]({site.url}/x)\n"
    )


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        ("text/plain; charset=UTF-8", b"caf\xe9", "caf\ufffd"),
        ("text/plain; charset=zip", "é".encode(), "é"),
        ("text/plain; charset=cp9999", "é".encode(), "é"),
        ("text/plain; charset='utf-16'", "é".encode("utf-16"), "é"),
        ("application/vnd.api+json", b"{}", "{}"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
    ],
)
def test_character_sets_and_types_of_text(
    site: Site, fetch: Tool, call: Call, text_of: TextOf, *, content_type: str, body: bytes, text: str
) -> None:
    site.pages["/"] = Page(body, headers={"Content-Type": content_type})
    assert text_of(call(fetch, url=site.url)).endswith(f"\n\n{text}")


def test_what_is_no_text_is_refused_with_its_type_and_size(site: Site, fetch: Tool, call: Call) -> None:
    site.pages["/"] = Page(b"\x89PNG" * 300, headers={"Content-Type": "image/png"})
    site.pages["/untyped"] = Page(b"\x7fELF\0")
    with pytest.raises(
        ToolError, match=r": 200 OK\nIt is image/png \(1,200 bytes\), not text; fetch shows only text\.$"
    ):
        call(fetch, url=site.url)
    with pytest.raises(ToolError, match=r"It is an ELF program or library without a type, not text"):
        call(fetch, url=f"{site.url}/untyped")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_and_not_followed(
    site: Site, fetch: Tool, call: Call, text_of: TextOf, status: int
) -> None:
    site.pages["/old"] = Page(status=status, headers={"Location": "//other.example/new?a=b"})
    result = call(fetch, url=f"{site.url}/old")
    assert text_of(result).split("\n")[1:] == [
        "It redirects to http://other.example/new?a=b",
        "Nothing was followed: fetch that URL if it is what you need.",
    ]
    assert result.details is not None
    assert result.details["redirect_to"] == "http://other.example/new?a=b"
    assert len(site.requests) == 1


def test_a_redirect_to_nonsense_is_shown_on_one_bounded_line(
    site: Site, fetch: Tool, call: Call, text_of: TextOf
) -> None:
    site.pages["/1"] = Page(status=302, headers={"Location": "http://[" + "x" * 5000})
    site.pages["/2"] = Page(status=302, headers={"Location": "/\x1b[2J"})
    assert len(text_of(call(fetch, url=f"{site.url}/1"))) < 1300
    assert "\x1b" not in text_of(call(fetch, url=f"{site.url}/2"))


def test_an_error_status_is_an_error_with_the_beginning_of_the_answer(site: Site, fetch: Tool, call: Call) -> None:
    site.pages["/broken"] = Page(b"<h1>Oh no</h1>" + b"<p>x" * 5000, status=500, headers={"Content-Type": "text/html"})
    with pytest.raises(ToolError, match=rf"^GET {site.url}/absent: 404 Not Found\nno such$"):
        call(fetch, url=f"{site.url}/absent")
    with pytest.raises(ToolError, match=r": 500 Internal Server Error\n# Oh no\n") as error:
        call(fetch, url=f"{site.url}/broken")
    assert len(str(error.value)) < 2_200


def test_head_shows_the_headers_that_matter(site: Site, fetch: Tool, call: Call, text_of: TextOf) -> None:
    site.pages["/"] = Page(b"abc", headers={"Content-Type": "image/png", "ETag": '"1"', "X-Other": "no"})
    assert text_of(call(fetch, url=site.url, method="HEAD")) == (
        f'HEAD {site.url}: 200 OK\ncontent-type: image/png\ncontent-length: 3\netag: "1"'
    )
    with pytest.raises(ToolError, match=rf"^HEAD {site.url}/absent: 404 Not Found$"):
        call(fetch, url=f"{site.url}/absent", method="HEAD")
    assert [request[0] for request in site.requests] == ["HEAD", "HEAD"]


def test_a_long_answer_is_cut_to_50_kb_and_says_so(site: Site, fetch: Tool, call: Call, text_of: TextOf) -> None:
    site.pages["/long"] = Page(b"line\n" * 20_000, headers={"Content-Type": "text/plain"})
    site.pages["/endless"] = Page(b"x" * 6_000_000, headers={"Content-Type": "text/plain"})
    text = text_of(call(fetch, url=f"{site.url}/long"))
    assert len(text) <= 50_000
    assert text.endswith("line\n\n[The first 10,000 bytes of the text are shown; the rest is left out.]")
    text = text_of(call(fetch, url=f"{site.url}/endless"))
    assert "text/plain, more than 5,242,880 bytes\n" in text
    assert text.endswith("x\n[The first 47,000 bytes of the text are shown; the rest is left out.]")


def test_a_packed_answer_is_unpacked_within_the_limit(site: Site, fetch: Tool, call: Call, text_of: TextOf) -> None:
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    site.pages["/ok"] = Page(gzip.compress(b"hello"), headers=headers)
    site.pages["/bomb"] = Page(gzip.compress(b"\n" * 50_000_000, 1), headers=headers)
    site.pages["/broken"] = Page(b"not gzip", headers=headers)
    site.pages["/brotli"] = Page(b"x", headers={**headers, "Content-Encoding": "br"})
    assert text_of(call(fetch, url=f"{site.url}/ok")).endswith("\n\nhello")
    assert "more than 5,242,880 bytes" in text_of(call(fetch, url=f"{site.url}/bomb"))
    with pytest.raises(ToolError, match=r"^localhost gave no proper answer: Error -3 while decompressing data"):
        call(fetch, url=f"{site.url}/broken")
    with pytest.raises(ToolError, match=r"^the answer is encoded as 'br', which was not asked for"):
        call(fetch, url=f"{site.url}/brotli")


def test_no_address_is_connected_to_that_was_not_permitted(site: Site, call: Call) -> None:
    permits = Asked(frozenset())
    fetch = create_fetch_tool(permits, resolve=lambda _host, _port: ["127.0.0.1", "::1"])
    with pytest.raises(ToolError) as error:
        call(fetch, url=f"{site.url}/a")
    assert str(error.value) == (
        "localhost leads to 127.0.0.1, ::1, and the policy does not let fetch connect there; "
        "a private or local address needs a rule that names it."
    )
    assert permits.asked == [(f"{site.url}/a", "127.0.0.1"), (f"{site.url}/a", "::1")]
    assert site.requests == []


def test_an_address_in_the_url_is_asked_about_too(site: Site, call: Call) -> None:
    url = site.url.replace("localhost", "127.0.0.1")
    permits = Asked(frozenset())
    with pytest.raises(ToolError, match=r"^127\.0\.0\.1 leads to 127\.0\.0\.1, and the policy does not"):
        call(create_fetch_tool(permits), url=url)
    assert permits.asked == [(url, "127.0.0.1")]


def test_the_name_is_resolved_once_and_the_address_that_was_asked_about_is_used(site: Site, call: Call) -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    fetch = create_fetch_tool(Asked(frozenset({"127.0.0.1"})), resolve=lambda _host, _port: answers.pop(0))
    site.pages["/"] = Page(b"x", headers={"Content-Type": "text/plain"})
    call(fetch, url=site.url.replace("localhost", "rebinding.example"))
    assert answers == [["10.0.0.1"]]
    assert site.requests[0][2]["host"].startswith("rebinding.example:")


def test_an_address_that_cannot_be_reached_is_passed_by(site: Site, call: Call, text_of: TextOf) -> None:
    site.pages["/"] = Page(b"x", headers={"Content-Type": "text/plain"})
    fetch = create_fetch_tool(lambda _url, _address: True, resolve=lambda _host, _port: ["::1", "127.0.0.1"])
    assert text_of(call(fetch, url=site.url)).endswith("\n\nx")


def test_a_name_without_an_address_says_so(call: Call) -> None:
    def unknown(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def empty(_host: str, _port: int) -> list[str]:
        return []

    for resolve in (unknown, empty):
        fetch = create_fetch_tool(lambda _url, _address: True, resolve=resolve)
        with pytest.raises(
            ToolError, match=r"^no\.example has no address that can be found \(.*\); check the host name"
        ):
            call(fetch, url="https://no.example/")


def test_a_closed_port_and_a_server_that_is_none_are_errors(fetch: Tool, call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def talk_nonsense() -> None:
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(b"220 smtp ready\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=talk_nonsense)
        thread.start()
        with pytest.raises(ToolError, match=r"^localhost gave no proper answer: "):
            call(fetch, url=f"http://localhost:{port}/")
        thread.join()
    with socket.socket() as held:  # so that nobody else listens there meanwhile
        held.bind(("127.0.0.1", 0))
        with pytest.raises(ToolError, match=r"^localhost gave no proper answer: .*refused"):
            call(fetch, url=f"http://localhost:{held.getsockname()[1]}/")


def test_cancelling_ends_a_request_that_waits_for_its_answer(site: Site, fetch: Tool, call: Call) -> None:
    cancel = CancelToken()

    def cancel_when_asked() -> None:
        site.asked_for_never.wait()
        cancel.cancel("enough")

    thread = threading.Thread(target=cancel_when_asked, daemon=True)
    thread.start()
    with pytest.raises(Cancelled):
        call(fetch, cancel, url=f"{site.url}/never")
    thread.join()


def test_cancelling_does_not_wait_for_the_resolver(call: Call) -> None:
    cancel = CancelToken()
    released = threading.Event()

    def slow(_host: str, _port: int) -> list[str]:
        cancel.cancel("enough")
        released.wait()
        return []

    with pytest.raises(Cancelled):
        call(create_fetch_tool(lambda _url, _address: True, resolve=slow), cancel, url="https://slow.example/")
    released.set()


MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=site.example -addext subjectAltName=DNS:site.example"
)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    path = tmp_path / "certificate.pem"
    subprocess.run(
        [*MAKE_CERTIFICATE.split(), "-keyout", path, "-out", path],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return path


@pytest.fixture
def secure_site(certificate: Path) -> Iterator[Site]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    yield from serve(context)


def test_over_https_the_certificate_must_be_the_hosts(
    secure_site: Site, certificate: Path, call: Call, text_of: TextOf
) -> None:
    secure_site.pages["/"] = Page(b"safe", headers={"Content-Type": "text/plain"})
    context = ssl.create_default_context(cafile=str(certificate))
    fetch = create_fetch_tool(lambda _url, _address: True, resolve=loopback, ssl_context=context)
    url = secure_site.url.replace("localhost", "site.example")
    assert text_of(call(fetch, url=url)).endswith("\n\nsafe")
    with pytest.raises(ToolError, match=r"^other\.example gave no proper answer: .*Hostname mismatch"):
        call(fetch, url=url.replace("site.example", "other.example"))
    with pytest.raises(ToolError, match=r"^site\.example gave no proper answer: .*certificate verify failed"):
        call(create_fetch_tool(lambda _url, _address: True, resolve=loopback), url=url)


def test_httpx_is_loaded_on_use_only() -> None:
    code = (
        "import sys; import ci_agent.tools.fetch; from ci_agent.tools.fetch import create_fetch_tool;"
        "create_fetch_tool(lambda url, address: True); print('httpx' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert found.stdout == "False\n"
