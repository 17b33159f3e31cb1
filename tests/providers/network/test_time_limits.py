"""Servers that are silent, or drip."""

import socket
from typing import TYPE_CHECKING

from over_http import drip, limits, post, refused

if TYPE_CHECKING:
    from tests.conftest import Faults, Step
    from tests.providers.conftest import Client


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
    error = refused(client.transport(limits(first_byte=1.5)), server.url)
    assert error.message == "the server said nothing for 1.5 s after it had taken the request"


def test_silence_in_the_middle_is_left(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="5"), b"a", "hang"])
    error = refused(client.transport(limits(idle=0.1)), server.url)
    assert error.message == "the server said nothing for 0.1 s in the middle of its answer"


def test_any_byte_ends_the_silence(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="8"), *drip(8, 0.25)])
    assert post(client.transport(limits(idle=1.5)), server.url) == b"a" * 8


def test_an_answer_that_drips_for_ever_is_left(faults: "Faults", client: "Client") -> None:
    server = faults.serve([faults.head(200, content_length="999"), *drip(500, 0.02)])
    error = refused(client.transport(limits(idle=5, whole=0.3)), server.url)
    assert error.message == "the request took longer than 0.3 s"
