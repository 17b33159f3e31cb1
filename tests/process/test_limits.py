"""Bombs and hogs, all of them bounded: a limit on processes of the kernel's does not bind root."""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.process import ProcessResult, open_processes
from ci_agent.process.default_limits import MAX_PROCESSES, default_limits
from ci_agent.spawn.process_tree import Process
from ci_agent.spawn.tree_limits import TreeLimits, exceeded

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="a tree of processes can be seen on Linux only")

Run = Callable[..., ProcessResult]

SMALL = TreeLimits(max_processes=30, max_memory_bytes=150_000_000)

BOMB = '[ "$1" -gt 0 ] && for n in 1 2; do setsid sh bomb $(($1 - 1)) & done\necho $$ >> pids; exec sleep 60\n'
"""With 7 it comes to 255 processes, each in a session of its own."""

HOG = "import sys, time; held = b'x' * int(float(sys.argv[1]) * 1e6); print('full', flush=True); time.sleep(60)"


@pytest.fixture
def run_small(tmp_path: Path) -> Run:
    def run(command: str) -> ProcessResult:
        environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOG": HOG}
        with open_processes(limits=SMALL) as processes:
            return processes.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, timeout_s=30, cancel=CancelToken()
            )

    return run


def left_of(pids: Path) -> list[str]:
    return [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()]


@linux_only
@pytest.mark.parametrize("command", ["exec sh bomb 7", "sh bomb 7 & exec sleep 60", "(setsid sh bomb 7 &); sleep 60"])
def test_a_fork_bomb_is_killed_at_its_limit(run_small: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "bomb").write_text(BOMB)
    result = run_small(command)
    assert (result.killed_because, result.signal) == ("it had more than 30 processes", 9)
    assert left_of(tmp_path / "pids") == []


@linux_only
def test_a_fork_bomb_that_goes_off_in_the_background_is_killed_at_its_limit(run_small: Run, tmp_path: Path) -> None:
    (tmp_path / "bomb").write_text(BOMB)
    # The call ends when nobody has said anything for a moment, which the bomb may need to grow.
    result = run_small("(while sleep 0.1; do echo; done & setsid sh bomb 7 &)")
    assert (result.exit_status, result.killed_because) == (0, "it had more than 30 processes")
    assert left_of(tmp_path / "pids") == []


@linux_only
def test_a_memory_hog_is_killed_at_its_limit(run_small: Run) -> None:
    result = run_small('"$PYTHON" -c "$HOG" 300')
    assert (result.killed_because, result.signal) == ("it used more than 150 MB of memory", 9)


@linux_only
def test_a_memory_hog_of_many_processes_is_killed_at_its_limit(run_small: Run) -> None:
    result = run_small('for n in 1 2 3 4; do setsid "$PYTHON" -c "$HOG" 60 & done; wait')
    assert (result.killed_because, result.signal) == ("it used more than 150 MB of memory", 9)


@linux_only
def test_a_bomb_of_threads_is_killed_at_its_limit(run_small: Run) -> None:
    threads = "import threading, time; [threading.Thread(target=time.sleep, args=[60]).start() for _ in range(400)]"
    result = run_small(f'"$PYTHON" -c "{threads}"')
    assert (result.killed_because, result.signal) == ("it had more than 300 threads", 9)


@linux_only
def test_memory_that_processes_share_counts_once(run_small: Run) -> None:
    fork = "import os, time; held = b'x' * 60_000_000; [os.fork() for _ in range(3)]; time.sleep(0.5)"
    result = run_small(f'"$PYTHON" -c "{fork}"')
    assert (result.exit_status, result.killed_because) == (0, None)


RECORDED = """
import os
from pathlib import Path
from ci_agent import RunSettings, load_policy, run
from ci_agent.process import open_processes
from ci_agent.spawn.tree_limits import TreeLimits
from ci_agent.transcript.verify import verify
Path("bomb").write_text('''BOMB''')
Path("script.yaml").write_text('''
turns:
  - tool_calls: [{id: bomb, name: bash, arguments: {command: "sh bomb 7"}}]
  - text: it was killed
''')
policy = load_policy(text='policy: 1\\nrules: [{id: bomb, allow: bash, command: ["sh bomb 7"]}]\\n')
settings = RunSettings(prompt="Go.", policy=policy, model="scripted:script.yaml", transcript=Path("t.json"),
                       environment=dict(os.environ))
with open_processes(limits=TreeLimits(30, 10**9)) as processes:
    result = run(settings, processes=processes)
(call,) = result.transcript["tool_calls"]
print(result.exit_code, verify(Path("t.json")), call["status"], call["details"]["killed_because"])
print([pid for pid in Path("pids").read_text().split() if Path(f"/proc/{pid}").exists()])
""".replace("BOMB", BOMB)

AS_RECORDED = "0 [] error it had more than 30 processes\n[]\n"


@linux_only
def test_the_record_of_a_run_with_a_fork_bomb_is_closed(python: Callable[[str], str]) -> None:
    assert python(RECORDED) == AS_RECORDED


@linux_only
def test_the_record_of_a_run_with_a_fork_bomb_is_closed_for_an_ordinary_user(as_nobody: Callable[[str], str]) -> None:
    assert as_nobody(RECORDED) == AS_RECORDED


HOG_OF_NOBODY = f"""
import sys
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
from ci_agent.spawn.tree_limits import TreeLimits
with open_processes(limits=TreeLimits(1000, 150_000_000)) as processes:
    result = processes.run([sys.executable, "-S", "-c", {HOG!r}, "300"], cwd=Path("/"), env={{}}, timeout_s=60,
                           cancel=CancelToken())
print(result.killed_because)
"""


@linux_only
def test_a_memory_hog_of_an_ordinary_user_is_killed_at_its_limit(as_nobody: Callable[[str], str]) -> None:
    assert as_nobody(HOG_OF_NOBODY) == "it used more than 150 MB of memory\n"


FORKS_OF_NOBODY = """
import os
from dataclasses import replace
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
from ci_agent.process.default_limits import _KERNEL_REFUSES_AT, default_limits
limits = default_limits()
few = limits.max_user_processes - _KERNEL_REFUSES_AT * limits.max_processes + 20
with open_processes(limits=replace(limits, max_user_processes=few)) as processes:
    result = processes.run(["sh", "-c", "for n in $(seq 40); do sleep 60 & done"], cwd=Path("/"),
                           env={"PATH": "/usr/bin:/bin"}, timeout_s=30, cancel=CancelToken())
print(b"fork" in result.output.head)
"""


@linux_only
def test_the_kernel_refuses_more_processes_to_an_ordinary_user(as_nobody: Callable[[str], str]) -> None:
    assert as_nobody(FORKS_OF_NOBODY) == "True\n"


LOW_HARD_LIMIT = """
import resource
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.process import open_processes
from ci_agent.process.default_limits import _KERNEL_REFUSES_AT, default_limits
limits = default_limits()
few = limits.max_user_processes - _KERNEL_REFUSES_AT * limits.max_processes + 300
resource.setrlimit(resource.RLIMIT_NPROC, (few - 100, few))
with open_processes(limits=limits) as processes:
    result = processes.run(["bash", "-c", "ulimit -u"], cwd=Path("/"), env={"PATH": "/usr/bin:/bin"}, timeout_s=30,
                           cancel=CancelToken())
print(int(result.output.head) == few - 100)
"""


@linux_only
def test_where_a_user_has_fewer_processes_already_that_limit_stays(as_nobody: Callable[[str], str]) -> None:
    assert as_nobody(LOW_HARD_LIMIT) == "True\n"


@linux_only
def test_what_a_command_may_use(run: Run) -> None:
    if resource.getrlimit(resource.RLIMIT_NPROC)[0] == resource.RLIM_INFINITY:
        pytest.skip("the tests have no limit that could be lowered")
    result = run("ulimit -c; ulimit -n; ulimit -u; cat /proc/self/oom_score_adj; grep NoNewPrivs /proc/self/status")
    core, files, processes, score, privileges = result.output.head.decode().splitlines()
    assert (core, score, privileges.split()[1]) == ("0", "1000", "1")
    assert int(files) <= 65_536
    assert MAX_PROCESSES < int(processes) < 100 * MAX_PROCESSES


def test_the_default_limits_fit_the_machine() -> None:
    limits = default_limits()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert limits.max_processes == max(MAX_PROCESSES, 20 * (os.cpu_count() or 1))
    assert 0 < limits.max_memory_bytes <= 0.75 * memory


def test_corpses_do_not_count() -> None:
    members = [Process(pid, 1, 1, is_zombie=pid > 2, threads=1, resident_bytes=0) for pid in range(1, 10)]
    assert exceeded(members, TreeLimits(2, 1)) is None
    assert exceeded(members, TreeLimits(1, 1)) == "it had more than 1 processes"


NO_FORK = """
import resource
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import open_processes
with open_processes() as processes:
    def run():
        return processes.run(["true"], cwd=Path("/"), env={"PATH": "/usr/bin:/bin"}, timeout_s=30, cancel=CancelToken())
    run()
    while processes._idle:
        processes._idle.pop().dismiss()
    resource.prlimit(processes._server.pid, resource.RLIMIT_NPROC, (1, 1))
    try:
        run()
    except ToolError as error:
        print(error)
"""


@linux_only
def test_no_process_to_be_had_is_an_error_for_the_model(as_nobody: Callable[[str], str]) -> None:
    assert as_nobody(NO_FORK) == "true cannot be started: Resource temporarily unavailable\n"
