"""The command under hostile input: in this process for many small tries, in its own where time and memory count."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Protocol

import pytest
from click import ClickException
from click.testing import CliRunner

from ci_agent.cli.app import cli
from ci_agent.cli.stderr import show_error
from ci_agent.errors import CIAgentError

COMMAND = [sys.executable, "-P", "-m", "ci_agent"]

CPU_SECONDS = 6
"""Starting takes about one on a slow machine, the largest file that is read two; what hangs is killed."""

MAX_ADDRESS_SPACE = 1024 * 1024 * 1024
"""Far more than is asserted: Python and its libraries reserve much that they never touch."""


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: str
    stderr: str
    peak_mb: float = 0.0
    """Memory in use at most."""


class Bounded(Protocol):
    def __call__(self, *args: str, cpu_s: int = CPU_SECONDS) -> Outcome: ...


@pytest.fixture(scope="session")
def command() -> Callable[..., Outcome]:
    """Runs a command in this process; whatever is no error for a person passes through as the bug that it is."""

    def call(*args: str) -> Outcome:
        result = CliRunner().invoke(cli, args, standalone_mode=False)
        error = result.exception
        if isinstance(error, ClickException):
            return Outcome(error.exit_code, result.stdout, error.format_message())
        if isinstance(error, CIAgentError):
            with redirect_stderr(StringIO()) as shown:
                show_error(error)
            return Outcome(error.exit_code, result.stdout, shown.getvalue())
        if error is not None:
            raise error
        return Outcome(result.return_value or 0, result.stdout, result.stderr)

    return call


LAUNCHER = """
import resource, subprocess, sys

cpu_s, address_space, report = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    if sys.platform == "linux":  # elsewhere the kernel does not hold it
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

code = subprocess.call(sys.argv[4:], preexec_fn=limit)
with open(report, "w") as file:
    print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)
"""
"""Stands between, for the memory of whoever starts a program counts as that program's."""


@pytest.fixture
def bounded(tmp_path: Path) -> Bounded:
    """Runs the real command in `tmp_path` with limits of the system on its time and memory."""

    def call(*args: str, cpu_s: int = CPU_SECONDS) -> Outcome:
        report = tmp_path / "usage.txt"
        limits = (str(cpu_s), str(MAX_ADDRESS_SPACE), str(report))
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, *limits, *COMMAND, *args],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        code, peak = map(int, report.read_text().split())
        unit = 1024 if sys.platform == "linux" else 1024 * 1024
        return Outcome(code, done.stdout, done.stderr, peak / unit)

    return call
