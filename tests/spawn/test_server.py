"""The program itself; what it does is held in tests/process, through those who use it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import ci_agent
from ci_agent.process import spawn_client
from ci_agent.process.spawn_client import start_server
from ci_agent.spawn.protocol import (
    Exited,
    Failed,
    Finished,
    Report,
    Request,
    decode_report,
    encode_report,
    hand_over,
    send_request,
)
from ci_agent.spawn.tree_limits import TreeLimits

ROOT = str(Path(ci_agent.__file__).parents[1])

LIST_MODULES = f"""
import sys
sys.path.append({ROOT!r})
import ci_agent.spawn.server
print(*sys.modules)
"""


def test_it_imports_its_own_room_the_sandbox_and_python() -> None:
    argv = [sys.executable, "-I", "-S", "-c", LIST_MODULES]
    modules = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    ours = {name.split(".")[1] for name in modules if name.startswith("ci_agent.")}
    others = {name.split(".")[0] for name in modules} - sys.stdlib_module_names - {"ci_agent", "__main__"}
    assert ours <= {"json_types", "sandbox", "spawn"}
    assert others == set()
    assert "threading" not in modules


def test_it_survives_all_signals_that_end_a_job_and_leaves_when_its_owner_lets_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spawn_client, "_LEAVES_WITHIN_S", 60.0)  # on a busy machine
    server = start_server()
    control, theirs = socket.socketpair()
    with control, theirs:
        hand_over(server.channel, theirs)
        send_request(control, Request(["true"], "/", {}, TreeLimits(10, 1 << 30)), [0, 0])
        assert control.recv(1) == b"["  # its handlers are there
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(server.pid, number)
    assert server.has_left()
    assert server.process.returncode == 0


def test_it_does_nothing_for_one_who_is_not_its_parent() -> None:
    ours, theirs = socket.socketpair()
    program = (
        f"import sys; sys.path.append({ROOT!r}); from ci_agent.spawn.server import main; main({theirs.fileno()}, 1)"
    )
    with ours, theirs:
        done = subprocess.run([sys.executable, "-c", program], pass_fds=[theirs.fileno()], timeout=110, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "report",
    [Failed(2, "/no\udcff"), Failed(11, None), Exited(-9, has_left=True, killed_because="it"), Finished(True, None)],
)
def test_a_report_is_a_line_that_reads_back_the_same(report: Report) -> None:
    line = encode_report(report)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_report(line) == report


@pytest.mark.parametrize(
    "line", [b"", b"[]", b'["Nothing", {}]', b'["Failed", {"errno": 1}]', b'["Exited", 5]', b"\xff"]
)
def test_what_no_supervisor_says_is_refused(line: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode_report(line)
