"""The spawn server, as ci-agent has it: a child process and a channel to it."""

import errno
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ci_agent.spawn.process_tree import end_below

# Appended, so that nothing that is installed beside this package stands in for a module of Python's own.
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from ci_agent.spawn.server import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""

_INTERPRETER = ("-I", "-S", "-B", "-X", "utf8", "-c", _PROGRAM)

_FOR_THE_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Without them an interpreter that lies apart from its libraries does not start; commands do not get them."""


_TAKES_WITHIN_S = 10.0
"""One that takes nothing has been stopped."""

_LEAVES_WITHIN_S = 2.0
"""When it has been told to. A run that is cancelled has no more time than a few seconds."""

_ENDS_WITHIN_S = 0.2
"""Between the end of its sockets and that of the process."""


@dataclass(frozen=True, slots=True)
class SpawnServer:
    process: subprocess.Popen[bytes]
    channel: socket.socket

    @property
    def pid(self) -> int:
        return self.process.pid

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def ends_at_once(self) -> bool:
        """Asked when its sockets have been closed, which comes first."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_ENDS_WITHIN_S)
        return self.has_ended()

    def failed(self) -> bool:
        """It ended by itself, with an error."""
        return self.process.returncode is not None and self.process.returncode > 0

    def has_left(self) -> bool:
        """Tell it that no more will come, and wait until it is gone; False if it does not go."""
        with suppress(OSError):  # it has ended
            self.channel.shutdown(socket.SHUT_RDWR)  # where a close would leave it to a fork of this process
        self.channel.close()
        try:
            self.process.wait(_LEAVES_WITHIN_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it with all that is below it, when it does not work."""
        end_below(self.pid)
        self.discard()

    def discard(self) -> None:
        """End it when there is nothing below it."""
        self.channel.close()
        self.process.kill()
        self.process.wait()


def start_server() -> SpawnServer:
    """OSError when it cannot be started."""
    if not sys.executable:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), "the interpreter of this program")
    ours, theirs = socket.socketpair()
    ours.settimeout(_TAKES_WITHIN_S)
    with theirs:
        arguments = [str(Path(__file__).parents[2]), str(theirs.fileno()), str(os.getpid())]
        try:
            process = subprocess.Popen(
                [sys.executable, *_INTERPRETER, *arguments],
                cwd="/",
                env={name: os.environ[name] for name in _FOR_THE_LOADER if name in os.environ},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
    return SpawnServer(process, ours)
