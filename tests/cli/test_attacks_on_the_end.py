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
    assert process.wait(110) == 0
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
    assert process.wait(110) == 0
    assert document == json.loads((workspace / "t.json").read_text())


def test_a_pipe_that_nobody_reads_is_told_of_and_not_waited_for(start: Start, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    assert start([CANARY], "--answer-file", "pipe", "--report", "text=report").wait(60) == 1
    error = json.loads((workspace / "t.json").read_text())["result"]["error"]
    assert error == "the answer file 'pipe' cannot be written: nobody reads it"
    assert (workspace / "report").exists()


SHARED = {
    "two reports": (["--report", "html=x", "--report", "junit=./x"], "--report junit cannot go there: x is where"),
    "answer and record": (["--answer-file", "t.json"], "t.json is where --transcript goes"),
    "report and journal": (["--report", "html=t.json.journal"], "t.json.journal is where --transcript goes"),
    "proposals over the policy": (["--proposals", "policy.yml"], "policy.yml is what --policy reads"),
    "report over a link to the script": (["--report", "text=link"], "script.yaml is what --model reads"),
    "answer and lock": (["--lock", "x", "--answer-file", "x"], "x is where --lock goes"),
    "answer over the schema": (["--output-schema", "s", "--answer-file", "s"], "s is what --output-schema reads"),
}


@pytest.mark.parametrize("shared", SHARED)
def test_no_result_takes_the_place_of_another_or_of_what_the_run_is_made_of(
    start: Start, workspace: Path, shared: str
) -> None:
    options, told = SHARED[shared]
    (workspace / "link").symlink_to("script.yaml")
    (workspace / "s").write_text("{}")
    process = start([CANARY], *options, stderr=PIPE)
    _, log = process.communicate(timeout=110)
    assert (process.returncode, told in log.decode()) == (2, True), log
    assert sorted(os.listdir(workspace)) == ["link", "policy.yml", "s", "script.yaml"]
    assert (workspace / "policy.yml").read_text() == f"policy: 1\n{POLICY}"


def test_a_format_may_go_to_two_files_and_results_may_follow_each_other_on_a_stream(
    start: Start, workspace: Path
) -> None:
    options = ["--report", "text=/dev/stdout", "--answer-file", "/dev/stdout", "--output", "text"]
    process = start([CANARY], "--report", "text=a", "--report", "text=b", *options, stdout=PIPE)
    stdout, _ = process.communicate(timeout=110)
    report = (workspace / "a").read_text()
    assert (process.returncode, (workspace / "b").read_text()) == (0, report)
    assert stdout.decode() == f"done\n{report}done\n"
