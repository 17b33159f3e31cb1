"""The Nth system call fails in the spawn server, a supervisor or a command that is being started: the call says so.

They get no variables from ci-agent, so the interpreter that it starts them with is a script that sets some.
"""

import errno
import json
import os
import re
import shlex
import shutil
import struct
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forked_command import ForkedCommand

if TYPE_CHECKING:
    from tests.hard.conftest import Ended, Lab, MakeLab

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

SCRIPT = """
turns:
  - tool_calls:
      - {id: one, name: bash, arguments: {command: sh step.sh one}}
      - {id: two, name: bash, arguments: {command: sh leave.sh two}}
  - tool_calls:
      - {id: three, name: bash, arguments: {command: sh step.sh three}}
  - text: Done.
"""

SLOW = "  - tool_calls: [{id: slow, name: bash, arguments: {command: sh slow.sh, timeout: 1}}]\n"
"""Its time-out is the one thing for which a signal is sent."""

FILES = {
    "leave.sh": 'echo "$1 begins"; touch "done/$1"; sleep 300 & setsid sleep 301 & echo "$1 ends"\n',
    "slow.sh": "sleep 300; echo never\n",
}

ERRORS = ("ENOSPC", "EIO", "EMFILE", "EINTR", "EAGAIN")

FAULTS = [
    *((call, error) for call in ("fork", "write", "open") for error in ERRORS),
    ("execve", "ENOMEM"),
    *((call, "EMFILE lasting") for call in ("pipe", "open")),
    ("pipe", "EMFILE"),
    ("read", "EIO"),
    ("opendir", "EMFILE"),
    ("recvmsg", "ENOMEM"),
    ("recv", "EIO"),
    *(("send", error) for error in ("EIO", "EAGAIN")),
    *(("waitpid", error) for error in ("EINTR", "ECHILD")),
    ("poll", "ENOMEM"),
    ("syscall", "ENOMEM"),
    ("kill", "EPERM"),
    ("prctl", "EINVAL"),
    ("setsid", "EPERM"),
    ("chdir", "EIO"),
    ("dup2", "EMFILE"),
    ("setrlimit", "EPERM"),
]

OF_MANY = ("open", "read", "waitpid", "syscall")
"""Calls that there are up to a thousand of, as about files in /proc."""


@pytest.mark.hard
@pytest.mark.parametrize(("call", "error"), FAULTS, ids=lambda value: str(value).replace(" ", "-"))
def test_what_fails_around_a_command_is_its_error_and_leaves_nothing(
    make_lab: "MakeLab", failing_calls: Path, forked_command: ForkedCommand, call: str, error: str
) -> None:
    for nth in _numbers(call, error):
        lab = _make(make_lab, nth, SCRIPT.replace("  - text", f"{SLOW}  - text") if call == "kill" else SCRIPT)
        done, failed = _run(lab, failing_calls, forked_command, call, error, nth)
        _check(lab, done)
        if not failed:
            assert nth > 1
            return


def _numbers(call: str, error: str) -> Iterator[int]:
    """Each; of many, such as are ever further apart. Calls that all fail from one on are waited for at their bounds."""
    if error.endswith("lasting"):
        return (8**power for power in count())
    return (2**power for power in count()) if call in OF_MANY else count(1)


def test_a_fork_that_fails_is_told(make_lab: "MakeLab", failing_calls: Path, forked_command: ForkedCommand) -> None:
    lab = _make(make_lab, "lab", SCRIPT)
    done, failed = _run(lab, failing_calls, forked_command, "fork", "EAGAIN lasting", 1)
    assert (done.code, failed > 0) == (0, True)
    calls = json.loads(lab.transcript.read_text())["tool_calls"]
    texts = {call["id"]: (call["status"], call["content"][0]["text"]) for call in calls}
    why = "/bin/bash cannot be started: Resource temporarily unavailable"
    assert {call: (status, re.sub("^/usr", "", text)) for call, (status, text) in texts.items()} == dict.fromkeys(
        ("one", "two", "three"), ("error", why)
    )


def _make(make_lab: "MakeLab", name: object, script: str) -> "Lab":
    lab = make_lab(name)
    lab.write_script(script)
    for file, content in FILES.items():
        (lab.workspace / file).write_text(content)
    return lab


def _run(lab: "Lab", library: Path, command: ForkedCommand, call: str, error: str, nth: int) -> tuple["Ended", int]:
    """The run, and how many calls failed."""
    name, _, lasting = error.partition(" ")
    seen = lab.folder / "seen"
    seen.write_bytes(bytes(32))
    variables = {
        "LD_PRELOAD": library,
        "FAULT_CALL": call,
        "FAULT_NTH": nth,
        "FAULT_ERRNO": getattr(errno, name),
        "FAULT_ON": 0 if lasting else 1,
        "FAULT_ARM": "/proc/self/oom_score_adj",  # which the server opens when Python has started
        "FAULT_SEEN": seen,
        "FAULT_FORKS": 1,
    }
    words = [f"{variable}={shlex.quote(str(value))}" for variable, value in variables.items()]
    interpreter = lab.folder / "python"
    interpreter.write_text(f'#!/bin/sh\nexec env {" ".join(words)} {shlex.quote(sys.executable)} "$@"\n')
    interpreter.chmod(0o755)
    done = lab.run(timeout_s=90, forked=partial(command.run, executable=str(interpreter)))
    return done, struct.unpack("iill", seen.read_bytes()[:24])[3]


def _check(lab: "Lab", done: "Ended") -> None:
    """The run went to its end; each call has done the whole of what it should and is ok, or it is an error."""
    assert lab.orphans() == []
    assert "Traceback" not in done.stderr
    assert done.code in (0, 5), done.stderr
    lab.check_whole(exit_code=done.code)
    assert os.listdir(lab.out) == ["t.json"]
    for call in json.loads(lab.transcript.read_text())["tool_calls"]:
        _check_call(lab, call)


def _check_call(lab: "Lab", call: Any) -> None:
    text = call["content"][0]["text"]
    if call["status"] == "ok":
        assert call["id"] != "slow"
        assert f"{call['id']} begins\n{call['id']} ends\n" in text
        assert (lab.workspace / "done" / call["id"]).exists()
    else:
        assert (call["status"], call["decision"]["effect"], bool(text)) == ("error", "allow", True)
