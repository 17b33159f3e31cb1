"""The near end of a supervisor: what it has reported, and the orders it is given."""

import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field

from ci_agent.spawn.protocol import FINISH, TERMINATE, Broken, Exited, Failed, Finished, Report, decode_report


def has_something(control: socket.socket, within_s: float) -> bool:
    """Whether something is there to be read: a report, or the end."""
    waiting = select.poll()  # select(2) takes no descriptor beyond 1,023
    waiting.register(control, select.POLLIN)
    return waiting.poll(within_s * 1000) != []


@dataclass(eq=False, slots=True)
class Supervised:
    """One command, as far as its supervisor has told."""

    control: socket.socket
    failed: Failed | None = None
    exited: Exited | None = None
    finished: Finished | None = None
    broken: str | None = None
    """The traceback of a bug."""
    is_lost: bool = False
    """The supervisor has ended without its last report."""
    was_ordered: bool = False
    """An order may still be on its way, and would be taken for one to the next command."""
    _unread: bytearray = field(default_factory=bytearray)

    @property
    def has_ended(self) -> bool:
        """The command has, or will never start; what it left may live on."""
        return self.exited is not None or self.is_over

    @property
    def is_over(self) -> bool:
        """Nothing more will be reported."""
        if self.failed or self.finished or self.broken is not None or self.is_lost:
            return True
        return self.exited is not None and not self.exited.has_left

    @property
    def leaves_supervisor(self) -> bool:
        """There is one that waits for the next command."""
        if self.exited is None or self.exited.killed_because is not None:
            return False
        return self.is_over and not (self.was_ordered or self.is_lost)

    def take_reports(self) -> None:
        """Take in what has come; to be called when there is something."""
        try:
            data = self.control.recv(1 << 16)
        except ConnectionError:
            data = b""
        self._unread += data
        *lines, rest = bytes(self._unread).split(b"\n")
        self._unread[:] = rest
        for line in lines:
            self._take(decode_report(line))
        if not data and not self.is_over:
            self.is_lost = True

    def _take(self, report: Report) -> None:
        match report:
            case Failed():
                self.failed = report
            case Exited():
                self.exited = report
            case Finished():
                self.finished = report
            case Broken():
                self.broken = report.traceback

    def terminate(self) -> None:
        """Ask the command to end."""
        self._order(TERMINATE)

    def finish(self, within_s: float) -> bool:
        """Have all that is left killed; False if that is not reported in time."""
        if not self.is_over:
            self._order(FINISH)
        deadline = time.monotonic() + within_s
        while not self.is_over:
            if not has_something(self.control, max(deadline - time.monotonic(), 0)):
                return False
            self.take_reports()
        return True

    def abandon(self) -> None:
        """Have it killed with all that it has started, now. For any thread."""
        self.was_ordered = True
        with suppress(OSError):  # it has just ended
            self.control.shutdown(socket.SHUT_WR)

    def _order(self, order: bytes) -> None:
        self.was_ordered = True
        with suppress(OSError):  # it has ended, which its reports say
            self.control.send(order)
