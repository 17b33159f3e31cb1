"""One request to one address that was checked before: nothing is resolved again, nothing is followed.

Imports httpx, which takes a while; import this module when a request is to be made.
"""

import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

import httpx

from ci_agent import __version__
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.web_url import WebUrl
from ci_agent.urls import Address

MAX_BODY_BYTES = 5 << 20

CONNECT_TIMEOUT_S = 5.0
SILENCE_TIMEOUT_S = 15.0
"""Between two pieces of the answer."""

_HEADERS = {
    "User-Agent": f"ci-agent/{__version__}",
    "Accept": "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}

_Trace: TypeAlias = Callable[[str, Mapping[str, Any]], None]


class UnreachableError(ToolError):
    """No connection came about; another address of the host may do."""


@dataclass(frozen=True, slots=True)
class WebResponse:
    status: int
    headers: Mapping[str, str]
    """By name in any case."""
    raw_body: Iterator[bytes]
    """As it arrives; `read_body` reads it."""

    @property
    def status_line(self) -> str:
        """`404 Not Found`, in the words of the standard: what the server wrote there is not kept."""
        known = {status.value: status.phrase for status in HTTPStatus}
        return f"{self.status} {known.get(self.status, '')}".strip()


@contextmanager
def open_response(
    url: WebUrl, address: Address, method: str, ssl_context: ssl.SSLContext | None, cancel: CancelToken
) -> Iterator[WebResponse]:
    """Ask the server at an address for a URL; the body can be read inside. ToolError when there is no proper answer.

    Over https the certificate must be the host's, whatever the address; `ssl_context` None: the usual authorities.
    No proxy, no cookie, nothing from the environment.
    """
    verify = url.scheme == "https" and (ssl_context or True)
    with (
        _ending_on_cancel(cancel) as trace,
        _errors_explained(url, cancel),
        # The transport alone: a client would look for redirects, cookies and .netrc.
        httpx.HTTPTransport(verify=verify, trust_env=False) as transport,
    ):
        response = transport.handle_request(_request(url, address, method, trace))
        try:
            yield WebResponse(response.status_code, response.headers, response.iter_raw())
        finally:
            response.close()


def read_body(response: WebResponse, max_bytes: int, cancel: CancelToken) -> tuple[bytes, bool]:
    """At most so much of the body, unpacked, and whether there was more. An archive bomb is not unpacked further."""
    encoding = response.headers.get("content-encoding", "identity").lower().strip()
    if encoding not in {"identity", "", "gzip", "x-gzip"}:
        raise ToolError(f"the answer is encoded as {encoding[:40]!r}, which was not asked for and is not unpacked.")
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS) if encoding.endswith("gzip") else None
    pieces: list[bytes] = []
    room = max_bytes + 1
    for chunk in response.raw_body:
        cancel.raise_if_cancelled()
        piece = unpacker.decompress(chunk, room) if unpacker else chunk[:room]
        pieces.append(piece)
        room -= len(piece)
        if room == 0:
            break
    body = b"".join(pieces)
    return body[:max_bytes], len(body) > max_bytes


def _request(url: WebUrl, address: Address, method: str, trace: _Trace) -> httpx.Request:
    timeout = httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    return httpx.Request(
        method,
        httpx.URL(scheme=url.scheme, host=str(address), port=url.port, raw_path=url.target.encode("ascii")),
        headers={"Host": url.host_header, **_HEADERS},
        extensions={"sni_hostname": url.host, "timeout": timeout.as_dict(), "trace": trace},
    )


@contextmanager
def _ending_on_cancel(cancel: CancelToken) -> Iterator[_Trace]:
    """A trace for httpcore that learns of each connection; cancellation ends whatever waits for one."""
    connections: list[socket.socket] = []

    def end() -> None:
        for connection in connections:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not TLS's own, which would wait for an answer

    def trace(event: str, info: Mapping[str, Any]) -> None:
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            connections.append(info["return_value"].get_extra_info("socket"))
            if cancel.is_cancelled:
                end()

    leave = cancel.on_cancel(end)
    try:
        yield trace
    finally:
        leave()


@contextmanager
def _errors_explained(url: WebUrl, cancel: CancelToken) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, zlib.error) as error:
        cancel.raise_if_cancelled()
        kind = UnreachableError if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else ToolError
        raise kind(f"{url.host} gave no proper answer: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    match error:
        case httpx.ConnectTimeout():
            return f"no connection within {CONNECT_TIMEOUT_S:g} s"
        case httpx.TimeoutException():
            return f"silence for {SILENCE_TIMEOUT_S:g} s"
        case _:
            return str(error)[:500] or type(error).__name__
