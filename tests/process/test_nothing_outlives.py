"""Attacks on the promise that nothing outlives its call. Each leaves a canary, whose process must be gone."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.process import ProcessCancelled, Processes, ProcessResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")

Run = Callable[..., ProcessResult]
IsAlive = Callable[[str], bool]

CANARY = "echo $$ > canary; exec sleep 60 >/dev/null 2>&1"
WAIT_FOR_CANARY = "until [ -s canary ]; do sleep 0.01; done"

ESCAPES = {
    "background": "sh canary.sh &",
    "setsid": "setsid sh canary.sh &",
    "double fork": "(setsid sh -c '(sh canary.sh &)' &)",
    "nohup": "nohup sh canary.sh &",
    "without session, group and environment": "(env -i PATH=$PATH setsid sh -c 'setsid sh canary.sh & exit' &)",
    "under a name with parentheses": (
        "ln -s $(command -v sleep) 'x) S 1 1 1'\n"
        "(setsid sh -c 'echo $$ > canary; exec \"./x) S 1 1 1\" 60 >/dev/null' &)"
    ),
    "deaf to signals": "(trap '' TERM HUP INT; setsid sh canary.sh &)",
    "stopped": "(setsid sh -c 'echo $$ > canary; kill -STOP $$' >/dev/null 2>&1 &)",
    "holding the pipe": "(setsid sh -c 'echo $$ > canary; exec sleep 60' &)",
}


@pytest.fixture(autouse=True)
def _canary(tmp_path: Path) -> None:
    (tmp_path / "canary.sh").write_text(CANARY)


@pytest.mark.parametrize("escape", ESCAPES)
def test_nothing_outlives_a_command_that_ends_by_itself(run: Run, is_alive: IsAlive, escape: str) -> None:
    result = run(f"{ESCAPES[escape]}\n{WAIT_FOR_CANARY}")
    assert (result.exit_status, result.left_background) == (0, True)
    assert not is_alive("canary")


@pytest.mark.parametrize("escape", ESCAPES)
def test_nothing_outlives_a_command_that_is_cut_short(run: Run, is_alive: IsAlive, escape: str) -> None:
    cancel = CancelToken()

    def cut_short(chunk: bytes) -> None:
        if b"now" in chunk:
            cancel.cancel("time is up")

    with pytest.raises(ProcessCancelled):
        run(f"{ESCAPES[escape]}\n{WAIT_FOR_CANARY}; echo now; exec sleep 60", cancel=cancel, on_output=cut_short)
    assert not is_alive("canary")


def test_nothing_outlives_a_time_out(time_out: Run, is_alive: IsAlive) -> None:
    command = f"rm -f canary; {ESCAPES['double fork']}\n{WAIT_FOR_CANARY}; echo up; exec sleep 60"
    result = time_out(command, timeout_s=1.0)
    assert result.timed_out
    assert not is_alive("canary")


def test_a_process_whose_first_thread_has_ended_is_no_corpse(run: Run, is_alive: IsAlive) -> None:
    script = (
        "import ctypes, os, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print(os.getpid(), file=open('canary', 'w'), flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    result = run(f"(setsid '{sys.executable}' -c \"{script}\" >/dev/null 2>&1 &)\n{WAIT_FOR_CANARY}; sleep 0.1")
    assert result.left_background
    assert not is_alive("canary")


def test_a_process_that_hides_its_environment_does_not_hide_itself(run: Run, is_alive: IsAlive) -> None:
    script = (
        "import ctypes, os, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"  # PR_SET_DUMPABLE
        "print(os.getpid(), file=open('canary', 'w'), flush=True)\n"
        "time.sleep(60)\n"
    )
    result = run(f"(setsid '{sys.executable}' -c \"{script}\" >/dev/null 2>&1 &)\n{WAIT_FOR_CANARY}")
    assert result.left_background
    assert not is_alive("canary")


def test_a_bomb_that_forks_into_sessions_is_cleared_away(run: Run, tmp_path: Path) -> None:
    """Bounded to 127 processes, for a limit on processes would not bind root."""
    (tmp_path / "bomb").write_text(
        '[ "$1" -gt 0 ] && for n in 1 2; do setsid sh bomb $(($1 - 1)) & done\necho $$ >> pids; exec sleep 60\n'
    )
    result = run("(sh bomb 6 &); until [ $(wc -l < pids 2>/dev/null || echo 0) -eq 127 ]; do sleep 0.05; done")
    assert result.left_background
    pids = (tmp_path / "pids").read_text().split()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_a_bomb_that_refills_itself_is_cleared_away(run: Run, tmp_path: Path) -> None:
    """Each of a few processes replaces itself by a new session for ever: what is listed is gone when it is killed."""
    (tmp_path / "bomb").write_text("[ -e stop ] && exit; echo $$ >> pids; setsid sh bomb >/dev/null 2>&1 &\n")
    result = run("(setsid sh bomb &); until [ $(wc -l < pids 2>/dev/null || echo 0) -gt 50 ]; do sleep 0.05; done")
    try:
        assert result.left_background
        count = len((tmp_path / "pids").read_text().split())
        threading.Event().wait(0.3)
        assert len((tmp_path / "pids").read_text().split()) == count
    finally:
        (tmp_path / "stop").touch()


def test_corpses_are_buried(run: Run, tmp_path: Path) -> None:
    are_dead = "for pid in $(cat pids); do until [ ! -e /proc/$pid ] || grep -q ') Z' /proc/$pid/stat; do :; done; done"
    result = run(
        "for n in 1 2 3; do (setsid sh -c 'echo $$ >> pids' &); done\n"
        f"until [ $(wc -l < pids 2>/dev/null || echo 0) -eq 3 ]; do :; done; {are_dead} 2>/dev/null"
    )
    assert not result.left_background
    pids = (tmp_path / "pids").read_text().split()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_a_call_leaves_the_background_of_another_alone(run: Run, tmp_path: Path, is_alive: IsAlive) -> None:
    hidden = "(env -i PATH=$PATH setsid sh -c 'echo $$ > other; until [ -e go ]; do sleep 0.01; done; touch done' &)"
    results: list[ProcessResult] = []
    command = f"{hidden}\nuntil [ -s other ]; do sleep 0.01; done; echo up; until [ -e done ]; do sleep 0.01; done"
    up = threading.Event()
    thread = threading.Thread(target=lambda: results.append(run(command, on_output=lambda _: up.set())))
    thread.start()
    assert up.wait(30)
    run(f"{ESCAPES['setsid']}\n{WAIT_FOR_CANARY}")
    assert (is_alive("canary"), is_alive("other")) == (False, True)
    (tmp_path / "go").touch()
    thread.join()
    assert [result.exit_status for result in results] == [0]


def test_an_orphan_dies_with_its_own_call_while_another_runs(run: Run, is_alive: IsAlive) -> None:
    up = threading.Event()
    cancel = CancelToken()

    def run_beside() -> None:
        with suppress(ProcessCancelled):
            run("echo up; exec sleep 60", cancel=cancel, on_output=lambda _: up.set())

    thread = threading.Thread(target=run_beside)
    thread.start()
    assert up.wait(30)
    run(f"{ESCAPES['without session, group and environment']}\n{WAIT_FOR_CANARY}")
    assert not is_alive("canary")
    cancel.cancel("end")
    thread.join()


def test_children_that_were_there_before_are_left_alone(run: Run) -> None:
    server = subprocess.Popen(["sleep", "60"])
    finished = subprocess.Popen(["sh", "-c", "exit 7"])
    run(f"{ESCAPES['setsid']}\n{WAIT_FOR_CANARY}")
    assert (server.poll(), finished.wait(110)) == (None, 7)
    server.terminate()
    assert server.wait(110) == -signal.SIGTERM


def test_all_can_be_killed_at_once(run: Run, is_alive: IsAlive, processes: Processes) -> None:
    results: list[ProcessResult] = []
    up = threading.Event()
    command = f"{ESCAPES['double fork']}\n{WAIT_FOR_CANARY}; echo up; exec sleep 60"
    thread = threading.Thread(target=lambda: results.append(run(command, on_output=lambda _: up.set())))
    thread.start()
    assert up.wait(30)
    processes.kill_all()
    thread.join(50)
    assert [(result.exit_status, result.signal) for result in results] == [(None, signal.SIGKILL)]
    assert not is_alive("canary")


def test_the_end_of_all_is_the_end_of_what_still_runs(python: Callable[[str], str], is_alive: IsAlive) -> None:
    script = """
import os, threading
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import open_processes
up = threading.Event()
results = []
def run(*argv):
    return processes.run(argv, cwd=Path("."), env=dict(os.environ), timeout_s=None, cancel=CancelToken(),
                         on_output=lambda _: up.set())
with open_processes() as processes:
    thread = threading.Thread(target=lambda: results.append(run("sh", "-c",
        "(env -i PATH=$PATH setsid sh -c 'echo $$ > canary; exec sleep 60' &) "
        "&& until [ -s canary ]; do :; done; echo up; sleep 60")))
    thread.start()
    up.wait()
thread.join()
print(results[0].signal)
try:
    run("true")
except ToolError as error:
    print(error)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("nobody left")
"""
    assert python(script) == "9\nthe run is over; nothing more is started\nnobody left\n"
    assert not is_alive("canary")
