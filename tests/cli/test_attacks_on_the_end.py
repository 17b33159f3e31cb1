"""Nobody at the other end of a pipe keeps a run from its end, and what it leaves is where it was asked for."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import pytest

Start = Callable[..., Popen[bytes]]
Write = Callable[[str], str]

POLICY = 'rules: [{id: talk, allow: bash, command: ["seq **", "touch canary"]}]\n'

TALKATIVE = {"name": "bash", "arguments": {"command": "seq 2000"}}
CANARY = {"name": "bash", "arguments": {"command": "touch canary"}}


@pytest.fixture
def start(workspace: Path, environment: dict[str, str], policy: Write) -> Start:
    """A run whose model makes these calls in one turn and then answers."""

    def begin(calls: list[object], *args: str, stdout: int = DEVNULL, stderr: int = DEVNULL) -> Popen[bytes]:
        (workspace / "script.yaml").write_text(json.dumps({"turns": [{"tool_calls": calls}, {"text": "done"}]}))
        command = [sys.executable, "-P", "-m", "ci_agent", "run", "--policy", policy(POLICY)]
        return Popen(
            [*command, "--model", "scripted:script.yaml", "--transcript", "t.json", *args, "Go."],
            cwd=workspace,
            env=environment,
            stdin=DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )

    return begin


@pytest.fixture
def full_pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe that takes not one byte more."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while os.write(write_end, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(write_end, True)
    yield read_end, write_end
    os.close(read_end)
    os.close(write_end)


def test_attack_a_log_that_nobody_reads_holds_nothing_up(
    start: Start, workspace: Path, full_pipe: tuple[int, int]
) -> None:
    _, write_end = full_pipe
    process = start([*[TALKATIVE] * 20, CANARY], "--verbose", stderr=write_end)
    assert process.wait(60) == 0
    assert (workspace / "canary").exists()


def test_who_reads_the_log_again_is_told_what_is_missing(full_pipe: tuple[int, int]) -> None:
    read_end, write_end = full_pipe
    program = [
        "from ci_agent.cli.streams import Log",
        "log = Log()",
        "log('one\\ntwo')",
        "log('three')",
        "print(flush=True)",
        "input()",
        "log('four')",
    ]
    with Popen([sys.executable, "-P", "-c", "\n".join(program)], stdin=PIPE, stdout=PIPE, stderr=write_end) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.read(read_end, 1 << 20)
        process.communicate(b"\n")
    assert os.read(read_end, 1 << 20) == b"\n(3 lines missing here: nobody read the log)\nfour\n"


def test_attack_a_signal_counts_while_nobody_reads_the_lines_of_the_journal(
    start: Start, workspace: Path, full_pipe: tuple[int, int]
) -> None:
    _, write_end = full_pipe
    process = start([TALKATIVE, CANARY], "--output", "jsonl", stdout=write_end)
    pause = threading.Event()
    while not (workspace / "t.json.journal").exists() and process.poll() is None:
        pause.wait(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 128 + signal.SIGTERM
    result = json.loads((workspace / "t.json").read_text())["result"]
    assert (result["reason"], "nobody read it" in result["error"]) == ("cancelled", True)
    assert not (workspace / "canary").exists()


def test_a_stream_that_somebody_made_non_blocking_takes_everything(start: Start, workspace: Path) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)  # as programs do that share the streams of a job
    process = start([TALKATIVE] * 30, stdout=write_end)
    os.close(write_end)
    with open(read_end, "rb") as stdout:
        document = json.loads(stdout.read())
    assert process.wait(60) == 0
    assert document == json.loads((workspace / "t.json").read_text())
