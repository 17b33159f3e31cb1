"""The spawn server or a supervisor is killed at any moment: its call fails with a result, and the run goes on."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ci_agent.process.call import LOST
from ci_agent.spawn.process_tree import processes_below
from ci_agent.spawn.supervisor import SERVER_GONE

if TYPE_CHECKING:
    from tests.hard.conftest import Lab, MakeLab

ALL_KILLS = 30
IN_ONE_TEST = 5

SCRIPT = """
turns:
  - tool_calls:
      - {id: one, name: bash, arguments: {command: sh step.sh one}}
      - {id: two, name: bash, arguments: {command: sh step.sh two}}
  - tool_calls: [{id: three, name: bash, arguments: {command: sh step.sh three}}]
  - tool_calls: [{id: four, name: bash, arguments: {command: sh step.sh four}}]
  - text: Done.
"""

STEP = """\
(setsid sleep 60 &)
echo "$1 begins"
touch "done/$1"
sleep 0.05
echo "$1 ends"
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and subreapers")


@pytest.mark.hard
@pytest.mark.parametrize("part", range(ALL_KILLS // IN_ONE_TEST))
def test_30_kills_of_those_who_supervise_end_calls_and_no_run(make_lab: "MakeLab", part: int) -> None:
    source = random.Random(part)
    usual_s = _usual_duration_s(make_lab)
    killed = 0
    while killed < IN_ONE_TEST:
        lab = _make(make_lab, f"{killed}-{source.random()}")
        if _run_and_kill(lab, usual_s * source.random(), source):
            killed += 1


def _make(make_lab: "MakeLab", name: str) -> "Lab":
    lab = make_lab(name)
    lab.write_script(SCRIPT)
    (lab.workspace / "step.sh").write_text(STEP)
    return lab


def _usual_duration_s(make_lab: "MakeLab") -> float:
    lab = _make(make_lab, "usual")
    done = lab.run()
    assert _statuses(lab) == dict.fromkeys(("one", "two", "three", "four"), "ok")
    return done.duration_s


def _run_and_kill(lab: "Lab", after_s: float, source: random.Random) -> bool:
    """True if there was somebody to be killed; then, what must hold of the run was checked."""
    with lab.start(lab.argv(), stderr=subprocess.PIPE) as process:
        threading.Event().wait(after_s)
        was_killed = _kill_one_of(_serving(process), source)
        stderr = process.communicate(timeout=110)[1].decode()
    assert lab.orphans() == []
    assert process.returncode == 0, stderr
    lab.check_whole()
    assert os.listdir(lab.out) == ["t.json"]
    statuses = _statuses(lab)
    failed = [call for call, status in statuses.items() if status != "ok"]
    assert len(statuses) == 4
    # With the server falls what it supervises at the time: two calls at most.
    assert failed in ([], ["one"], ["two"], ["one", "two"], ["three"], ["four"])
    return was_killed


def _serving(process: "subprocess.Popen[bytes]") -> Sequence[int]:
    """The server and its supervisors, as soon as there are any; none when the run has ended."""
    give_up_at = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < give_up_at:
        if found := [each.pid for each in processes_below(process.pid) if _is_of_the_server(each.pid)]:
            return found
    return []


def _is_of_the_server(pid: int) -> bool:
    with suppress(OSError):
        return b"ci_agent.spawn.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _kill_one_of(pids: Sequence[int], source: random.Random) -> bool:
    if not pids:
        return False
    with suppress(ProcessLookupError):
        os.kill(source.choice(pids), signal.SIGKILL)
        return True
    return False


def _statuses(lab: "Lab") -> dict[str, str]:
    """How each call ended; one that failed says that it was killed, or could not be started."""
    statuses = {}
    for call in json.loads(lab.transcript.read_text())["tool_calls"]:
        text = call["content"][0]["text"]
        statuses[call["id"]] = call["status"]
        if call["status"] == "ok":
            assert f"{call['id']} begins\n{call['id']} ends\n" in text
        else:
            assert LOST in text or SERVER_GONE in text or "cannot be started" in text
    return statuses
