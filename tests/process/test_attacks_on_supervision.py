"""Attacks on those who supervise a command. Each leaves a canary, whose process must be gone."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.process import Processes, ProcessResult
from ci_agent.process import processes as processes_module
from ci_agent.process.call import LOST
from ci_agent.spawn.supervisor import SERVER_GONE, STOPS_OWNER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and subreapers")

Run = Callable[..., ProcessResult]
IsAlive = Callable[[str], bool]

CANARY = "(setsid sh -c 'echo $$ > canary; exec sleep 60' >/dev/null 2>&1 &); until [ -s canary ]; do sleep 0.01; done"

SERVER = "$(sed 's/.*) . \\([0-9]*\\) .*/\\1/' /proc/$PPID/stat)"
"""The parent of the supervisor, which is the parent of the command."""


def test_a_command_that_kills_its_supervisor_is_killed(run: Run, is_alive: IsAlive) -> None:
    result = run(f"{CANARY}; echo before; kill -9 $PPID; exec sleep 60")
    assert (result.killed_because, result.signal, result.output.head) == (LOST, signal.SIGKILL, b"before\n")
    assert not is_alive("canary")
    assert run("echo the next works").exit_status == 0


def test_a_command_that_kills_the_server_is_killed(run: Run, is_alive: IsAlive) -> None:
    result = run(f"{CANARY}; kill -9 {SERVER}; exec sleep 60")
    assert (result.killed_because, result.signal) == (SERVER_GONE, signal.SIGKILL)
    assert not is_alive("canary")
    assert run("echo the next works").exit_status == 0


def test_the_death_of_a_supervisor_leaves_other_calls_alone(run: Run, tmp_path: Path) -> None:
    up = threading.Event()
    results: list[ProcessResult] = []
    command = "echo up; until [ -e go ]; do sleep 0.01; done; (sleep 0.1 &); echo fine"
    thread = threading.Thread(target=lambda: results.append(run(command, on_output=lambda _: up.set())))
    thread.start()
    assert up.wait(30)
    run(f"{CANARY}; kill -9 $PPID; exec sleep 60")
    (tmp_path / "go").touch()
    thread.join()
    assert [result.output.head for result in results] == [b"up\nfine\n"]


def test_a_supervisor_that_was_killed_while_it_had_nothing_to_do_is_not_used(run: Run, processes: Processes) -> None:
    pid = int(run("echo $PPID").output.head)
    os.kill(pid, signal.SIGKILL)
    while processes._idle[-1].is_alive():
        threading.Event().wait(0.01)
    assert run("echo the next works").output.head == b"the next works\n"


@pytest.mark.parametrize("target", ["$PPID", f"$PPID {SERVER}"], ids=["supervisor", "supervisor and server"])
def test_a_command_that_stops_those_who_supervise_it_is_killed_at_its_time_out(
    run: Run, time_out: Run, is_alive: IsAlive, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(processes_module, "_SILENT_AFTER_S", 0.5)
    result = time_out(f"rm -f canary; {CANARY}; kill -STOP {target}; echo stopped; exec sleep 60", timeout_s=1.5)
    assert (result.timed_out, result.killed_because, result.output.head) == (True, LOST, b"stopped\n")
    assert not is_alive("canary")
    assert run("echo the next works").exit_status == 0


def test_a_command_that_floods_its_supervisor_with_signals_changes_nothing(run: Run) -> None:
    flood = "for n in $(seq 50); do kill -INT $PPID; kill -TERM $PPID; kill -HUP $PPID; kill -QUIT $PPID; done"
    result = run(f"{flood}; kill -TERM {SERVER}; exit 7")
    assert (result.exit_status, result.killed_because) == (7, None)


def test_the_supervisors_cannot_be_looked_into_by_processes_of_their_user(as_nobody: Callable[[str], str]) -> None:
    script = """
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
with open_processes() as processes:
    result = processes.run(["sh", "-c", "ls /proc/$PPID/fd; cat /proc/$PPID/environ; echo done"], cwd=Path("/"),
                           env={"PATH": "/usr/bin:/bin"}, timeout_s=30, cancel=CancelToken())
    print(result.output.head.decode())
"""
    said = as_nobody(script)
    assert said.count("Permission denied") == 2
    assert said.rstrip().endswith("done")


KILLS_BOTH = f"""
import os, sys
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
with open_processes(adopt_orphans=True) as processes:
    def run(command):
        return processes.run(["bash", "-c", command], cwd=Path("."), env=dict(os.environ), timeout_s=30,
                             cancel=CancelToken())
    result = run({CANARY + "; kill -9 " + SERVER + " $PPID; exec sleep 60"!r})
    print(result.signal, run("echo next").output.head)
"""


def test_a_command_that_kills_supervisor_and_server_is_ended_by_a_program_that_adopts(
    python: Callable[[str], str], is_alive: IsAlive
) -> None:
    assert python(KILLS_BOTH) == "9 b'next\\n'\n"
    assert not is_alive("canary")


STOPPED = """
import os, time
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
with open_processes() as processes:
    started = time.monotonic()
    command = f"COMMAND".replace("OWNER", str(os.getpid()))
    result = processes.run(["bash", "-c", command], cwd=Path("."), env=dict(os.environ), timeout_s=TIMEOUT,
                           cancel=CancelToken())
    print(result.timed_out, result.exit_status, result.killed_because, time.monotonic() - started < 30)
"""


@pytest.mark.parametrize(
    ("command", "timeout_s", "ends"),
    [
        ("kill -STOP OWNER; exec sleep 60", 1, "True None None True"),
        ("kill -STOP OWNER", 60, "False 0 None True"),
        ("while :; do kill -STOP OWNER; done", 60, f"False None {STOPS_OWNER} True"),
    ],
    ids=["once", "and leave", "again and again"],
)
def test_attack_stop_the_process_that_keeps_the_time(
    python: Callable[[str], str], command: str, timeout_s: int, ends: str
) -> None:
    assert python(STOPPED.replace("COMMAND", command).replace("TIMEOUT", str(timeout_s))) == f"{ends}\n"


OWNER = f"""
import os, signal, threading
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
with open_processes() as processes:
    processes.run(["bash", "-c", {CANARY!r} + "; echo $$ $PPID > pids; echo up; exec sleep 60"], cwd=Path("."),
                  env=dict(os.environ), timeout_s=None, cancel=CancelToken(),
                  on_output=lambda _: END)
"""

ENDS = {
    "kill -9": "os.kill(os.getpid(), signal.SIGKILL)",
    "an exit without cleaning up": "os._exit(0)",
    "kill -9 while a fork of it holds all descriptors": "os.fork() and os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_outlives_the_process_that_started_it(tmp_path: Path, is_alive: IsAlive, end: str) -> None:
    script = OWNER.replace("END", ENDS[end])
    owner = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, start_new_session=True)
    owner.wait(110)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for _ in range(2_000):
        if not (is_alive("canary") or any(Path(f"/proc/{pid}").exists() for pid in pids)):
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("something was alive after twenty seconds, of the minute that it would have lived")
    with_fork = "fork" in end
    if with_fork:
        os.killpg(owner.pid, signal.SIGKILL)


def test_a_server_that_does_not_leave_is_ended(python: Callable[[str], str]) -> None:
    script = f"""
import os
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
with open_processes() as processes:
    command = {"kill -STOP " + SERVER + "; echo " + SERVER!r}
    result = processes.run(["bash", "-c", command], cwd=Path("."), env=dict(os.environ), timeout_s=30,
                           cancel=CancelToken())
print(os.path.exists(f"/proc/{{int(result.output.head)}}"))
"""
    assert python(script) == "False\n"


def test_what_starts_commands_has_no_variable_of_ours(run: Run) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may look into it")
    names = run(f"tr '\\0' '\\n' < /proc/{SERVER}/environ | cut -d= -f1").output.head.decode().split()
    assert set(names) <= {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LC_CTYPE"}


KILLED_RUN = f"""
import os, signal, subprocess, sys, time
from pathlib import Path
Path("wait.sh").write_text({CANARY + "; echo $$ $PPID $(cat canary) > new; mv new pids; exec sleep 60"!r})
Path("policy.yml").write_text('policy: 1\\nrules: [{{id: wait, allow: bash, command: ["bash wait.sh"]}}]\\n')
Path("script.yaml").write_text('turns: [{{tool_calls: [{{name: bash, arguments: {{command: bash wait.sh}}}}]}}]')
options = [] if sys.flags.no_site == 0 else ["-S"]
words = ["-m", "ci_agent", "run", "--policy", "policy.yml", "--model", "scripted:script.yaml"]
words += ["--transcript", "t.json", "Go."]  # a journal that was left elsewhere would stay on the machine
run = subprocess.Popen([sys.executable, *options, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
while not os.path.exists("pids"):
    assert run.poll() is None
    time.sleep(0.01)
run.kill()
run.wait()
deadline = time.monotonic() + 20
pids = Path("pids").read_text().split()
while (alive := [pid for pid in pids if Path(f"/proc/{{pid}}").exists()]) and time.monotonic() < deadline:
    time.sleep(0.01)
print(len(pids), alive)
"""


def test_nothing_outlives_a_run_of_an_ordinary_user_that_is_killed(as_nobody: Callable[[str], str]) -> None:
    assert as_nobody(KILLED_RUN) == "3 []\n"


def test_nothing_outlives_a_run_that_is_killed(python: Callable[[str], str]) -> None:
    assert python(KILLED_RUN) == "3 []\n"
