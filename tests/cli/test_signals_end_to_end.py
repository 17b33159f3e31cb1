"""A cancelled run: no new call, no child left, the record closed, 128 + the signal's number."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from ci_agent.transcript.verify import verify

Write = Callable[[str], str]

POLICY = 'rules: [{id: wait, allow: bash, command: ["bash wait.sh"]}, {id: w, allow: write}]\n'

TURNS = """
turns:
  - tool_calls:
      - {id: hang, name: bash, arguments: {command: bash wait.sh}}
      - {id: after, name: write, arguments: {path: after.txt, content: x}}
  - text: never
"""

WAIT = """\
setsid sleep 300 &
(setsid sh -c 'echo $$ > deep; exec sleep 300' &)
until [ -s deep ]; do sleep 0.01; done
echo "$$ $PPID $! $(cat deep)" > pids.new
mv pids.new pids
sleep 300
"""
"""Starts a grandchild in a session of its own, says who is who, and hangs."""


def comes(file: Path, process: subprocess.Popen[bytes]) -> bool:
    """Whether the run writes a file before it ends."""
    pause = threading.Event()
    for _ in range(3000):
        if file.exists():
            return True
        if process.poll() is not None:
            return False
        pause.wait(0.02)
    raise AssertionError(f"{file.name} never came")


def wait_for(file: Path, process: subprocess.Popen[bytes]) -> str:
    """The text of a file that the run is about to write."""
    assert comes(file, process), "the run ended early"
    return file.read_text()


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _answers(pid) if not Path("/proc/self").exists() else False
    return stat.rpartition(")")[2].split()[0] != "Z"


def die(pids: Iterable[int], within_s: float) -> bool:
    pause = threading.Event()
    deadline = time.monotonic() + within_s
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        pause.wait(0.01)
    return not any(map(is_alive, pids))


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def start(workspace: Path, environment: dict[str, str], prefix: list[str], *flags: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "ci_agent",
        "run",
        "--policy",
        "policy.yml",
        "--model",
        "scripted:script.yaml",
    ]
    return subprocess.Popen(
        [*prefix, *command, "--transcript", "t.json", *flags, "Go."],
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_ends_the_run_with_its_record_and_without_its_children(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write, number: signal.Signals
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, [])
    pids = [int(pid) for pid in wait_for(workspace / "pids", process).split()]
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=110)
    document = json.loads((workspace / "t.json").read_text())
    assert process.returncode == 128 + number
    assert (document["result"]["reason"], document["result"]["exit_code"]) == ("cancelled", 128 + number)
    assert document["result"]["error"] == f"received {number.name}"
    assert [(call["id"], call["status"]) for call in document["tool_calls"]] == [
        ("hang", "cancelled"),
        ("after", "cancelled"),
    ]
    assert json.loads(stdout) == document
    assert verify(workspace / "t.json") == []
    assert not (workspace / "after.txt").exists()
    assert [is_alive(pid) for pid in pids] == [False] * len(pids)


def test_sigint_counts_even_when_it_was_inherited_as_ignored(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, ["bash", "-c", 'trap "" INT; exec "$@"', "bash"])
    wait_for(workspace / "pids", process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=110)
    assert process.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_signal_before_the_run_has_begun_ends_it_though_it_was_inherited_as_ignored(
    number: signal.Signals, workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "t.json").write_text("earlier")
    ignoring = ["bash", "-c", 'trap "" INT TERM QUIT; exec "$@"', "bash", sys.executable, "-P", "-m", "ci_agent"]
    run = ["run", "--policy", "policy.yml", "--model", "scripted:script.yaml", "--transcript", "t.json"]
    process = subprocess.Popen(
        [*ignoring, *run, "--prompt-file", "-"],
        cwd=workspace,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"x" * 500_000)  # more than a pipe holds: when it is written, the run is reading its prompt
    process.send_signal(number)
    process.stdin.close()
    told = f"ci-agent: cancelled, exit code {128 + number} (received {number.name})\n"
    assert (process.stderr.read().decode(), process.wait(110)) == (told, 128 + number)
    process.stderr.close()
    assert sorted(path.name for path in workspace.iterdir()) == ["policy.yml", "script.yaml", "t.json"]
    assert (workspace / "t.json").read_text() == "earlier"


def test_a_killed_run_leaves_a_journal_that_recovers_and_verifies(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write, ci_agent: Callable[..., object]
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, [])
    pids = [int(pid) for pid in wait_for(workspace / "pids", process).split()]
    process.kill()
    process.communicate(timeout=110)
    assert die(pids, within_s=20)
    done = ci_agent("transcript", "recover", "t.json")
    assert isinstance(done, subprocess.CompletedProcess)
    assert (done.returncode, done.stdout.strip()) == (0, "t.json")
    document = json.loads((workspace / "t.json").read_text())
    assert document["result"]["exit_code"] is None
    assert [(call["id"], call["status"]) for call in document["tool_calls"]] == [
        ("hang", "unknown"),
        ("after", "cancelled"),
    ]


def test_a_second_run_on_the_same_transcript_or_lock_is_busy(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write, ci_agent: Callable[..., object]
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, [], "--lock", "lock")
    wait_for(workspace / "pids", process)
    common = ["run", "--policy", "policy.yml", "--model", "scripted:script.yaml"]
    codes = []
    for flags in (["--transcript", "t.json"], ["--lock", "lock"]):
        done = ci_agent(*common, *flags, "Go.")
        assert isinstance(done, subprocess.CompletedProcess)
        codes.append((done.returncode, done.stdout))
    process.terminate()
    process.communicate(timeout=110)
    assert codes == [(8, ""), (8, "")]
    assert process.returncode == 143


def test_a_closed_stdout_does_not_stop_the_run_and_is_not_a_success(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script("turns: [{text: hi}]"), policy(POLICY)
    process = start(workspace, environment, ["bash", "-c", '"$@" >&-', "bash"])
    _, stderr = process.communicate(timeout=110)
    result = json.loads((workspace / "t.json").read_text())["result"]
    assert (process.returncode, result["exit_code"], result["reason"]) == (1, 1, "completed")
    assert result["error"] == "stdout was closed before the result could be written to it"
    assert b"Traceback" not in stderr


def test_a_reader_that_leaves_early_makes_the_run_fail_in_its_record_too(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script("turns: [{text: " + "x" * 300_000 + "}]"), policy(POLICY)
    process = start(workspace, environment, ["bash", "-c", '"$@" | head -c 1 > first; exit ${PIPESTATUS[0]}', "bash"])
    _, stderr = process.communicate(timeout=110)
    result = json.loads((workspace / "t.json").read_text())["result"]
    assert (process.returncode, result["exit_code"]) == (1, 1)
    assert result["error"] == "the result could not be written to stdout: Broken pipe"
    assert verify(workspace / "t.json") == []
    assert b"Traceback" not in stderr


def check_that_it_was_cancelled(workspace: Path, exit_code: int) -> None:
    result = json.loads((workspace / "t.json").read_text())["result"]
    assert (result["reason"], result["exit_code"]) == ("cancelled", exit_code)
    assert verify(workspace / "t.json") == []
    assert not (workspace / "after.txt").exists()


def attempts(workspace: Path, at_most: int = 3) -> Iterator[int]:
    """For what has to be quick: on a machine that does other things as well, one of a few times. Each begins anew."""
    before = set(os.listdir(workspace))
    for number in range(at_most):
        yield number
        for name in set(os.listdir(workspace)) - before:
            (workspace / name).unlink()


def test_a_run_with_a_deaf_command_is_over_within_five_seconds(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(f"trap '' TERM INT HUP\n{WAIT}sleep 300\n")
    for _ in attempts(workspace):
        process = start(workspace, environment, [])
        pids = [int(pid) for pid in wait_for(workspace / "pids", process).split()]
        signalled = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=110)
        took_s = time.monotonic() - signalled
        assert process.returncode == 143
        check_that_it_was_cancelled(workspace, 143)
        assert [is_alive(pid) for pid in pids] == [False] * len(pids)
        if took_s < 5:
            break
    assert took_s < 5


def test_the_runs_time_ends_a_deaf_command(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(f"trap '' TERM INT HUP\n{WAIT}sleep 300\n")
    for number in attempts(workspace):
        timeout_s = (3, 9, 27)[number]
        process = start(workspace, environment, [], "--timeout", str(timeout_s))
        if comes(workspace / "pids", process):
            break
        process.communicate()
    pids = [int(pid) for pid in wait_for(workspace / "pids", process).split()]
    process.communicate(timeout=timeout_s + 30)  # the command would take five minutes
    result = json.loads((workspace / "t.json").read_text())["result"]
    assert (process.returncode, result["exit_code"]) == (124, 124)
    assert [is_alive(pid) for pid in pids] == [False] * len(pids)


def test_a_second_signal_does_not_let_commands_finish(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    script(TURNS), policy(POLICY)
    cleaning = "trap 'touch cleaning; sleep 1.5; touch cleaned' TERM\n"
    (workspace / "wait.sh").write_text(cleaning + WAIT.removesuffix("sleep 300\n") + "wait")
    for _ in attempts(workspace):
        process = start(workspace, environment, [])
        wait_for(workspace / "pids", process)
        process.send_signal(signal.SIGINT)
        wait_for(workspace / "cleaning", process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=110)
        assert process.returncode == 130
        check_that_it_was_cancelled(workspace, 130)
        finished = (workspace / "cleaned").exists()
        if not finished:
            break
    assert not finished


def test_the_death_of_the_shell_that_runs_the_command_ends_the_run(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    """What the GitHub runner does to a plain `run: ci-agent ...`: its signals reach bash, and bash alone."""
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, ["bash", "-e", "-c", '"$@"; true', "bash"])
    pids = [int(pid) for pid in wait_for(workspace / "pids", process).split()]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=110)  # until nobody holds the pipe any more
    check_that_it_was_cancelled(workspace, 143)
    assert [is_alive(pid) for pid in pids] == [False] * len(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_shell_that_ends_in_exec_hands_its_signals_on(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write, number: signal.Signals
) -> None:
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, ["bash", "-e", "-c", 'exec "$@"', "bash"])
    pids = [int(pid) for pid in wait_for(workspace / "pids", process).split()]
    process.send_signal(number)
    process.communicate(timeout=110)
    assert process.returncode == 128 + number
    check_that_it_was_cancelled(workspace, 128 + number)
    assert [is_alive(pid) for pid in pids] == [False] * len(pids)


def test_the_first_process_of_a_container_can_be_signalled(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write
) -> None:
    container = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run([*container, "true"], check=False).returncode:
        pytest.skip("no process namespace with a /proc of its own to be had here")
    script(TURNS), policy(POLICY)
    (workspace / "wait.sh").write_text(WAIT)
    process = start(workspace, environment, container)
    wait_for(workspace / "pids", process)
    os.kill(child_of(process.pid), signal.SIGTERM)
    process.communicate(timeout=110)
    assert process.returncode == 143
    check_that_it_was_cancelled(workspace, 143)


def child_of(parent: int) -> int:
    stats = (stat_of(folder).rpartition(")") for folder in Path("/proc").glob("[0-9]*"))
    (child,) = (int(head.split(" ")[0]) for head, _, tail in stats if tail and int(tail.split()[1]) == parent)
    return child


def stat_of(process: Path) -> str:
    try:
        return (process / "stat").read_text()
    except OSError:  # another test's, and it has just ended
        return ""
