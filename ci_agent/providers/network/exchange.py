"""One request and its response, read by a thread of its own.

Whoever asked waits here, with the time limits of each phase, and leaves at once when one of them is over or the run is
cancelled: a look-up of a name, a connect or a read may block for minutes, and nothing can wake it in its own thread.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.providers.wire.failures import ApiError


@dataclass(frozen=True, slots=True)
class Connected:
    """The request is on its way."""


@dataclass(frozen=True, slots=True)
class Head:
    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class End:
    """The response has come to its end."""


@dataclass(frozen=True, slots=True)
class PhaseLimits:
    connect_s: float = 10.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0
    whole_s: float = 600.0


Piece: TypeAlias = Connected | Head | bytes | End | ApiError
Work: TypeAlias = Callable[[Callable[[Piece], None]], None]
"""Does the request and hands over each piece as it comes. What it raises is a bug."""

_SILENCE_FIRST = "the server said nothing for {:g} s after it had taken the request"
_SILENCE = "the server said nothing for {:g} s in the middle of its answer"

_LINGER_S = 0.2
"""How long the end of a response is waited for that was read but for its last bytes: then its connection can be used
again."""

_LOOK_UP_EVERY_S = 0.25
"""A signal that comes in the moment before the wait begins does not end it, and its handler runs only afterwards."""


class Exchange:
    """The pieces of one exchange, in order. `abandon` is called if it is left before its end; it must not block."""

    def __init__(self, work: Work, abandon: Callable[[], None], limits: PhaseLimits, cancel: CancelToken) -> None:
        self._pieces: deque[Piece] = deque()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._abandon = abandon
        self._limits = limits
        self._cancel = cancel
        self._ended = False
        self._deadline = time.monotonic() + limits.whole_s
        self._leave = cancel.on_cancel(self._ring)
        try:
            threading.Thread(target=work, args=(self._put,), name="model request", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads, maybe later
            self._leave()
            raise ApiError("connection", f"the request was not sent: {error}", retryable=True) from error

    def head(self) -> Head:
        """Wait for the response's beginning; raises ApiError, and Cancelled when the run is."""
        piece = self._next("connecting took longer than {:g} s", self._limits.connect_s)
        while not isinstance(piece, Head):
            if isinstance(piece, End):
                raise ApiError("connection", "the connection ended without an answer", retryable=True)
            piece = self._next("the server did not answer for {:g} s", self._limits.first_byte_s)
        return piece

    def chunks(self) -> Iterator[bytes]:
        """The body; raises ApiError, and Cancelled when the run is."""
        complaint, within_s = _SILENCE_FIRST, self._limits.first_byte_s
        while True:
            piece = self._next(complaint, within_s)
            if isinstance(piece, End):
                return
            if isinstance(piece, bytes):
                complaint, within_s = _SILENCE, self._limits.idle_s
                yield piece

    def hurry(self, within_s: float) -> None:
        """Wait no longer than this for all that is to come."""
        self._deadline = min(self._deadline, time.monotonic() + within_s)

    def close(self) -> None:
        """Leave. A connection whose response is nearly over is kept, any other is given up."""
        self._leave()
        deadline = time.monotonic() + _LINGER_S
        while not self._ended and not self._cancel.is_cancelled and time.monotonic() < deadline:
            self._take(deadline)
        if not self._ended:
            self._abandon()

    def _next(self, complaint: str, within_s: float) -> Piece:
        limit = time.monotonic() + within_s
        while True:
            self._cancel.raise_if_cancelled()
            piece = self._take(min(limit, self._deadline))
            if isinstance(piece, ApiError):
                raise piece
            if piece is not None:
                return piece
            self._cancel.raise_if_cancelled()
            now = time.monotonic()
            if now >= self._deadline:
                raise ApiError("timeout", f"the request took longer than {self._limits.whole_s:g} s", retryable=True)
            if now >= limit:
                raise ApiError("timeout", complaint.format(within_s), retryable=True)

    def _take(self, deadline: float) -> Piece | None:
        """The next piece; None when there is none yet and something rang, or the time is over."""
        if not self._pieces:
            self._wake.acquire(timeout=min(max(deadline - time.monotonic(), 0), _LOOK_UP_EVERY_S))
        try:
            piece = self._pieces.popleft()
        except IndexError:
            return None
        self._ended = self._ended or isinstance(piece, End | ApiError)
        return piece

    def _put(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._ring()

    def _ring(self) -> None:
        # A bare lock as a bell: it may be rung from a signal's handler, in the very thread that waits for it.
        try:
            self._wake.release()
        except RuntimeError:  # it rings already
            return
