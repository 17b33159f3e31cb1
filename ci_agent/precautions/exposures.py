"""What commands can get hold of although no tool gives it to them: said to the person, and put on record."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Processes
from ci_agent.secret_names import may_name_a_secret
from ci_agent.spelling import listed
from ci_agent.transcript.secret_sources import is_worth_hiding

SUDO_WITHIN_S = 2.0


def find_exposures(
    secrets: tuple[str, ...], environment: Mapping[str, str], processes: Processes, cancel: CancelToken
) -> Iterator[str]:
    """One line for each way to the run's secrets that is open to unconfined commands.

    `secrets` are the values that the run hides, `environment` is that of commands.
    """
    if secrets and os.geteuid() == 0:
        yield (
            "root runs this without a sandbox: commands can read the keys in the memory of ci-agent. "
            "Use a sandbox, or an ordinary user"
        )
    yield from _open_ancestors()
    if _sudo_asks_nothing(environment, processes, cancel):
        yield (
            "sudo asks for no password here: commands that may start it are root and can read the keys in the memory "
            "of ci-agent. Use a sandbox, or take sudo away"
        )


def _open_ancestors() -> Iterator[str]:
    """Processes above this one whose environment shows secrets to whoever runs as the same user (Linux)."""
    pid = os.getppid()
    while sys.platform == "linux" and pid > 0:
        names = sorted(_secrets_shown_by(pid))
        if names:
            yield (
                f"the process {pid} ({_name_of(pid)}), which started this run, shows {listed(names)} to commands: "
                "start ci-agent by `exec`, or give its key by --api-key-file"
            )
        pid = _parent_of(pid)


def _secrets_shown_by(pid: int) -> set[str]:
    entries = _read(f"/proc/{pid}/environ").split("\0")
    pairs = (entry.partition("=") for entry in entries)
    return {name for name, _, value in pairs if may_name_a_secret(name) and is_worth_hiding(value)}


def _name_of(pid: int) -> str:
    return _read(f"/proc/{pid}/comm").strip() or "?"


def _parent_of(pid: int) -> int:
    """0: there is none, or nobody says."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _sudo_asks_nothing(environment: Mapping[str, str], processes: Processes, cancel: CancelToken) -> bool:
    sudo = shutil.which("sudo", path=environment.get("PATH", ""))
    if sudo is None:
        return False
    try:
        done = processes.run(
            [sudo, "-n", "true"], cwd=Path("/"), env=environment, timeout_s=SUDO_WITHIN_S, cancel=cancel
        )
    except (ToolError, Cancelled):  # a cancelled run says so itself
        return False
    return done.exit_status == 0
