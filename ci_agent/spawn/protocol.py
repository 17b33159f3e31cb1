"""What ci-agent, its spawn server and the supervisors say to each other.

Over the channel to the server goes one byte for each command, with one end of a control socket, or for a folder that is
to be removed in the end, with a descriptor of it. All else goes over
that socket: the request with the command's stdout and stderr; orders, a byte each; and back reports, a line each.
Texts of the system (arguments, paths, variables) travel as Python holds them, undecodable bytes as lone surrogates.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeAlias

from ci_agent.sandbox.confinement import Confinement, confinement_as_json, confinement_from_json
from ci_agent.spawn.patience import patiently
from ci_agent.spawn.tree_limits import TreeLimits

_LENGTH_BYTES = 8

_SUPERVISE = b"!"
_REMOVE = b"R"


TERMINATE = b"T"
"""Send SIGTERM to the command's process group."""

FINISH = b"F"
"""Kill whatever is left."""


@dataclass(frozen=True, slots=True)
class Request:
    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    limits: TreeLimits
    confinement: Confinement | None = None
    """What keeps it in; None: nothing does."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The command could not be started. The last report."""

    errno: int
    path: str | None


@dataclass(frozen=True, slots=True)
class Exited:
    """The command has ended; with `has_left`, something that it started has not, and Finished will follow."""

    status: int
    """Negative: the signal that ended it."""
    has_left: bool
    killed_because: str | None
    """Why the supervisor ended it before its time; None: it did not."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left of what the command had started. The last report."""

    left_running: bool
    """Something had to be killed."""
    killed_because: str | None


@dataclass(frozen=True, slots=True)
class Broken:
    """A bug in the supervisor, or a kernel that misbehaves. The last report."""

    traceback: str


Report: TypeAlias = Failed | Exited | Finished | Broken

_REPORTS: Mapping[str, type[Report]] = {kind.__name__: kind for kind in (Failed, Exited, Finished, Broken)}


def hand_over(channel: socket.socket, control: socket.socket) -> None:
    """Ask the server for a supervisor at the other end of this socket."""
    socket.send_fds(channel, [_SUPERVISE], [control.fileno()])


def leave_folder(channel: socket.socket, folder: int) -> None:
    """Have the server remove the folder of this descriptor when it ends."""
    socket.send_fds(channel, [_REMOVE], [folder])


@dataclass(frozen=True, slots=True)
class LeftFolder:
    descriptor: int


Errand: TypeAlias = socket.socket | LeftFolder
"""The control socket of one more command, or a folder that is to be removed."""


def take_errand(channel: socket.socket) -> Errand | None:
    """What the server is asked for; None when no more will come. BlockingIOError when it was lost on the way."""
    kind, descriptors, _, _ = patiently(lambda: socket.recv_fds(channel, 1, 1))
    if not kind:
        return None
    if not descriptors:  # no descriptor was free for it
        raise BlockingIOError
    os.set_inheritable(descriptors[0], False)
    return LeftFolder(descriptors[0]) if kind == _REMOVE else socket.socket(fileno=descriptors[0])


def send_request(control: socket.socket, request: Request, streams: Sequence[int]) -> None:
    """`streams`: the descriptors of stdout and stderr, which may be the same."""
    fields = {
        "argv": request.argv,
        "cwd": request.cwd,
        "environment": request.environment,
        "limits": asdict(request.limits),
        "confinement": confinement_as_json(request.confinement),
    }
    text = json.dumps(fields).encode("ascii")
    socket.send_fds(control, [len(text).to_bytes(_LENGTH_BYTES, "big")], streams)
    control.sendall(text)


def receive_request(control: socket.socket) -> tuple[Request, list[int]]:
    """The request and the descriptors; EOFError when whoever had it is gone."""
    header, descriptors, _, _ = patiently(lambda: socket.recv_fds(control, _LENGTH_BYTES, 2))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    header += _receive_exactly(control, _LENGTH_BYTES - len(header))
    fields = json.loads(_receive_exactly(control, int.from_bytes(header, "big")))
    limits, confinement = TreeLimits(**fields["limits"]), confinement_from_json(fields["confinement"])
    return Request(**fields | {"limits": limits, "confinement": confinement}), descriptors


def _receive_exactly(control: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = patiently(partial(control.recv, min(count - len(received), 1 << 20)))
        if not chunk:
            raise EOFError
        received += chunk
    return bytes(received)


def encode_report(report: Report) -> bytes:
    return json.dumps([type(report).__name__, asdict(report)]).encode("ascii") + b"\n"


def decode_report(line: bytes) -> Report:
    """ValueError, KeyError or TypeError for what no supervisor says."""
    kind, fields = json.loads(line)
    return _REPORTS[kind](**fields)
