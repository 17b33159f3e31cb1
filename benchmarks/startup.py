"""How long whole processes take: ratios against Python itself, and against the packages that are needed, in one run.

    .venv/bin/python -m benchmarks.startup

CPU seconds of a process and its children, the least of several turns: on a busy machine the least says most. Every turn
runs each process once, so that all meet the same noise.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

TURNS = 12

ARGUMENTS = '{"command": "git log --oneline -5 | head -3"}'

SCRIPT = """
turns:
  - tool_calls: [{name: read, arguments: {path: a.txt}}]
  - tool_calls: [{name: bash, arguments: {command: "wc -l a.txt"}}]
  - tool_calls: [{name: ls, arguments: {path: "."}}]
  - text: done
"""

PROCESSES: Mapping[str, Sequence[str]] = {
    "python -c pass": ("-c", "pass"),
    "import click": ("-c", "import click"),
    "import click, pydantic": ("-c", "import click; from pydantic import BaseModel"),
    "import click, pydantic, httpx": ("-c", "import click, httpx; from pydantic import BaseModel"),
    "--version": ("-P", "-m", "ci_agent", "--version"),
    "--help": ("-P", "-m", "ci_agent", "--help"),
    "policy check": ("-P", "-m", "ci_agent", "policy", "check", "review"),
    "policy explain": (
        *("-P", "-m", "ci_agent", "policy", "explain"),
        *("--policy", "review", "--tool", "bash", "--args", ARGUMENTS, "--format", "json"),
    ),
    "run, three calls": (
        *("-P", "-m", "ci_agent", "run"),
        *("--policy", "policy.yml", "--model", "scripted:script.yaml", "--transcript", "run.json"),
        *("--output", "text", "go"),
    ),
}
"""What is measured, by the arguments to Python. The first four are the yardsticks."""

YARDSTICKS = ("python -c pass", "import click, pydantic, httpx")

POLICY = """
policy: 1
rules:
  - {id: look, allow: [read, ls]}
  - {id: count, allow: bash, command: "wc **"}
"""


def cpu_s(arguments: Sequence[str], folder: Path) -> float:
    """User and system seconds of one process and all that it started."""
    child = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(folder: Path) -> dict[str, float]:
    least = dict.fromkeys(PROCESSES, float("inf"))
    for _ in range(TURNS):
        for name, arguments in PROCESSES.items():
            least[name] = min(least[name], cpu_s(arguments, folder))
    return least


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.txt").write_text("x\n")
        (folder / "policy.yml").write_text(POLICY)
        (folder / "script.yaml").write_text(SCRIPT)
        least = measure(folder)
    python, packages = (least[name] for name in YARDSTICKS)
    print(f"{'process':<32} {'CPU ms':>7} {'of python -c pass':>18} {'of the imports':>15}")
    for name, seconds in least.items():
        print(f"{name:<32} {seconds * 1e3:7.0f} {seconds / python:18.1f} {seconds / packages:15.2f}")


if __name__ == "__main__":
    main()
