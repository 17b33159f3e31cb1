"""Waiting for the pieces of a response that another thread reads."""

import threading
import time
from collections.abc import Callable

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.providers.network import exchange
from ci_agent.providers.network.exchange import Connected, End, Exchange, Head, PhaseLimits, Piece
from ci_agent.providers.wire.failures import ApiError

QUICK = PhaseLimits(connect_s=0.1, first_byte_s=0.1, idle_s=0.1, whole_s=5)
HEAD = Head(200, {})


class Reading:
    """An exchange whose pieces are put from a list, and that counts how often it was given up."""

    def __init__(self, *pieces: Piece, limits: PhaseLimits = QUICK, cancel: CancelToken | None = None) -> None:
        self.abandoned = 0
        self.put: Callable[[Piece], None] = lambda _: None
        self.began = threading.Event()

        def work(put: Callable[[Piece], None]) -> None:
            self.put = put
            for piece in pieces:
                put(piece)
            self.began.set()

        self.exchange = Exchange(work, self.abandon, limits, cancel or CancelToken())
        assert self.began.wait(5)

    def abandon(self) -> None:
        self.abandoned += 1


def test_pieces_come_in_order_and_a_finished_exchange_is_not_given_up() -> None:
    reading = Reading(Connected(), HEAD, b"a", b"", b"b", End())
    assert reading.exchange.head() == HEAD
    assert list(reading.exchange.chunks()) == [b"a", b"", b"b"]
    reading.exchange.close()
    assert reading.abandoned == 0


def test_the_last_pieces_are_waited_for_so_that_the_connection_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_LINGER_S", 20.0)  # which a busy machine does not exceed
    reading = Reading(Connected(), HEAD, b"a")
    assert (reading.exchange.head(), next(reading.exchange.chunks())) == (HEAD, b"a")
    threading.Thread(target=lambda: [reading.put(b"rest"), reading.put(End())]).start()
    reading.exchange.close()
    assert reading.abandoned == 0


def test_an_exchange_that_is_left_before_its_end_is_given_up() -> None:
    reading = Reading(Connected(), HEAD, b"a")
    reading.exchange.head()
    reading.exchange.close()
    assert reading.abandoned == 1


@pytest.mark.parametrize(
    ("pieces", "complaint"),
    [
        ((), "connecting took longer than 0.1 s"),
        ((Connected(),), "the server did not answer for 0.1 s"),
        ((Connected(), HEAD), "the server said nothing for 0.1 s"),
        ((Connected(), HEAD, b"a"), "the server said nothing for 0.1 s"),
        ((Connected(), End()), "ended without an answer"),
        ((ApiError("connection", "broken", retryable=True), End()), "broken"),
        ((Connected(), HEAD, ApiError("connection", "broken", retryable=True)), "broken"),
    ],
)
def test_each_phase_has_its_failure(pieces: tuple[Piece, ...], complaint: str) -> None:
    reading = Reading(*pieces)
    with pytest.raises(ApiError, match=complaint) as caught:
        _ = reading.exchange.head(), list(reading.exchange.chunks())
    assert caught.value.retryable


def test_the_whole_has_its_limit_however_much_comes() -> None:
    reading = Reading(Connected(), HEAD, limits=PhaseLimits(5, 5, 5, whole_s=0.1))
    reading.exchange.head()
    with pytest.raises(ApiError, match=r"the request took longer than 0\.1 s"):
        list(reading.exchange.chunks())


def test_a_cancelled_run_leaves_at_once_and_does_not_linger() -> None:
    token = CancelToken()
    reading = Reading(Connected(), limits=PhaseLimits(60, 60, 60, 60), cancel=token)
    threading.Timer(0.05, token.cancel, ["enough"]).start()
    start = time.monotonic()
    with pytest.raises(Cancelled):
        reading.exchange.head()
    reading.exchange.close()
    assert (reading.abandoned, time.monotonic() - start < 15) == (1, True)
