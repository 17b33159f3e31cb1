"""The one place that knows httpx: requests to models, with every limit that a hostile or broken server calls for.

TLS is always verified. Nothing is read from the process environment or the home folder: no proxy, no netrc.
"""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import certifi
import httpx

from ci_agent import __version__
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ConfigurationError
from ci_agent.providers.network.exchange import Connected, End, Exchange, Head, PhaseLimits, Piece
from ci_agent.providers.network.held_sockets import HeldSockets
from ci_agent.providers.network.inflation import inflated
from ci_agent.providers.network.web_origin import origin_of, proxy_for
from ci_agent.providers.wire.failures import ApiError

MAX_ERROR_BYTES = 64 * 1024
_MAX_REDIRECTS = 3
_NO_PROXY = "give it as http://HOST:PORT"
_NO_TLS = re.compile("WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL")
"""What OpenSSL makes of an answer that is no TLS."""
_NO_SUCH_HOST = re.compile("Name or service not known|nodename nor servname|No address associated", re.IGNORECASE)
_REFUSED_BY_PROXY = re.compile(r"4[0-9]{2}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where proxies and certificates are looked up: `HTTPS_PROXY` and its like, `SSL_CERT_FILE`, `SSL_CERT_DIR`."""
    ca_file: Path | None = None
    """Certificates to trust in place of the usual ones."""
    limits: PhaseLimits = field(default_factory=PhaseLimits)
    max_body_bytes: int = 64 << 20
    max_decompression_ratio: int = 100
    error_body_s: float = 5.0
    """How long the body of an error is waited for: its status says nearly all."""


class Response(Protocol):
    status: int
    headers: Mapping[str, str]
    """Names in small letters."""

    def chunks(self) -> Iterator[bytes]:
        """The body, decompressed. Raises ApiError when it breaks off, stalls or is too large; Cancelled."""

    def read_error(self) -> bytes:
        """As much of the body as an error needs."""


class Transport:
    """Connections of one run, kept for the next request. ConfigurationError for certificates that cannot be read."""

    def __init__(self, settings: TransportSettings) -> None:
        self._settings = settings
        self._clients: dict[tuple[str, str, int], _Client] = {}
        self._abandoned: list[_Client] = []
        self._tls: ssl.SSLContext | None = None
        if settings.ca_file is not None and not settings.ca_file.is_file():
            raise ConfigurationError(f"the file of certificates {str(settings.ca_file)!r} does not exist")

    def prepare(self, url: str) -> None:
        """Get ready for a server, without a word to it; ConfigurationError when its proxy or its certificates fail."""
        self._client(url)

    @contextmanager
    def post(self, url: str, headers: Mapping[str, str], body: bytes, cancel: CancelToken) -> Iterator[Response]:
        """Send and give the response, whatever its status. Raises ApiError, Cancelled.

        A redirect is followed only within the same server and as the same request; to another nothing is ever sent.
        """
        for _ in range(1 + _MAX_REDIRECTS):
            cancel.raise_if_cancelled()
            with self._exchange(url, headers, body, cancel) as response:
                if not 300 <= response.status < 400:
                    yield response
                    return
                url = _redirected(url, response)
        raise ApiError("malformed", f"the server redirects more than {_MAX_REDIRECTS} times", retryable=False)

    def close(self) -> None:
        """Let all connections go."""
        for client in (*self._clients.values(), *self._abandoned):
            client.close()
        self._clients.clear()
        self._abandoned.clear()

    def _client(self, url: str) -> "_Client":
        origin = origin_of(url)
        if origin not in self._clients:
            proxy = proxy_for(url, self._settings.environment)
            needs_tls = origin[0] == "https" or _is_tls_proxy(proxy)
            tls = self._trusted() if needs_tls else _trusting_nobody()
            self._clients[origin] = _Client(url, proxy, tls, self._settings)
        return self._clients[origin]

    def _trusted(self) -> ssl.SSLContext:
        """Made once, and only when it is needed: reading all certificates takes a while."""
        self._tls = self._tls or _tls_context(self._settings)
        return self._tls

    @contextmanager
    def _exchange(
        self, url: str, headers: Mapping[str, str], body: bytes, cancel: CancelToken
    ) -> Iterator["_Response"]:
        origin = origin_of(url)
        client = self._client(url)
        own = {
            "user-agent": f"ci-agent/{__version__}",
            "accept-encoding": "identity",
            "content-type": "application/json",
        }

        def abandon() -> None:
            self._clients.pop(origin, None)
            self._abandoned.append(client)
            client.abandon()

        def work(put: Callable[[Piece], None]) -> None:
            client.send(url, own | dict(headers), body, put)

        exchange = Exchange(work, abandon, self._settings.limits, cancel)
        try:
            yield _Response(exchange, exchange.head(), self._settings)
        finally:
            exchange.close()


class _Response:
    def __init__(self, exchange: Exchange, head: Head, settings: TransportSettings) -> None:
        self.status = head.status
        self.headers = head.headers
        self._exchange = exchange
        self._settings = settings

    def chunks(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._decoded():
            size += len(chunk)
            if size > self._settings.max_body_bytes:
                limit = self._settings.max_body_bytes
                raise ApiError("malformed", f"the answer is larger than {limit} bytes", retryable=False)
            yield chunk

    def read_error(self) -> bytes:
        body = b""
        self._exchange.hurry(self._settings.error_body_s)
        with suppress(ApiError):  # what there is of it is enough to tell
            for chunk in self.chunks():
                body += chunk
                if len(body) >= MAX_ERROR_BYTES:
                    break
        return body[:MAX_ERROR_BYTES]

    def _decoded(self) -> Iterator[bytes]:
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding in ("", "identity"):
            return self._exchange.chunks()
        if encoding in ("gzip", "x-gzip", "deflate"):
            return inflated(self._exchange.chunks(), self._settings.max_decompression_ratio)
        raise ApiError(
            "malformed", f"the answer is compressed as {encoding!r}, which was not asked for", retryable=False
        )


class _Client:
    """An httpx client for one server."""

    def __init__(self, url: str, proxy: str | None, tls: ssl.SSLContext, settings: TransportSettings) -> None:
        self._sockets = HeldSockets()
        self._max_bytes = settings.max_body_bytes
        try:
            self._client = httpx.Client(
                verify=tls,
                proxy=None if proxy is None else httpx.Proxy(proxy, ssl_context=tls if _is_tls_proxy(proxy) else None),
                trust_env=False,
                follow_redirects=False,
                # Whoever waits has time limits for each phase and breaks the connection when one is over.
                timeout=httpx.Timeout(None, connect=settings.limits.connect_s),
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            problem = "it needs a package that is not installed" if isinstance(error, ImportError) else _NO_PROXY
            raise ConfigurationError(f"the proxy for {_host(url)} cannot be used: {problem}") from None

    def send(self, url: str, headers: Mapping[str, str], body: bytes, put: Callable[[Piece], None]) -> None:
        """Put every piece of the response, and at last its end or what went wrong."""

        def trace(event: str, info: Mapping[str, Any]) -> None:
            self._sockets.trace(event, info)
            if event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
                put(Connected())

        try:
            request = self._client.stream("POST", url, headers=headers, content=body, extensions={"trace": trace})
            with request as response:
                self._pass_on(response, put)
        except httpx.TimeoutException:
            put(ApiError("timeout", f"connecting to {_host(url)} took too long", retryable=True))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, RuntimeError, ValueError) as error:
            # RuntimeError: the client was closed under it, because nobody waits any more.
            put(_failure(url, error))
        finally:
            self._sockets.end_request()
            if self._sockets.is_broken:
                self.close()
            put(End())

    def _pass_on(self, response: httpx.Response, put: Callable[[Piece], None]) -> None:
        put(Head(response.status_code, dict(response.headers)))
        size = 0
        for chunk in response.iter_raw():
            put(chunk)
            size += len(chunk)
            if size > self._max_bytes:  # whoever reads finds out; until then nothing more is piled up
                break

    def abandon(self) -> None:
        """Break all connections, so that a thread that reads from one wakes up."""
        self._sockets.break_all()

    def close(self) -> None:
        self._client.close()


def _is_tls_proxy(proxy: str | None) -> bool:
    return (proxy or "").partition(":")[0].lower() == "https"


def _trusting_nobody() -> ssl.SSLContext:
    """For who does not need TLS; should that be wrong, nothing is sent."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _tls_context(settings: TransportSettings) -> ssl.SSLContext:
    try:
        if settings.ca_file is not None:
            return ssl.create_default_context(cafile=settings.ca_file)
        file, folder = settings.environment.get("SSL_CERT_FILE"), settings.environment.get("SSL_CERT_DIR")
        if file or folder:
            return ssl.create_default_context(cafile=file or None, capath=folder or None)
        context = ssl.create_default_context()
        context.load_verify_locations(cafile=certifi.where())
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"the certificates to trust cannot be read: {error}") from error
    return context


def _redirected(url: str, response: _Response) -> str:
    target = response.headers.get("location", "")
    try:
        new = str(httpx.URL(url).join(target))
        origin_of(new)
    except (httpx.InvalidURL, ValueError):
        new = ""
    if response.status not in (307, 308) or not target or origin_of(new) != origin_of(url):
        where = _host(new) if new else "nowhere"
        raise ApiError(
            "malformed",
            f"the server redirects (HTTP {response.status}) to {where}; the request was not sent there: is the base "
            "URL right?",
            retryable=False,
            status=response.status,
        )
    return new


def _host(url: str) -> str:
    _, host, port = origin_of(url)
    return f"{host}:{port}"


def _failure(url: str, error: Exception) -> ApiError:
    problem = f"the connection to {_host(url)} failed: {_cause(error)}"
    if "CERTIFICATE_VERIFY_FAILED" in problem:
        advice = "its certificate is not trusted; if it is your own, give it with --ca-file"
        return ApiError("connection", f"{problem}: {advice}", retryable=False)
    if isinstance(error, httpx.ProxyError) and _REFUSED_BY_PROXY.match(str(error)):
        return ApiError("connection", f"{problem}: the proxy does not let it through", retryable=False)
    if _NO_TLS.search(problem):
        advice = "does the server speak TLS? One that does not is asked by http://"
        return ApiError("connection", f"{problem}: {advice}", retryable=False)
    if _NO_SUCH_HOST.search(problem):
        problem = f"{problem}: is the name of the server right?"
    return ApiError("connection", problem, retryable=True, nobody_listens="Connection refused" in problem)


def _cause(error: Exception) -> str:
    """In words that hold nothing of the request: what is wrong with a header is told together with the header."""
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ProxyError | OSError) and str(error):
        return str(error).splitlines()[0][:200]
    return type(error).__name__
