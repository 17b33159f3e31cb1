"""What is said of a command that failed when the sandbox may be why."""

import pytest

from ci_agent.errors import ToolError
from ci_agent.process import Output, ProcessResult
from ci_agent.tools.command_output import present_ending

REFUSED, UNREACHABLE = "[refused]", "[unreachable]"


def notes_on(printed: str, exit_status: int = 1) -> list[str]:
    data = printed.encode()
    result = ProcessResult(
        exit_status=exit_status,
        signal=None,
        timed_out=False,
        duration_s=0.1,
        output=Output(data, b"", len(data), data.count(b"\n")),
        stderr=None,
        left_background=False,
        killed_because=None,
    )
    with pytest.raises(ToolError) as failed:
        present_ending(result, "", {}, when_refused=REFUSED, when_unreachable=UNREACHABLE)
    return [line for line in str(failed.value).splitlines() if line in (REFUSED, UNREACHABLE)]


@pytest.mark.parametrize(
    "printed",
    [
        "curl: (6) Could not resolve host: registry.example",
        "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server",
        "wget: unable to resolve host address 'registry.example'",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "socket.gaierror: [Errno -2] Name or service not known",
        "npm error network request to https://registry.example failed, reason: getaddrinfo EAI_AGAIN registry.example",
        "Error: getaddrinfo ENOTFOUND registry.example",
        "dial tcp: lookup proxy.example: no such host",
        "warning: spurious network error: failed to lookup address information",
        "fatal: unable to access 'https://git.example/x/': Could not resolve host: git.example",
        "psql: error: could not connect to server",
        "Failed to establish a new connection: [Errno 13] Permission denied",
        "dial tcp 127.0.0.1:80: connect: permission denied",
        "Error: connect EACCES 127.0.0.1:9",
        "Error: listen EACCES: permission denied 0.0.0.0",
        "listen tcp 127.0.0.1:0: bind: permission denied",
        "E       PermissionError: [Errno 13] Permission denied (while attempting to bind on address ('127.0.0.1', 0))",
        "/usr/lib/python3.11/socket.py:934: PermissionError",
        "    self.socket.bind(self.server_address)\nPermissionError: [Errno 13] Permission denied",
        "    _socket.socket.__init__(self, family, type, proto, fileno)\nPermissionError: [Errno 13] Permission denied",
        "socket: Permission denied\r\nssh: connect to host 127.0.0.1 port 22: failure",
        "dial tcp: lookup host: dial udp 127.0.0.53:53: socket: permission denied",
    ],
)
def test_a_command_that_reached_no_server_is_told_why(printed: str) -> None:
    assert UNREACHABLE in notes_on(f"{printed}\n")


@pytest.mark.parametrize(
    "printed",
    ["1 failed, 3 passed", "bash: src/a: Permission denied", "AssertionError: server said no", "connected", ""],
)
def test_other_failures_are_not_blamed_on_the_network(printed: str) -> None:
    assert UNREACHABLE not in notes_on(f"{printed}\n")


def test_what_was_refused_is_told() -> None:
    assert notes_on("cp: cannot create 'b': Read-only file system\n") == [REFUSED]
