"""What the kernel keeps beyond the processes that made it goes with the call, where ci-agent may have it so (root)."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.process import Processes, open_processes
from ci_agent.sandbox import landlock
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.bubblewrap import find_bubblewrap, why_unusable
from ci_agent.sandbox.confinement import Confinement
from ci_agent.sandbox.ruleset import ruleset_for, ruleset_without_sandbox
from ci_agent.sandbox.sandbox import Sandbox, confine

KEY = 0x7117 << 16 | os.getpid() & 0xFFFF
"""Of what the programs of this process make: nobody else's are meant, nor what a killed run has left."""

LEAVE = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
CREATE = 0o1000 | 0o600
assert libc.shmget(KEY, 4096, CREATE) >= 0
assert libc.semget(KEY, 3, CREATE) >= 0
assert libc.msgget(KEY, CREATE) >= 0
queue = libc.mq_open(b"/ci-agent-test-KEY", os.O_CREAT | os.O_RDWR, 0o600, None)
assert queue >= 0 or ctypes.get_errno() in (errno.ENOSYS, errno.EACCES), ctypes.get_errno()  # Landlock opens none
with open("/dev/shm/ci-agent-test-KEY", "w") as file:
    file.write("left")
print("made", os.listdir("/dev/shm").count("ci-agent-test-KEY"))
""".replace("KEY", str(KEY))

SHARE = """
import multiprocessing
def add(value, lock):
    with lock:
        value.value += 1
if __name__ == "__main__":
    value, lock = multiprocessing.Value("i", 0), multiprocessing.Lock()
    workers = [multiprocessing.Process(target=add, args=(value, lock)) for _ in range(4)]
    [worker.start() for worker in workers], [worker.join() for worker in workers]
    print(value.value)
"""

LEFT = Path(f"/dev/shm/ci-agent-test-{KEY}")

ITS_OWN = "import os; print(os.listdir('/dev/shm'))"

KINDS = ["landlock", "bubblewrap", "none", "none, old kernel"]


def confinement_of(kind: str, access: Access) -> Confinement | None:
    abi, program = landlock.abi(), find_bubblewrap(os.environ["PATH"])
    if kind == "landlock" and abi:
        return ruleset_for(access, abi)
    if kind == "none":
        return ruleset_without_sandbox(abi)
    if kind == "bubblewrap" and program and why_unusable(program) is None:
        return confine(Sandbox("bubblewrap", program=program), access)
    if kind == "none, old kernel":
        return None
    pytest.skip(f"no {kind} here")


@pytest.fixture
def processes() -> Iterator[Processes]:
    if sys.platform != "linux":
        pytest.skip("only Linux has namespaces")
    may_unshare = (
        subprocess.run(["unshare", "--ipc", "--mount", "true"], check=False, capture_output=True).returncode == 0
    )
    if not may_unshare:
        pytest.skip("this user gets no namespaces: needs root with CAP_SYS_ADMIN")
    remove_what_is_left()  # by a run that was killed, and had this number
    with open_processes() as opened:
        yield opened
    remove_what_is_left()


def run(processes: Processes, folder: Path, kind: str, program: str) -> str:
    (folder / "program.py").write_text(program)
    result = processes.run(
        [os.path.realpath("/usr/bin/python3"), "program.py"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        timeout_s=30,
        cancel=CancelToken(),
        confinement=confinement_of(kind, Access(writable=(str(folder),))),
    )
    assert result.exit_status == 0, result.output.head
    return result.output.head.decode()


def kept_by_the_kernel() -> dict[str, list[str]]:
    """Keys of System V objects, and names of shared memory and queues."""
    kinds = ("shm", "sem", "msg")
    found = {kind: [line.split()[0] for line in Path("/proc/sysvipc", kind).read_text().splitlines()] for kind in kinds}
    return {kind: [key for key in keys if key == str(KEY)] for kind, keys in found.items()}


def remove_what_is_left() -> None:
    """It would stay on the machine."""
    LEFT.unlink(missing_ok=True)
    kept = kept_by_the_kernel()
    for kind, option in (("shm", "-M"), ("sem", "-S"), ("msg", "-Q")):
        if kept[kind]:
            subprocess.run(["ipcrm", option, str(KEY)], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_system_v_objects_and_queues_go_with_the_call(processes: Processes, tmp_path: Path, kind: str) -> None:
    assert run(processes, tmp_path, kind, LEAVE) == "made 1\n"
    assert kept_by_the_kernel() == {"shm": [], "sem": [], "msg": []}
    # Neither does the next call find them.
    assert run(processes, tmp_path, kind, LEAVE.replace("0o1000 |", "0o3000 |")) == "made 1\n"


@pytest.mark.parametrize("kind", ["landlock", "bubblewrap"])
def test_files_in_shared_memory_go_with_the_call(processes: Processes, tmp_path: Path, kind: str) -> None:
    run(processes, tmp_path, kind, LEAVE)
    assert not LEFT.exists()
    assert run(processes, tmp_path, kind, ITS_OWN) == "[]\n"


@pytest.mark.parametrize("kind", KINDS)
def test_processes_of_a_call_share_memory(processes: Processes, tmp_path: Path, kind: str) -> None:
    assert run(processes, tmp_path, kind, SHARE) == "4\n"


def test_a_workspace_in_shared_memory_stays_in_sight(processes: Processes) -> None:
    with tempfile.TemporaryDirectory(prefix="ci-agent-test-", dir="/dev/shm") as name:
        program = f"import os; print(os.listdir('{name}'))"
        assert run(processes, Path(name), "landlock", program) == "['program.py']\n"


def test_what_is_mounted_here_stays(processes: Processes, tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    run(processes, tmp_path, "landlock", LEAVE)
    assert Path("/proc/self/mountinfo").read_text() == before
