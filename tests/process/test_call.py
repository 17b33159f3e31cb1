import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Output, ProcessCancelled, Processes, ProcessResult

Run = Callable[..., ProcessResult]

PRINT_STREAMS = "import os; [os.write(1 + n % 2, b'%d\\n' % n) for n in range(200)]"


def text(result: ProcessResult) -> str:
    return (result.output.head + result.output.tail).decode()


def test_a_program_that_ends_well(run: Run) -> None:
    result = run("echo hello")
    assert result == ProcessResult(
        exit_status=0,
        signal=None,
        timed_out=False,
        duration_s=result.duration_s,
        output=Output(b"hello\n", b"", 6, 1),
        stderr=None,
        left_background=False,
    )
    assert 0 < result.duration_s < 30


@pytest.mark.parametrize("status", [1, 2, 42, 126, 127, 255])
def test_the_exit_status_is_told(run: Run, status: int) -> None:
    result = run(f"exit {status}")
    assert (result.exit_status, result.signal) == (status, None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_signal_that_ended_it_is_told(run: Run, number: signal.Signals) -> None:
    result = run(f"ulimit -c 0; kill -{number:d} $$")
    assert (result.exit_status, result.signal, result.timed_out) == (None, number, False)


def test_stdout_and_stderr_come_in_the_order_of_writing(run: Run) -> None:
    result = run(f'exec "{sys.executable}" -c "{PRINT_STREAMS}"')
    assert text(result) == "".join(f"{n}\n" for n in range(200))


def test_stderr_can_be_kept_apart(run: Run) -> None:
    result = run("echo out; echo err >&2; echo more", separate_stderr=True)
    assert (result.output, result.stderr) == (Output(b"out\nmore\n", b"", 9, 2), Output(b"err\n", b"", 4, 1))


def test_a_flood_on_the_one_stream_does_not_block_the_other(run: Run) -> None:
    result = run("head -c 1000000 /dev/zero >&2; echo done", separate_stderr=True, head_bytes=10, tail_bytes=0)
    assert (result.output.head, result.stderr) == (b"done\n", Output(b"\0" * 10, b"", 1_000_000, 0))


def test_fifty_megabytes_are_counted_and_both_ends_kept(run: Run) -> None:
    result = run("echo first; yes | head -c 50000000; echo last", head_bytes=8, tail_bytes=7)
    assert result.output == Output(b"first\ny\n", b"y\nlast\n", 50_000_011, 25_000_002)


@pytest.mark.slow
def test_two_gigabytes_leave_memory_as_it_was(python: Callable[[str], str]) -> None:
    script = """
import os, resource
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
with open_processes() as processes:
    result = processes.run(["sh", "-c", "yes | head -c 2147483648"], cwd=Path("."), env=dict(os.environ), timeout_s=100,
                           cancel=CancelToken())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(result.exit_status, result.output.total_bytes, peak if os.uname().sysname == "Linux" else peak // 1024)
"""
    status, total_bytes, peak_kib = map(int, python(script).split())
    assert (status, total_bytes) == (0, 2**31)
    assert peak_kib < 100_000


def test_every_chunk_is_handed_on(run: Run) -> None:
    chunks: list[bytes] = []
    run("seq 100000", on_output=chunks.append, head_bytes=1, tail_bytes=1)
    assert b"".join(chunks) == b"".join(b"%d\n" % n for n in range(1, 100_001))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="pipes can be opened anew on Linux only")
def test_output_that_is_stolen_from_the_pipe_does_not_block_the_call(run: Run, tmp_path: Path) -> None:
    """Both pipes have something; while the first is being read, somebody takes what is in the second."""
    cancel = CancelToken()

    def steal(chunk: bytes) -> None:
        if chunk == b"ready\n":
            (tmp_path / "go").touch()
            while not (tmp_path / "both").exists():
                time.sleep(0.01)
        else:
            pid = (tmp_path / "pid").read_text().strip()
            stolen = os.open(f"/proc/{pid}/fd/2", os.O_RDONLY | os.O_NONBLOCK)
            assert os.read(stolen, 100) == b"err\n"
            os.close(stolen)
            cancel.cancel("seen")

    command = (
        "echo $$ > pid; echo ready; until [ -e go ]; do :; done; echo out; echo err >&2; touch both; exec sleep 60"
    )
    with pytest.raises(ProcessCancelled) as caught:
        run(command, cancel=cancel, separate_stderr=True, on_output=steal)
    result = caught.value.result
    assert (result.signal, result.output.head, result.stderr) == (15, b"ready\nout\n", Output(b"", b"", 0, 0))


@pytest.mark.parametrize("command", ["read -r answer", "read -r answer </dev/tty", "head -c1 | grep -q ."])
def test_what_asks_for_input_fails_at_once(run: Run, command: str) -> None:
    result = run(command)
    assert result.exit_status != 0
    assert result.duration_s < 20


WITH_INPUT_AND_CORES = """
import os, resource
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
with open_processes() as processes:
    argv = ["bash", "-c", "cat; ulimit -c; ulimit -Hc"]
    result = processes.run(argv, cwd=Path("/"), env=dict(os.environ), timeout_s=60, cancel=CancelToken())
print(result.output.head)
"""


def test_input_and_core_files_of_this_process_are_not_the_childs() -> None:
    """Under pytest the input is empty, and core files are often off."""
    command = [sys.executable, "-c", WITH_INPUT_AND_CORES]
    done = subprocess.run(command, input=b"canary", capture_output=True, check=True)
    assert done.stdout == b"b'0\\n0\\n'\n"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists its descriptors through /proc")
def test_no_descriptor_of_ours_reaches_the_child(run: Run, tmp_path: Path) -> None:
    with open(tmp_path / "secret", "w") as file:
        os.set_inheritable(file.fileno(), True)
        result = run("for fd in /proc/$$/fd/*; do readlink $fd; done")
    pipe = text(result).splitlines()[1]
    assert pipe.startswith("pipe:")
    assert text(result).splitlines() == ["/dev/null", pipe, pipe]


def test_the_child_leads_its_own_session_and_group_without_a_terminal(run: Run) -> None:
    script = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))"
    assert text(run(f'exec "{sys.executable}" -c "{script}"')) == "True\n"


def test_the_environment_is_the_one_given(run: Run) -> None:
    result = run("exec env", env={"PATH": "/usr/bin:/bin", "A": "é"})
    names = {line.split("=")[0] for line in text(result).splitlines()}
    assert names == {"PATH", "A", "PWD", "SHLVL"}  # the last two are bash's own


def test_a_time_out_lets_the_program_clean_up_and_keeps_what_it_printed(time_out: Run) -> None:
    command = "trap 'echo cleaned up; exit 3' TERM; echo started; sleep 60 & wait"
    result = time_out(command, timeout_s=1.0)
    assert (text(result), result.exit_status, result.timed_out) == ("started\ncleaned up\n", 3, True)


def test_a_program_that_ignores_the_time_out_is_killed(time_out: Run) -> None:
    result = time_out("trap '' TERM; echo deaf; while :; do read -t 60 <> <(:); done", timeout_s=0.5)
    assert (text(result), result.signal, result.timed_out) == ("deaf\n", signal.SIGKILL, True)
    assert result.duration_s < 50


def test_no_time_out_means_to_wait(run: Run) -> None:
    assert run("sleep 0.1", timeout_s=None).exit_status == 0


def test_a_time_out_beyond_all_clocks_is_no_time_out(run: Run) -> None:
    assert run("true", timeout_s=1e18).exit_status == 0


def test_cancellation_ends_a_talking_program_and_its_output_is_kept(run: Run) -> None:
    cancel = CancelToken()
    with pytest.raises(ProcessCancelled) as caught:
        run("echo ready; exec sleep 60", cancel=cancel, on_output=lambda _: cancel.cancel("enough"))
    assert (caught.value.reason, text(caught.value.result)) == ("enough", "ready\n")
    assert (caught.value.result.signal, caught.value.result.timed_out) == (signal.SIGTERM, False)


def test_cancellation_from_another_thread_wakes_the_wait_for_a_silent_program(run: Run) -> None:
    cancel = CancelToken()
    ready = threading.Event()

    def cancel_when_ready() -> None:
        ready.wait(30)
        cancel.cancel("the run was cancelled")

    canceller = threading.Thread(target=cancel_when_ready)
    canceller.start()
    with pytest.raises(ProcessCancelled, match="the run was cancelled"):
        run("echo ready; exec sleep 60", cancel=cancel, on_output=lambda _: ready.set())
    canceller.join()


def test_after_cancellation_nothing_is_started(run: Run, tmp_path: Path) -> None:
    cancel = CancelToken()
    cancel.cancel("too late")
    with pytest.raises(Cancelled, match="too late"):
        run("touch canary", cancel=cancel)
    assert list(tmp_path.iterdir()) == []


def test_a_finished_call_leaves_no_callback_on_the_token(run: Run) -> None:
    cancel = CancelToken()
    run("true", cancel=cancel)
    cancel.cancel("later")  # would write into a closed descriptor
    assert cancel.is_cancelled


def test_an_error_of_the_listener_ends_the_program_and_is_passed_on(run: Run, is_alive: Callable[[str], bool]) -> None:
    def fail(_: bytes) -> None:
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        run("echo $$ > pid; echo ready; exec sleep 60", on_output=fail)
    assert not is_alive("pid")


def test_a_program_that_closes_its_output_is_waited_for(run: Run) -> None:
    result = run("exec >&- 2>&-; sleep 0.1; exit 5")
    assert (text(result), result.exit_status) == ("", 5)


AFTER_THE_END = "while kill -0 $$ 2>/dev/null; do :; done"
"""A part of a command waits for the end of the process that was started."""


def test_output_after_the_end_of_the_program_is_heard(run: Run) -> None:
    result = run(f"({AFTER_THE_END}; echo late) & echo early")
    assert text(result) == "early\nlate\n"


def test_output_through_a_process_substitution_is_whole(run: Run) -> None:
    assert text(run(f"echo one > >({AFTER_THE_END}; cat)")) == "one\n"


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_call(run: Run, is_alive: Callable[[str], bool]) -> None:
    result = run("(sleep 60 & echo $! > pid); echo hi")
    assert (text(result), result.exit_status, result.left_background) == ("hi\n", 0, True)
    assert result.duration_s < 20
    assert not is_alive("pid")


def test_a_grandchild_that_floods_the_pipe_does_not_hold_the_call(run: Run, is_alive: Callable[[str], bool]) -> None:
    result = run("(yes & echo $! > pid); echo hi")
    assert (result.exit_status, result.left_background) == (0, True)
    assert result.duration_s < 20
    assert not is_alive("pid")


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-program"], "no-such-program cannot be started: No such file or directory: no-such-program"),
        (["/etc/passwd"], "/etc/passwd cannot be started: Permission denied: /etc/passwd"),
        (
            ["true", "a\0b"],
            "true cannot be started: an argument or its environment holds a NUL character or a lone surrogate",
        ),
        (
            ["true", "a\ud800b"],
            "true cannot be started: an argument or its environment holds a NUL character or a lone surrogate",
        ),
        (
            ["true", "x" * 5_000_000],
            "true cannot be started: the command and its environment are longer than the system accepts",
        ),
    ],
)
def test_a_program_that_cannot_be_started_is_an_error_for_the_model(
    tmp_path: Path, processes: Processes, argv: list[str], reason: str
) -> None:
    with pytest.raises(ToolError) as caught:
        processes.run(argv, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout_s=5, cancel=CancelToken())
    assert str(caught.value) == reason


def test_a_folder_that_is_gone_is_an_error_for_the_model(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=f"bash cannot be started: No such file or directory: {tmp_path}/gone"):
        run("true", cwd=tmp_path / "gone")


def test_no_descriptor_to_be_had_is_an_error_for_the_model(python: Callable[[str], str]) -> None:
    script = """
import os, resource
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import open_processes
def attempt(processes):
    processes.run(["true"], cwd=Path("."), env=dict(os.environ), timeout_s=5, cancel=CancelToken())
def attempt_all():
    with open_processes() as processes:
        attempt(processes)
attempt_all()
before = os.listdir("/dev/fd")
lowest = os.dup(0)
os.close(lowest)
for limit in range(lowest, lowest + 20):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, 4096))
    try:
        attempt_all()
        break
    except ToolError as error:
        assert str(error).startswith("true cannot be started: Too many open files"), error
print(limit > lowest, os.listdir("/dev/fd") == before)
"""
    assert python(script) == "True True\n"


def test_five_commands_run_at_once(run: Run) -> None:
    """Each waits for the other four."""
    results: list[ProcessResult] = []
    together = "until [ $(ls | wc -l) = 5 ]; do sleep 0.05; done"
    threads = [
        threading.Thread(target=lambda number=number: results.append(run(f"touch {number}; {together}")))
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.exit_status for result in results] == [0] * 5


def test_where_no_tree_can_be_seen_the_group_is_killed(
    python: Callable[[str], str], is_alive: Callable[[str], bool]
) -> None:
    """As on macOS, and without a /proc. The supervisor is one process of the test's own, without its server."""
    script = """
import os, socket, sys
from ci_agent.spawn import process_tree, supervisor
from ci_agent.spawn.protocol import FINISH, Request, decode_report, send_request
from ci_agent.spawn.tree_limits import TreeLimits
process_tree.sees_trees = supervisor.sees_trees = lambda: False
supervisor.become_subreaper = lambda: False
supervisor.open_pidfd = lambda pid: None
ours, theirs = socket.socketpair()
if os.fork() == 0:
    ours.close()
    os._exit(not supervisor.supervise(theirs, None))
theirs.close()
reports = ours.makefile("rb")
def ask(command):
    send_request(ours, Request(["sh", "-c", command], os.getcwd(), dict(os.environ), TreeLimits(1, 1)), [1, 2])
    return decode_report(reports.readline())
print(ask("exit 3"))
print(ask("sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do :; done"))
ours.send(FINISH)
print(decode_report(reports.readline()))
ours.close(), reports.close()
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert python(script).splitlines() == [
        "Exited(status=3, has_left=False, killed_because=None)",
        "Exited(status=0, has_left=True, killed_because=None)",
        "Finished(left_running=True, killed_because=None)",
        "0",
    ]
    assert not is_alive("pid")


def test_calls_of_many_threads_take_and_return_supervisors(run: Run) -> None:
    results: list[bytes] = []

    def run_some(thread: int) -> None:
        for number in range(10):
            result = run(f"echo {thread}.{number}; {'(sleep 60 &)' if number == 5 else ''}")
            results.append(result.output.head)

    threads = [threading.Thread(target=run_some, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(b"%d.%d\n" % (thread, number) for thread in range(6) for number in range(10))


def test_a_command_has_ordinary_priority_and_nothing_of_the_one_before(run: Run) -> None:
    run("umask 077; trap '' INT; ulimit -f 100; cd /")
    script = (
        "import os, signal, resource; mask = os.umask(0); print(os.sched_getscheduler(0) if hasattr(os, 'SCHED_OTHER')"
        " else 0, oct(mask), signal.getsignal(signal.SIGTERM), resource.getrlimit(resource.RLIMIT_FSIZE)[0])"
    )
    mask = os.umask(0)
    os.umask(mask)
    expected = f"0 {oct(mask)} 0 {resource.getrlimit(resource.RLIMIT_FSIZE)[0]}\n"
    assert text(run(f'exec "{sys.executable}" -c "{script}"')) == expected


def test_signals_that_the_run_ignores_end_its_commands(python: Callable[[str], str]) -> None:
    script = """
import os, signal
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1]
for number in numbers:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
with open_processes() as processes:
    print([processes.run(["sh", "-c", f"kill -{number:d} $$"], cwd=Path("."), env=dict(os.environ), timeout_s=30,
                         cancel=CancelToken()).signal for number in numbers])
"""
    assert python(script) == "[1, 2, 15, 3, 13, 10]\n"


def test_descriptors_beyond_what_select_takes_do_not_matter(python: Callable[[str], str]) -> None:
    script = """
import os, resource
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3000), hard))
held = [os.dup(0) for _ in range(1100)]
with open_processes() as processes:
    for command in ["true", "(sleep 60 &)", "true"]:
        print(processes.run(["sh", "-c", command], cwd=Path("."), env=dict(os.environ), timeout_s=30,
                            cancel=CancelToken()).exit_status)
"""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2000:
        pytest.skip("not that many descriptors are to be had")
    assert python(script) == "0\n0\n0\n"
