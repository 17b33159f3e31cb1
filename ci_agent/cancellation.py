"""How a run, a batch or one call is told to stop, and how whatever blocks learns of it."""

import threading
from collections.abc import Callable


class Cancelled(BaseException):
    """Raised inside blocking work whose token was cancelled. No Exception, so that no `except Exception` stops it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CancelToken:
    """Cancelled at most once, from any thread; the first reason stays.

    A child token is cancelled with its parent, and may be cancelled alone. No lock guards its state, only single
    operations of lists and dicts, which are atomic: a signal handler may cancel while the very thread that it
    interrupts is inside one of these methods, where a lock (an Event has one) would never be released.
    """

    def __init__(self, parent: "CancelToken | None" = None) -> None:
        self._reasons: list[str] = []
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._leave_parent = parent.on_cancel(self._follow(parent)) if parent else None

    @property
    def reason(self) -> str | None:
        """Why it was cancelled; None while it is not."""
        return self._reasons[0] if self._reasons else None

    @property
    def is_cancelled(self) -> bool:
        return bool(self._reasons)

    def cancel(self, reason: str) -> None:
        """Cancel, wake every waiter, run the callbacks in this thread. Later calls change nothing."""
        self._reasons.append(reason)
        while self._callbacks:
            try:
                _, callback = self._callbacks.popitem()
            except KeyError:  # another thread took the last one
                return
            callback()

    def raise_if_cancelled(self) -> None:
        if self._reasons:
            raise Cancelled(self._reasons[0])

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until cancelled or timed out; True when cancelled."""
        wake = threading.Lock()
        wake.acquire()
        leave = self.on_cancel(wake.release)
        try:
            wake.acquire(timeout=-1 if timeout_s is None else max(timeout_s, 0))
        finally:
            leave()
        return self.is_cancelled

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once on cancellation (at once if that has happened); returns a function that unsubscribes.

        A callback must not raise and must not block.
        """
        key = object()
        self._callbacks[key] = callback
        # Entered first, then looked: whoever cancels in between finds the entry, and only one can take it out.
        if self._reasons and self._callbacks.pop(key, None) is not None:
            callback()
        return lambda: self._forget(key)

    def child(self) -> "CancelToken":
        return CancelToken(parent=self)

    def close(self) -> None:
        """Detach from the parent, so that a long-lived parent does not collect finished children."""
        if self._leave_parent is not None:
            self._leave_parent()

    def _follow(self, parent: "CancelToken") -> Callable[[], None]:
        return lambda: self.cancel(parent.reason or "cancelled")

    def _forget(self, key: object) -> None:
        self._callbacks.pop(key, None)
