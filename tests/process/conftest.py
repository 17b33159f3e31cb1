import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.process import Processes, ProcessResult, child_environment, open_processes

Run = Callable[..., ProcessResult]


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    with open_processes() as processes:
        yield processes


@pytest.fixture
def run(tmp_path: Path, processes: Processes) -> Run:
    """Run a bash command in an empty folder."""

    def run_command(command: str, **options: Any) -> ProcessResult:
        settings = {"cwd": tmp_path, "env": child_environment(os.environ), "timeout_s": 60.0, "cancel": CancelToken()}
        argv = ["bash", "--noprofile", "--norc", "-c", "--", command]
        return processes.run(argv, **{**settings, **options})

    return run_command


@pytest.fixture
def time_out(run: Run) -> Run:
    """Run a command as `run` does, until it is timed out: again with more time where it has not yet said anything,
    for a busy machine takes long to start a program."""

    def run_until_timed_out(command: str, *, timeout_s: float, **options: Any) -> ProcessResult:
        for longer in (1, 5, 25):
            result = run(command, timeout_s=longer * timeout_s, **options)
            if result.output.total_bytes:
                break
        return result

    return run_until_timed_out


@pytest.fixture
def is_alive(tmp_path: Path) -> Callable[[str], bool]:
    """Whether the process whose id stands in a file of the folder still runs; the file must be there."""

    def check(name: str) -> bool:
        pid = int((tmp_path / name).read_text())
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not _is_zombie(pid)

    return check


def _is_zombie(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


@pytest.fixture
def as_nobody() -> Iterator[Callable[[str], str]]:
    """Run a script as an ordinary user, in a folder of its own; returns what it prints.

    Each process of tests has a user of its own, for the kernel counts the processes of a user.
    """
    if os.geteuid() != 0:
        pytest.skip("only root may become somebody else")
    number = 40_000 + os.getpid() % 10_000
    user = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
    interpreters = [[sys.executable], ["/usr/bin/python3", "-S"]]
    check = (
        f"import os, sys; assert os.access(sys.executable, os.X_OK) and sys.version_info[:2] == {sys.version_info[:2]}"
    )
    usable = [words for words in interpreters if _can_run([*user, *words, "-c", check])]
    if not usable:
        pytest.skip("no setpriv, or no Python that an ordinary user may run")
    folder = Path(tempfile.mkdtemp(prefix="ci-agent-nobody-"))
    folder.chmod(0o777)

    def run_script(script: str) -> str:
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [*user, *usable[0], "-c", script]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run_script
    shutil.rmtree(folder)


def _can_run(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=110).returncode == 0
    except OSError:
        return False


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], str]:
    """Run a script in a Python of its own, whose process tree is nobody else's; returns what it prints."""

    def run_script(script: str) -> str:
        command = [sys.executable, "-c", script]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=110).stdout

    return run_script
