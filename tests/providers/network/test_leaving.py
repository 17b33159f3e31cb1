"""Requests that are left: cancelled, closed, timed out."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from over_http import AT_ONCE_S, PATIENT, drip, limits, post, refused

from ci_agent.cancellation import Cancelled, CancelToken

if TYPE_CHECKING:
    from tests.conftest import Faults, Step
    from tests.providers.conftest import Client


PHASES: "dict[str, Callable[[Faults, Step], list[Step]]]" = {
    "before the head": lambda _, cancel: [cancel, "hang"],
    "in the head": lambda _, cancel: [b"HTTP/1.1 200 O", cancel, "hang"],
    "before the body": lambda f, cancel: [f.head(200, content_length="9"), cancel, "hang"],
    "in the body": lambda f, cancel: [f.head(200, content_length="9"), b"abc", cancel, "hang"],
    "while it drips": lambda f, cancel: [f.head(200, content_length="99"), b"a", cancel, *drip(90, 0.05)],
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
            thread.join(AT_ONCE_S)
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
    thread.join(AT_ONCE_S)
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
    transport = client.transport(limits(first_byte=1.5))
    assert refused(transport, server.url).kind == "timeout"
    assert post(transport, server.url) == b"back"
    assert server.connections == 2


def request_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "model request"]


def test_closing_leaves_no_connection_and_no_thread(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200), ["hang"], [faults.head(200), b"x", "hang"], faults.reply(200))
    transport = client.transport(limits(first_byte=1.0, idle=1.0))
    for request in (post, refused, refused, post):
        request(transport, server.url)
    transport.close()
    assert server.is_left()
    for thread in request_threads():
        thread.join(AT_ONCE_S)
    assert request_threads() == []
