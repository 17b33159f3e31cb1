"""Requests over real connections, to servers that break every rule: connections, sizes, redirects."""

import gzip
import os
import socket
import threading
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from over_http import KEY, drip, post, refused

from ci_agent.cancellation import CancelToken
from ci_agent.providers.network.http import MAX_ERROR_BYTES, Transport, TransportSettings

if TYPE_CHECKING:
    from tests.conftest import Faults, Step
    from tests.providers.conftest import Client


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
    assert "nobody.test:80" in error.message
    assert error.message.endswith("Name or service not known: is the name of the server right?")


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
    server = faults.serve([faults.head(500, connection="close"), *drip(500, 0.02)])
    transport = Transport(TransportSettings(error_body_s=1.0))
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
