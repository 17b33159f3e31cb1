"""The sockets of a client, held so that whoever no longer waits can break them under the thread that reads."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


class HeldSockets:
    """Learns of sockets from the client's own trace of what it does, in its thread; is broken from any other."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._duplicate: socket.socket | None = None
        self._is_broken = False

    @property
    def is_broken(self) -> bool:
        return self._is_broken

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """To be told of each step of a request, as httpx's extension `trace` is."""
        if event.endswith("start_tls.started"):
            self._hold_through_handshake()
        elif event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._hold(info["return_value"].get_extra_info("socket"))

    def break_all(self) -> None:
        """End all connections, those too that are still being made: reading and writing fail from now on."""
        self._is_broken = True
        for held in tuple(self._sockets):  # one that is added from now on is shut by who adds it
            _shut(held)

    def end_request(self) -> None:
        """To be told of the end of each request, however it ended."""
        self._close_duplicate()

    def _hold(self, new: socket.socket) -> None:
        self._close_duplicate()
        self._sockets = [*(held for held in self._sockets if held.fileno() >= 0), new]
        if self._is_broken:
            _shut(new)

    def _hold_through_handshake(self) -> None:
        """A handshake takes the descriptor away from the socket, and gives the new socket out only when it is over."""
        raw = self._sockets[-1]
        duplicate = socket.fromfd(raw.fileno(), raw.family, raw.type)
        self._hold(duplicate)
        self._duplicate = duplicate

    def _close_duplicate(self) -> None:
        if self._duplicate is not None:
            self._duplicate.close()
            self._duplicate = None


def _shut(held: socket.socket) -> None:
    with suppress(OSError):
        held.shutdown(socket.SHUT_RDWR)
