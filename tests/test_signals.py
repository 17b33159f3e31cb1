"""Real signals to real processes. Each program says `up` and its id when it can be signalled, then how it ended."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.signals import cancel_on_signals

PRELUDE = """
import os, signal, sys, threading, time
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.signals import cancel_on_signals
cancel = CancelToken()
second = threading.Event()
"""

WAIT = """
with cancel_on_signals(cancel, second.set, follow_parent=True) as watch:
    print("up", os.getpid(), flush=True)
    cancel.wait()
print(cancel.reason, watch.received_signal, second.is_set())
"""

Program: TypeAlias = "subprocess.Popen[str]"
Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start bash with a command that runs the script somehow; everything is killed in the end."""
    started: list[Program] = []

    def start_bash(script: str, command: str = 'exec "$PYTHON" "$SCRIPT"') -> Program:
        path = tmp_path / "script.py"
        path.write_text(PRELUDE + script)
        environment = {**os.environ, "PYTHON": sys.executable, "SCRIPT": str(path)}
        argv = ["bash", "-e", "-c", command]
        started.append(
            subprocess.Popen(
                argv,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield start_bash
    for program in started:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def id_when_up(program: Program) -> int:
    assert program.stdout
    word, _, pid = program.stdout.readline().partition(" ")
    assert word == "up"
    return int(pid)


def said(program: Program) -> str:
    return program.communicate(timeout=110)[0].rstrip("\n")


FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS}
UNCATCHABLE = {signal.SIGKILL, signal.SIGSTOP}
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE, signal.SIGXFSZ}
"""By themselves they do nothing; Python ignores the last two."""
STOPPING = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


EACH_SIGNAL = """
for number in map(int, os.environ["NUMBERS"].split()):
    cancel = CancelToken()
    with cancel_on_signals(cancel, second.set) as watch:
        signal.raise_signal(number)
    print(watch.received_signal, cancel.reason)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other signals")
def test_every_signal_that_would_end_the_process_cancels(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = sorted(signal.valid_signals() - FAULTS - UNCATCHABLE - HARMLESS - STOPPING)
    monkeypatch.setenv("NUMBERS", " ".join(str(int(number)) for number in numbers))
    lines = said(start(EACH_SIGNAL)).splitlines()
    assert [line.split()[:2] for line in lines] == [[str(int(number)), "received"] for number in numbers]
    assert f"{signal.SIGQUIT:d} received SIGQUIT" in lines
    assert f"{signal.SIGRTMIN + 2} received signal {signal.SIGRTMIN + 2}" in lines


@pytest.mark.parametrize("number", sorted(HARMLESS), ids=lambda number: number.name)
def test_a_signal_that_would_do_nothing_does_nothing(number: signal.Signals) -> None:
    cancel = CancelToken()
    with cancel_on_signals(cancel, pytest.fail):
        signal.raise_signal(number)
    assert cancel.reason is None


def test_a_signal_that_a_library_takes_care_of_stays_its_own() -> None:
    taken: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: taken.append(number))
    cancel = CancelToken()
    try:
        with cancel_on_signals(cancel, pytest.fail):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (taken, cancel.reason) == ([signal.SIGUSR1], None)


def test_an_alarm_that_was_set_before_the_exec_cancels(start: Start) -> None:
    set_alarm = "import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])"
    for seconds in (1, 5, 20):  # a busy machine takes long to start a program, and then there is nothing to cancel
        command = f'exec "$PYTHON" -c "{set_alarm.replace("alarm(1)", f"alarm({seconds})")}" "$PYTHON" "$SCRIPT"'
        up, *ended = said(start(WAIT, command)).splitlines() or [""]
        if up:
            break
    assert ended == ["received SIGALRM 14 False"]


def test_a_limit_of_processor_time_cancels(start: Start) -> None:
    spin = WAIT.replace("    cancel.wait()", "    while not cancel.is_cancelled: pass")
    program = start(spin, 'ulimit -S -t 1; exec "$PYTHON" "$SCRIPT"')
    id_when_up(program)
    assert said(program) == f"received SIGXCPU {signal.SIGXCPU:d} False"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_each_signal_cancels_and_is_remembered(start: Start, number: signal.Signals) -> None:
    program = start(WAIT)
    os.kill(id_when_up(program), number)
    assert said(program) == f"received {number.name} {number:d} False"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_that_was_inherited_as_ignored_counts(start: Start, number: signal.Signals) -> None:
    program = start(WAIT, 'trap \'\' INT TERM QUIT; exec "$PYTHON" "$SCRIPT"')
    os.kill(id_when_up(program), number)
    assert said(program) == f"received {number.name} {number:d} False"


def test_sigint_reaches_a_background_job_of_a_shell(start: Start) -> None:
    program = start(WAIT, '"$PYTHON" "$SCRIPT" & wait')
    os.kill(id_when_up(program), signal.SIGINT)
    assert said(program) == "received SIGINT 2 False"


def test_a_hangup_under_nohup_does_not_count(start: Start) -> None:
    program = start(WAIT, 'trap \'\' HUP; exec "$PYTHON" "$SCRIPT"')
    pid = id_when_up(program)
    os.kill(pid, signal.SIGHUP)
    os.kill(pid, signal.SIGTERM)
    assert said(program) == "received SIGTERM 15 False"


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGQUIT])
def test_a_second_signal_makes_things_faster(start: Start, second: signal.Signals) -> None:
    program = start(
        """
with cancel_on_signals(cancel, second.set) as watch:
    print("up", os.getpid(), flush=True)
    cancel.wait()
    print("up", os.getpid(), flush=True)
    second.wait()
print(cancel.reason, watch.received_signal)
"""
    )
    os.kill(id_when_up(program), signal.SIGINT)
    os.kill(id_when_up(program), second)
    assert said(program) == "received SIGINT 2"


@pytest.mark.parametrize(
    "busy",
    [
        "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)",
        "lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "while True: pass",
    ],
)
def test_a_signal_counts_while_the_main_thread_is_busy(start: Start, busy: str) -> None:
    program = start(
        f"""
with cancel_on_signals(cancel, second.set):
    cancel.on_cancel(lambda: os._exit(42))
    print("up", os.getpid(), flush=True)
    {busy}
"""
    )
    os.kill(id_when_up(program), signal.SIGTERM)
    assert program.wait(110) == 42


def test_the_children_of_a_signalled_run_die_and_it_exits_with_128_and_the_number(start: Start, tmp_path: Path) -> None:
    program = start(
        """
from ci_agent.process import ProcessCancelled, child_environment, open_processes
command = "setsid sh -c 'echo $$ > canary; exec sleep 60' & until [ -s canary ]; do :; done; echo up; sleep 60"
def say_up(_):
    print("up", os.getpid(), flush=True)
with open_processes() as processes, cancel_on_signals(cancel, processes.kill_all) as watch:
    try:
        processes.run(["sh", "-c", command], cwd=Path(__file__).parent, env=child_environment(os.environ),
                      timeout_s=None, cancel=cancel, on_output=say_up)
    except ProcessCancelled:
        sys.exit(128 + watch.received_signal)
"""
    )
    os.kill(id_when_up(program), signal.SIGTERM)
    assert program.wait(110) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "canary").read_text()), 0)


def test_the_end_of_the_shell_that_runs_the_command_counts_as_sigterm(start: Start) -> None:
    """What the GitHub runner does to `run: ci-agent ...`: it signals bash, and bash alone."""
    program = start(WAIT, '"$PYTHON" "$SCRIPT"; true')
    assert id_when_up(program) != program.pid
    os.kill(program.pid, signal.SIGTERM)
    assert said(program) == "the process that had started the run has ended 15 False"


OUTLIVE_PARENT = """
from ci_agent import signals
signals.LOOK_EVERY_S = 0.01
with cancel_on_signals(cancel, second.set, follow_parent=FOLLOW) as watch:
    parent = os.getppid()
    print("up", parent, flush=True)
    while os.getppid() == parent:
        time.sleep(0.01)
    print(cancel.wait(0.2))
"""


@pytest.mark.parametrize(("follow", "command"), [("False", "true"), ("True", "trap '' HUP")])
def test_a_run_that_shall_outlive_its_parent_does(start: Start, follow: str, command: str) -> None:
    program = start(OUTLIVE_PARENT.replace("FOLLOW", follow), f'{command}; "$PYTHON" "$SCRIPT"; true')
    os.kill(id_when_up(program), signal.SIGKILL)
    assert said(program) == "False"


def test_the_end_of_the_thread_that_started_the_run_is_not_the_end_of_its_parent(start: Start) -> None:
    script = """
from ci_agent import signals
signals.LOOK_EVERY_S = 0.01
with cancel_on_signals(cancel, second.set, follow_parent=True) as watch:
    print("up", os.getpid(), flush=True)
    sys.stdin.readline()
    print(cancel.wait(0.2))
"""
    programs: list[Program] = []
    thread = threading.Thread(target=lambda: programs.append(start(script)))
    thread.start()
    thread.join()
    id_when_up(programs[0])
    assert programs[0].communicate("the thread is gone\n", timeout=110)[0] == "False\n"


def test_a_run_that_is_process_1_of_a_container_can_be_signalled(start: Start) -> None:
    isolate = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if (
        not (shutil.which("unshare") and shutil.which("ps"))
        or subprocess.run([*isolate, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no process namespace to be had here")
    outside = f'{" ".join(isolate)} sh -c \'exec "$PYTHON" "$SCRIPT"\' & echo up $!; wait'
    program = start(WAIT, outside)
    unshare = id_when_up(program)
    assert id_when_up(program) == 1
    (child,) = (int(pid) for pid in subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(unshare)]).split())
    os.kill(child, signal.SIGTERM)
    assert said(program) == "received SIGTERM 15 False"


def test_what_was_set_before_is_set_again() -> None:
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = [signal.getsignal(number) for number in numbers]
    cancel = CancelToken()
    with cancel_on_signals(cancel, pytest.fail) as watch:
        signal.raise_signal(signal.SIGHUP)
    assert (cancel.reason, watch.received_signal) == ("received SIGHUP", signal.SIGHUP)
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_without_a_signal_nothing_is_cancelled() -> None:
    cancel = CancelToken()
    with cancel_on_signals(cancel, pytest.fail, follow_parent=True) as watch:
        pass
    assert (cancel.reason, watch.received_signal) == (None, None)


def test_every_signal_of_a_storm_is_counted() -> None:
    seconds: list[None] = []
    with cancel_on_signals(CancelToken(), lambda: seconds.append(None)) as watch:
        for _ in range(500):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
    assert (watch.received_signal, len(seconds)) == (signal.SIGTERM, 999)


def test_it_ends_even_if_its_watch_cannot_be_told() -> None:
    threads = threading.enumerate()
    with cancel_on_signals(CancelToken(), pytest.fail), open(os.devnull) as takes_nothing:
        write_end = signal.set_wakeup_fd(-1)
        kept = os.dup(write_end)
        os.dup2(takes_nothing.fileno(), write_end, inheritable=False)
    os.close(kept)
    assert set(threading.enumerate()) <= set(threads)


LOST_IN_A_DESTRUCTOR = """
from ci_agent.signals import end_on_signals
class Swallows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000): pass
end_on_signals()
Swallows()
Swallows()
print("lost")
"""


def test_before_a_run_a_second_signal_ends_what_lost_the_first(start: Start) -> None:
    program = start(LOST_IN_A_DESTRUCTOR)
    assert (said(program), program.returncode) == ("", -signal.SIGTERM)
