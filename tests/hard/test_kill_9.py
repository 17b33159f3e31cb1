"""The run is killed where nothing can be caught, at any moment of its life: what it had acknowledged is on record."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forked_command import ForkedCommand

from ci_agent.errors import ConfigurationError
from ci_agent.transcript.verify import verify

if TYPE_CHECKING:
    from tests.hard.conftest import Lab, MakeLab

ALL_KILLS = 200
IN_ONE_TEST = 20
"""So that several processes share them."""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only a private group's end is told elsewhere")
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_run_that_is_killed_loses_nothing_that_it_had_acknowledged(
    make_lab: "MakeLab", forked_command: ForkedCommand, share: float
) -> None:
    usual_s = _usual_duration_s(make_lab)
    _check_kill(make_lab("killed"), usual_s * share, forked_command)


@pytest.mark.hard
@pytest.mark.parametrize("part", range(ALL_KILLS // IN_ONE_TEST))
def test_200_kills_spread_over_a_whole_life_lose_nothing_that_was_acknowledged(
    make_lab: "MakeLab", forked_command: ForkedCommand, part: int
) -> None:
    source = random.Random(part)
    for number in range(IN_ONE_TEST):
        if number % 10 == 0:  # others use this machine: what is usual changes
            usual_s = _usual_duration_s(make_lab, f"usual-{number}")
        moment = (part + 10 * number + source.random()) / ALL_KILLS
        _check_kill(make_lab(number), usual_s * 1.1 * moment, forked_command)


@pytest.mark.hard
@pytest.mark.parametrize("record", range(1, 41, 3))
def test_a_kill_right_after_a_record_was_acknowledged(
    make_lab: "MakeLab", forked_command: ForkedCommand, record: int
) -> None:
    """Nearer to the writes than a clock can come: the kill follows the line on stdout."""
    lab = make_lab()
    with lab.start(lab.argv("--output", "jsonl"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = list(islice(process.stdout, record))
        process.kill()
        lines += process.stdout.readlines()
    _check_what_is_left(lab, process.returncode, b"".join(lines), forked_command)


@pytest.mark.hard
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
@pytest.mark.parametrize("call", ["open", "flock", "write", "fsync", "ftruncate", "rename", "unlink", "close"])
def test_a_kill_at_each_call_about_the_record(
    make_lab: "MakeLab", failing_calls: Path, failing_command: ForkedCommand, call: str
) -> None:
    """In the place of the call; of what it was to write, half is written."""
    for nth in count(1):
        lab = make_lab(nth)
        lab.write_script((lab.folder / "small.yaml").read_text())
        seen = lab.folder / "seen"
        seen.write_bytes(bytes(32))
        kill = {"FAULT_CALL": call, "FAULT_NTH": str(nth), "FAULT_ERRNO": "-1", "FAULT_BELOW": str(lab.out)}
        env = {"LD_PRELOAD": str(failing_calls), "FAULT_SEEN": str(seen), **kill}
        done = lab.run("--output", "jsonl", env=env, forked=failing_command.run)
        _check_what_is_left(lab, done.code, done.stdout, failing_command)
        if done.code == 0:
            assert nth > 1
            return


def _usual_duration_s(make_lab: "MakeLab", name: str = "usual") -> float:
    lab = make_lab(name)
    done = lab.run()
    assert done.code == 0, done.stderr
    lab.check_success()
    return done.duration_s


def _check_kill(lab: "Lab", after_s: float, next_run: ForkedCommand) -> None:
    acknowledged = lab.folder / "acknowledged"
    with acknowledged.open("wb") as stdout, lab.start(lab.argv("--output", "jsonl"), stdout=stdout) as process:
        threading.Event().wait(after_s)
        process.kill()
    _check_what_is_left(lab, process.returncode, acknowledged.read_bytes(), next_run)


def _check_what_is_left(lab: "Lab", code: int, shown: bytes, next_run: ForkedCommand) -> None:
    """`shown` is what stood on stdout, which gets a record once it is acknowledged; its last line may be torn."""
    assert code in (-signal.SIGKILL, 0)
    assert lab.orphans() == []
    acknowledged = [line for line in shown.splitlines(keepends=True) if line.endswith(b"\n")]
    if lab.journal.exists():
        _check_journal(lab, acknowledged)
    elif not lab.transcript.exists():
        assert (acknowledged, lab.effects()) == ([], set())
    else:
        lab.check_success()
    _check_next_run(lab, next_run)


def _check_journal(lab: "Lab", acknowledged: list[bytes]) -> None:
    lines = lab.journal.read_bytes().splitlines(keepends=True)
    assert lines[: len(acknowledged)] == acknowledged
    contents = lab.read_journal()  # which also shows that the lock is free
    assert contents.problems == ()
    if not contents.records:
        with pytest.raises(ConfigurationError, match="holds no record"):
            lab.recovered()
        return
    document = lab.recovered()
    ends = {record["call"]: record["status"] for record in contents.records if record["kind"] == "call_end"}
    begun = [record["call"] for record in contents.records if record["kind"] == "call_start"]
    assert {seq: _status(document, seq) for seq in begun} == {seq: ends.get(seq) for seq in begun}


def _status(document: Any, seq: int) -> str | None:
    """None: nobody knows, as far as the record tells."""
    call = document["tool_calls"][seq - 1]
    assert call["seq"] == seq
    if call["status"] == "unknown" or (call["status"] == "denied" and call["duration_s"] is None):
        return None
    return str(call["status"])


def _check_next_run(lab: "Lab", forked: ForkedCommand) -> None:
    """It recovers what was left, and goes on as if nothing had been."""
    left = lab.journal.exists() and lab.read_journal().records
    done = lab.run(script="short.yaml", forked=forked.run)
    assert done.code == 0, done.stderr
    assert verify(lab.transcript) == []
    assert json.loads(lab.transcript.read_text())["result"]["final_text"] == "Done."
    names = {"t.json", *(["t.json.recovered.json"] if left else [])}
    assert set(os.listdir(lab.out)) == names
    assert ("an earlier run was killed" in done.stderr) == bool(left)
