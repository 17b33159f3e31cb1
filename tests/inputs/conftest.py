"""The command under hostile input: in this process for many small tries, in its own where time and memory count."""

import os
import resource
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

CPU_SECONDS = 4
"""Starting takes about one on a slow machine; what hangs is killed."""

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


@pytest.fixture
def bounded(tmp_path: Path) -> Bounded:
    """Runs the real command in `tmp_path` with limits of the system on its time and memory."""

    def call(*args: str, cpu_s: int = CPU_SECONDS) -> Outcome:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
            if sys.platform == "linux":  # elsewhere the kernel does not hold it
                resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))

        out, err = tmp_path / "stdout.txt", tmp_path / "stderr.txt"
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [*COMMAND, *args],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                preexec_fn=limit,  # noqa: PLW1509 - nothing else runs in this process
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        unit = 1024 if sys.platform == "linux" else 1024 * 1024
        return Outcome(process.returncode, out.read_text(), err.read_text(), usage.ru_maxrss / unit)

    return call
