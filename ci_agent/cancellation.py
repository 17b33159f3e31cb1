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

    A child token is cancelled with its parent, and may be cancelled alone.
    """

    def __init__(self, parent: "CancelToken | None" = None) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._leave_parent = parent.on_cancel(self._follow(parent)) if parent else None

    @property
    def reason(self) -> str | None:
        """Why it was cancelled; None while it is not."""
        return self._reason

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self, reason: str) -> None:
        """Cancel, wake every waiter, run the callbacks in this thread. Later calls change nothing."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        self._event.set()
        for callback in callbacks:
            callback()

    def raise_if_cancelled(self) -> None:
        if self._event.is_set():
            raise Cancelled(self._reason or "cancelled")

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until cancelled or timed out; True when cancelled."""
        return self._event.wait(timeout_s)

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once on cancellation (at once if that has happened); returns a function that unsubscribes.

        A callback must not raise and must not block.
        """
        with self._lock:
            if self._reason is None:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def child(self) -> "CancelToken":
        return CancelToken(parent=self)

    def close(self) -> None:
        """Detach from the parent, so that a long-lived parent does not collect finished children."""
        if self._leave_parent is not None:
            self._leave_parent()

    def _follow(self, parent: "CancelToken") -> Callable[[], None]:
        return lambda: self.cancel(parent.reason or "cancelled")

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)
