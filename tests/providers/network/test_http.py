"""Requests over real connections, to servers and proxies that break every rule."""

import gzip
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ConfigurationError
from ci_agent.providers.network.exchange import PhaseLimits
from ci_agent.providers.network.http import MAX_ERROR_BYTES, Transport, TransportSettings
from ci_agent.providers.wire.failures import ApiError

if TYPE_CHECKING:
    from tests.conftest import Faults, Step
    from tests.providers.conftest import Client

KEY = {"authorization": "Bearer sk-0123456789"}


def limits(*, connect: float = 5, first_byte: float = 5, idle: float = 5, whole: float = 20) -> PhaseLimits:
    return PhaseLimits(connect, first_byte, idle, whole)


PATIENT = limits(connect=60, first_byte=60, idle=60, whole=60)
AT_ONCE_S = 15
"""On a machine that is busy with other things; a minute is what it takes to leave for any other reason."""


def post(transport: Transport, url: str, cancel: CancelToken | None = None) -> bytes:
    with transport.post(f"{url}/v1/x", KEY, b"{}", cancel or CancelToken()) as response:
        return b"".join(response.chunks())


def refused(transport: Transport, url: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        post(transport, url)
    assert "0123456789" not in repr(caught.value)
    return caught.value


def test_the_answer_comes_whole_with_its_head(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(418, "tea", X_Kind="pot"))
    with client.transport().post(f"{server.url}/a?b=c", KEY, b'{"d":1}', CancelToken()) as response:
        assert (response.status, response.headers["x-kind"], response.read_error()) == (418, "pot", b"tea")
    assert (server.requests[0].target, server.requests[0].body) == ("/a?b=c", b'{"d":1}')


# Connections


def test_connections_are_used_again(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200, "one"))
    transport = client.transport()
    assert [post(transport, server.url) for _ in range(3)] == [b"one"] * 3
    assert server.connections == 1


def test_a_connection_is_used_again_though_its_last_bytes_were_not_asked_for(
    faults: "Faults", client: "Client"
) -> None:
    server = faults.serve(faults.answer())
    stream = client.stream(server.url)
    assert [client.ask(stream).text for _ in range(2)] == ["Hello."] * 2
    assert server.connections == 1


def test_a_connection_that_the_server_closed_while_idle_does_no_harm(faults: "Faults", client: "Client") -> None:
    server = faults.serve([*faults.answer("One."), "close"], faults.answer("Two."))
    stream = client.stream(server.url)
    assert [client.ask(stream).text for _ in range(2)] == ["One.", "Two."]
    assert server.connections == 2


def test_nobody_there_is_a_failure_that_may_pass(client: "Client") -> None:
    with socket.socket() as held:  # so that nobody else listens there meanwhile
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        error = refused(client.transport(), f"http://127.0.0.1:{port}")
    assert (error.kind, error.retryable) == ("connection", True)
    assert error.message.startswith(f"the connection to 127.0.0.1:{port} failed: ")
    assert "refused" in error.message


def test_a_name_that_nobody_knows_is_a_failure(client: "Client") -> None:
    error = refused(client.transport(), "http://no-such-host.invalid")
    assert (error.kind, error.retryable) == ("connection", True)
    assert "no-such-host.invalid:80" in error.message


@pytest.mark.parametrize("end", ["reset", "close"])
@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-le", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"]
)
def test_a_connection_that_breaks_is_a_failure_that_may_pass(
    faults: "Faults", client: "Client", sent: bytes, end: "Step"
) -> None:
    server = faults.serve([sent, end])
    error = refused(client.transport(), server.url)
    assert (error.kind, error.retryable) == ("connection", True)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\x00\xff" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_failure(faults: "Faults", client: "Client", answer: bytes) -> None:
    server = faults.serve([answer, "close"])
    error = refused(client.transport(), server.url)
    assert (error.kind, len(error.message) < 500) == ("connection", True)


def test_a_server_without_tls_is_not_asked_again_and_what_to_do_is_said(client: "Client") -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection = server.accept()[0]
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            connection.close()

        answering = threading.Thread(target=answer)
        answering.start()
        error = refused(client.transport(), f"https://127.0.0.1:{server.getsockname()[1]}")
        answering.join()
    assert (error.kind, error.retryable) == ("connection", False)
    assert error.message.endswith(": does the server speak TLS? One that does not is asked by http://")


def test_a_name_that_nobody_knows_is_asked_about(client: "Client", monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = refused(client.transport(), "http://nobody.test")
    assert (error.kind, error.retryable, error.nobody_listens) == ("connection", True, False)
    assert error.message.endswith("Name or service not known: is the name of the server right?")


# Time


def _drip(count: int, pause_s: float) -> "list[Step]":
    return [step for _ in range(count) for step in (b"a", pause_s)]


def test_a_server_that_never_answers_is_left(faults: "Faults", client: "Client") -> None:
    server = faults.serve(["hang"])
    error = refused(client.transport(limits(first_byte=0.1)), server.url)
    assert error.message == "the server did not answer for 0.1 s"
    assert (error.kind, error.retryable) == ("timeout", True)


def test_a_head_that_drips_is_left(faults: "Faults", client: "Client") -> None:
    drip: list[Step] = [piece for _ in range(200) for piece in (b"HTTP/1.1 200 OK\r\n"[:1], 0.02)]
    server = faults.serve([b"HTTP/1.1 200 OK\r\nx: ", *drip])
    assert refused(client.transport(limits(first_byte=0.2)), server.url).kind == "timeout"


def test_a_handshake_that_never_ends_is_left(client: "Client") -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = refused(client.transport(limits(connect=0.2)), f"https://127.0.0.1:{silent.getsockname()[1]}")
    assert (error.kind, error.retryable) == ("timeout", True)
    assert "connecting" in error.message


def test_a_head_without_a_body_is_left(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="5"), "hang"])
    error = refused(client.transport(limits(first_byte=0.1)), server.url)
    assert error.message == "the server said nothing for 0.1 s after it had taken the request"


def test_silence_in_the_middle_is_left(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="5"), b"a", "hang"])
    error = refused(client.transport(limits(idle=0.1)), server.url)
    assert error.message == "the server said nothing for 0.1 s in the middle of its answer"


def test_any_byte_ends_the_silence(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="8"), *_drip(8, 0.05)])
    assert post(client.transport(limits(idle=0.3)), server.url) == b"a" * 8


def test_an_answer_that_drips_for_ever_is_left(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="999"), *_drip(500, 0.02)])
    error = refused(client.transport(limits(idle=5, whole=0.3)), server.url)
    assert error.message == "the request took longer than 0.3 s"


# Size and compression

TEXT = os.urandom(200_000).hex().encode()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("identity", bytes),
        ("", bytes),
    ],
)
def test_compression_that_nobody_asked_for_is_undone(
    faults: "Faults", client: "Client", encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    server = faults.serve(faults.reply(200, pack(TEXT), content_encoding=encoding))
    assert post(client.transport(), server.url) == TEXT


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 65_636, 131_072, 200_000])
def test_the_last_bytes_of_what_was_compressed_are_not_kept_back(faults: "Faults", client: "Client", size: int) -> None:
    server = faults.serve(faults.reply(200, gzip.compress(b"a" * size), content_encoding="gzip"))
    assert post(client.transport(), server.url) == b"a" * size


def test_a_bomb_is_not_unpacked(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200, gzip.compress(bytes(50 << 20)), content_encoding="gzip"))
    error = refused(client.transport(), server.url)
    assert (error.message, error.retryable) == ("the answer unpacks to far more than was sent", False)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_other_compression_is_refused(faults: "Faults", client: "Client", encoding: str) -> None:
    server = faults.serve(faults.reply(200, "xyz", content_encoding=encoding))
    error = refused(client.transport(), server.url)
    assert error.message == f"the answer is compressed as {encoding!r}, which was not asked for"


def test_broken_compression_may_pass(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200, b"no gzip at all", content_encoding="gzip"))
    assert refused(client.transport(), server.url).retryable is True


def test_an_answer_that_is_too_large_is_refused(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.stream(*([b"x" * 1000] * 100)))
    error = refused(client.transport(max_body_bytes=10_000), server.url)
    assert (error.message, error.retryable) == ("the answer is larger than 10000 bytes", False)


def test_an_endless_answer_is_not_piled_up(faults: "Faults", client: "Client") -> None:
    """Nobody reads it, so nobody can find it too large; the server finds the connection closed all the same."""
    server = faults.serve(faults.stream(*([b"x" * 100_000] * 1000)))
    transport = client.transport(max_body_bytes=1_000_000)
    with transport.post(server.url, KEY, b"", CancelToken()):
        assert server.is_left()


def test_of_an_error_only_its_beginning_is_read(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(500, connection="close"), b"x" * (2 * MAX_ERROR_BYTES), "hang"])
    with client.transport().post(server.url, KEY, b"", CancelToken()) as response:
        assert response.read_error() == b"x" * MAX_ERROR_BYTES


def test_of_an_error_that_is_cut_what_came_is_read(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(500, content_length="99"), b"so far", "reset"])
    with client.transport().post(server.url, KEY, b"", CancelToken()) as response:
        assert response.read_error() in (b"so far", b"")


def test_of_an_error_that_does_not_end_what_came_in_time_is_read(faults: "Faults") -> None:
    server = faults.serve([faults.head(500, connection="close"), *_drip(500, 0.02)])
    transport = Transport(TransportSettings(error_body_s=0.2))
    with transport.post(server.url, KEY, b"", CancelToken()) as response:
        body = response.read_error()
    assert 0 < len(body) < 100
    assert server.is_left()
    transport.close()


# Redirects


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_nothing_is_sent_to_another_server(faults: "Faults", client: "Client", status: int) -> None:
    other = faults.serve(faults.reply(200))
    server = faults.serve(faults.reply(status, location=f"{other.url}/v1/x"))
    error = refused(client.transport(), server.url)
    assert f"(HTTP {status}) to 127.0.0.1:{other.port}; the request was not sent there" in error.message
    assert (error.retryable, other.connections, len(server.requests)) == (False, 0, 1)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/v2/x", "../v2/x", "{url}/v2/x"])
def test_another_place_on_the_same_server_gets_the_same_request(
    faults: "Faults", client: "Client", status: int, location: str
) -> None:
    answers = [faults.reply(200, "there")]
    server = faults.serve([lambda: None], *answers)
    server.answers = [faults.reply(status, "moved", location=location.format(url=server.url)), *answers]
    assert post(client.transport(), server.url) == b"there"
    assert [request.target for request in server.requests] == ["/v1/x", "/v2/x"]
    assert server.requests[1].headers == server.requests[0].headers
    assert (server.requests[1].method, server.requests[1].body) == ("POST", b"{}")


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_change_the_request_is_refused(faults: "Faults", client: "Client", status: int) -> None:
    server = faults.serve(faults.reply(status, location="/v2/x"))
    assert refused(client.transport(), server.url).retryable is False
    assert len(server.requests) == 1


def test_redirects_come_to_an_end(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(307, location="/v1/x"))
    error = refused(client.transport(), server.url)
    assert (error.message, error.retryable) == ("the server redirects more than 3 times", False)
    assert len(server.requests) == 4
    there = faults.serve(*[faults.reply(308, location="/v1/x")] * 3, faults.reply(200, "there"))
    assert post(client.transport(), there.url) == b"there"


@pytest.mark.parametrize(
    "location",
    ["", "http://[::1", "http://x:99999/", "http://x:y/", "//", "mailto:x", "http://\xff"],
)
def test_a_redirect_to_no_address_is_refused(faults: "Faults", client: "Client", location: str) -> None:
    server = faults.serve(faults.reply(307, location=location))
    error = refused(client.transport(), server.url)
    assert error.kind in {"malformed", "connection"}  # what is no URL at all, httpx calls a broken protocol
    assert {request.target for request in server.requests} == {"/v1/x"}


# Certificates


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody else has signed, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl program to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return made, key


@pytest.fixture
def tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(
    faults: "Faults", client: "Client", tls: ssl.SSLContext
) -> None:
    server = faults.serve(faults.answer(), tls=tls)
    outcome = client.ask(client.stream(server.url))
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.error
    assert "give it with --ca-file" in outcome.error
    assert (server.requests, outcome.message.error_retryable, outcome.notices) == ([], False, [])


@pytest.mark.parametrize("scheme", ["HTTPS", "Https", " https", "\x0bhttps"])
def test_no_spelling_of_an_address_goes_around_certificates(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, scheme: str
) -> None:
    server = faults.serve(faults.answer(), tls=tls)
    error = refused(client.transport(), f"{scheme}://127.0.0.1:{server.port}")
    assert (error.kind, server.requests) == ("connection", [])


def test_a_certificate_is_trusted_that_the_person_gives(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, certificate: tuple[Path, Path]
) -> None:
    server = faults.serve(faults.reply(200, "safe"), tls=tls)
    assert post(client.transport(ca_file=certificate[0]), server.url) == b"safe"
    assert post(client.transport(environment={"SSL_CERT_FILE": str(certificate[0])}), server.url) == b"safe"


def test_a_silent_server_behind_tls_is_left_and_its_connection_closed(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, certificate: tuple[Path, Path]
) -> None:
    server = faults.serve(["hang"], tls=tls)
    error = refused(client.transport(limits(first_byte=0.2), ca_file=certificate[0]), server.url)
    assert error.kind == "timeout"
    assert server.is_left()


def test_certificates_that_cannot_be_read_are_told_before_anything_is_sent(client: "Client", tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        client.transport(ca_file=tmp_path / "missing.pem")
    (tmp_path / "broken.pem").write_text("no certificate")
    with pytest.raises(ConfigurationError, match="the certificates to trust cannot be read"):
        client.transport(ca_file=tmp_path / "broken.pem").prepare("https://model.test")
    with pytest.raises(ConfigurationError, match="the certificates to trust cannot be read"):
        client.transport(environment={"SSL_CERT_FILE": str(tmp_path / "missing.pem")}).prepare("https://model.test")


# Proxies


def test_a_proxy_gets_the_whole_address(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(faults.reply(200, "through"))
    transport = client.transport(environment={"http_proxy": proxy.url.replace("//", "//user:word@")})
    assert post(transport, "http://model.test:81") == b"through"
    assert proxy.requests[0].target == "http://model.test:81/v1/x"
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_key(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(faults.reply(403, "no"))
    transport = client.transport(environment={"HTTPS_PROXY": proxy.url.replace("//", "//user:word@")})
    error = refused(transport, "https://model.test")
    assert (error.kind, error.retryable) == ("connection", False)
    problem = "the connection to model.test:443 failed: 403 Said so: the proxy does not let it through"
    assert error.message == problem
    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", "model.test:443")
    assert "authorization" not in request.headers
    assert "0123456789" not in repr(request)


def test_a_proxy_that_fails_may_succeed_later(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(faults.reply(503, "no"))
    error = refused(client.transport(environment={"https_proxy": proxy.url}), "https://model.test")
    assert (error.kind, error.retryable) == ("connection", True)


def test_a_proxy_that_opens_no_tunnel_is_left_while_connecting(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(["hang"])
    transport = client.transport(limits(connect=0.2), environment={"https_proxy": proxy.url})
    error = refused(transport, "https://model.test")
    assert error.message == "connecting took longer than 0.2 s"
    assert proxy.is_left()


def test_a_proxy_behind_tls_has_to_show_a_certificate_that_is_trusted(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, certificate: tuple[Path, Path]
) -> None:
    proxy = faults.serve(faults.reply(200, "through"), tls=tls)
    environment = {"http_proxy": proxy.url}
    assert (
        "CERTIFICATE_VERIFY_FAILED" in refused(client.transport(environment=environment), "http://model.test").message
    )
    assert proxy.requests == []
    assert post(client.transport(environment=environment, ca_file=certificate[0]), "http://model.test") == b"through"


def test_this_machine_is_reached_without_a_proxy(faults: "Faults", client: "Client") -> None:
    proxy, server = faults.serve(faults.reply(500)), faults.serve(faults.reply(200, "direct"))
    environment = {"http_proxy": proxy.url, "all_proxy": proxy.url, "HTTP_PROXY": proxy.url}
    assert post(client.transport(environment=environment), server.url) == b"direct"
    assert proxy.connections == 0


def test_a_proxy_in_the_process_environment_is_not_used(
    faults: "Faults", client: "Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = faults.serve(faults.reply(200))
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("ALL_PROXY", proxy.url)
    assert refused(client.transport(), "http://no-such-host.invalid").kind == "connection"
    assert proxy.connections == 0


@pytest.mark.parametrize("proxy", ["gopher://user:word@p:1", "socks5://user:word@p:1", "http://user:word@p:x"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(client: "Client", proxy: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the proxy for model\.test:443 cannot be used") as caught:
        client.transport(environment={"https_proxy": proxy}).prepare("https://model.test")
    assert "word" not in str(caught.value)


# Leaving


PHASES: "dict[str, Callable[[Faults, Step], list[Step]]]" = {
    "before the head": lambda _, cancel: [cancel, "hang"],
    "in the head": lambda _, cancel: [b"HTTP/1.1 200 O", cancel, "hang"],
    "before the body": lambda f, cancel: [f.head(200, content_length="9"), cancel, "hang"],
    "in the body": lambda f, cancel: [f.head(200, content_length="9"), b"abc", cancel, "hang"],
    "while it drips": lambda f, cancel: [f.head(200, content_length="99"), b"a", cancel, *_drip(90, 0.05)],
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("tries", range(3))
def test_cancelled_by_another_thread_it_leaves_at_once(
    faults: "Faults", client: "Client", phase: str, tries: int
) -> None:
    token = CancelToken()
    times: list[float] = []

    def cancel() -> None:
        times.append(time.monotonic())
        token.cancel("enough")

    server = faults.serve(PHASES[phase](faults, cancel))
    with pytest.raises(Cancelled, match="enough"):
        post(client.transport(PATIENT), server.url, token)
    assert time.monotonic() - times[0] < AT_ONCE_S
    assert server.is_left()


@pytest.mark.parametrize("phase", PHASES)
def test_cancelled_by_a_signal_in_its_own_thread_it_leaves_at_once(
    faults: "Faults", client: "Client", phase: str
) -> None:
    token = CancelToken()
    before = signal.signal(signal.SIGUSR1, lambda *_: token.cancel("signal"))
    server = faults.serve(PHASES[phase](faults, lambda: os.kill(os.getpid(), signal.SIGUSR1)))
    start = time.monotonic()
    try:
        with pytest.raises(Cancelled, match="signal"):
            post(client.transport(PATIENT), server.url, token)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - start < AT_ONCE_S
    assert server.is_left()


def test_cancelled_while_connecting_it_leaves_at_once(client: "Client") -> None:
    token = CancelToken()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(1)  # the beginning of a handshake that nobody answers
                token.cancel("enough")
                while sock.recv(1000):
                    pass

        threading.Thread(target=accept, daemon=True).start()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            post(client.transport(PATIENT), f"https://127.0.0.1:{listener.getsockname()[1]}", token)
        assert time.monotonic() - start < AT_ONCE_S
        for thread in request_threads():
            thread.join(2)
        assert request_threads() == []


@pytest.fixture
def slow_names(faults: "Faults", monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, threading.Event, CancelToken]]:
    """An address whose name is found only after the event; looking it up cancels the token. No real name does that."""
    server = faults.serve(faults.answer())
    known, token, look_up = threading.Event(), CancelToken(), socket.getaddrinfo

    def wait_and_look_up(host: str, *more: Any, **named: Any) -> Any:
        if host != "slow.test":
            return look_up(host, *more, **named)
        token.cancel("enough")
        known.wait(60)
        return look_up("127.0.0.1", *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", wait_and_look_up)
    yield f"http://slow.test:{server.port}", known, token
    known.set()


def test_cancelled_while_a_name_is_looked_up_it_leaves_at_once_and_sends_nothing_later(
    faults: "Faults", client: "Client", slow_names: tuple[str, threading.Event, CancelToken]
) -> None:
    url, known, token = slow_names
    start = time.monotonic()
    with pytest.raises(Cancelled, match="enough"):
        post(client.transport(PATIENT), url, token)
    assert time.monotonic() - start < AT_ONCE_S
    thread = request_threads()[-1]
    known.set()
    thread.join(5)
    assert not thread.is_alive()
    assert faults.servers[0].is_left()
    assert faults.servers[0].requests == []


def test_a_name_that_is_not_found_in_time_is_left(
    client: "Client", slow_names: tuple[str, threading.Event, CancelToken]
) -> None:
    error = refused(client.transport(limits(connect=0.2)), slow_names[0])
    assert (error.kind, error.message) == ("timeout", "connecting took longer than 0.2 s")


def test_what_was_cancelled_before_is_not_sent(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200))
    token = CancelToken()
    token.cancel("before")
    with pytest.raises(Cancelled):
        post(client.transport(), server.url, token)
    assert server.connections == 0


def test_after_a_failure_another_request_gets_a_new_connection(faults: "Faults", client: "Client") -> None:
    server = faults.serve(["hang"], faults.reply(200, "back"))
    transport = client.transport(limits(first_byte=0.2))
    assert refused(transport, server.url).kind == "timeout"
    assert post(transport, server.url) == b"back"
    assert server.connections == 2


def request_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "model request"]


def test_closing_leaves_no_connection_and_no_thread(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200), ["hang"], [faults.head(200), b"x", "hang"], faults.reply(200))
    transport = client.transport(limits(first_byte=0.1, idle=0.1))
    for request in (post, refused, refused, post):
        request(transport, server.url)
    transport.close()
    assert server.is_left()
    for thread in request_threads():
        thread.join(5)
    assert request_threads() == []
