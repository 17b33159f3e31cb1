"""A cancelled job, as GitHub's runner cancels it: SIGINT, 7.5 seconds, SIGTERM, 2.5 seconds, SIGKILL, and to the entry
process alone (actions/runner, ProcessInvoker.cs).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import ci_agent

pytestmark = pytest.mark.timeout(360)

ROOT = Path(ci_agent.__file__).parent.parent

MARK = f"4711.{os.getpid()}"
"""Seconds that only the commands of this process wait for: other tests run at the same time."""

POLICY = 'policy: 1\nrules: [{id: wait, allow: bash, command: ["touch **", "setsid **", "sleep *"]}]\n'
SCRIPT = """\
turns:
  - tool_calls: [{name: bash, arguments: {command: "touch begun && setsid sleep MARK && sleep MARK"}}]
  - text: Done.
"""


@dataclass(frozen=True)
class Cancelled:
    took_s: float
    status: int
    killed: bool
    record: Path

    @property
    def result(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.record.read_text())["result"]
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yml").write_text(POLICY)
    (tmp_path / "script.yaml").write_text(SCRIPT.replace("MARK", MARK))
    return tmp_path


def cancel(entry: list[str], folder: Path, environment: dict[str, str], record: Path) -> Cancelled:
    """Start an entry process, wait until the run's command has begun, then do as the runner does."""
    process = subprocess.Popen(entry, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 240  # the step makes an environment first
    while not (folder / "begun").exists():
        assert process.poll() is None, "the entry process ended before it was cancelled"
        assert time.monotonic() < deadline, "the command never began"
        time.sleep(0.05)  # polled: nothing tells when a file appears
    started = time.monotonic()
    for number, wait_s in ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5)):
        process.send_signal(number)
        try:
            status = process.wait(wait_s)
        except subprocess.TimeoutExpired:
            continue
        return Cancelled(time.monotonic() - started, status, killed=False, record=record)
    process.kill()
    return Cancelled(time.monotonic() - started, process.wait(), killed=True, record=record)


def orphans() -> list[str]:
    """Commands of the run that are still there."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if f"sleep {MARK}" in line and "touch begun" not in line]


def wait_for(record: Path) -> None:
    deadline = time.monotonic() + 60
    while not record.exists() and time.monotonic() < deadline:
        time.sleep(0.05)  # polled: the run goes on for a moment after the shell above it


def test_a_step_of_the_action_ends_at_the_first_signal(folder: Path) -> None:
    action = folder / "action-checkout"
    action.mkdir()
    for name in ("action", "ci_agent"):
        shutil.copytree(ROOT / name, action / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", action)
    inputs = ("PROMPT", "API_KEY", "CONTEXT_FILES", "EVENT_TEXT", "TASK_INPUTS", "TASK_FILES", "SUMMARY", "ANNOTATIONS")
    record = folder / "t.json"
    (folder / "output").touch()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
        **{f"INPUT_{name}": "" for name in (*inputs, "TRUST_HEAD", "EXTRA_ARGS")},
        "INPUT_PROMPT": "Wait.",
        "INPUT_PYTHON": sys.executable,
        "CI_AGENT_ACTION": str(action),
        "CI_AGENT_POLICY": "policy.yml",
        "CI_AGENT_MODEL": "scripted:script.yaml",
        "CI_AGENT_TRANSCRIPT": str(record),
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
    }
    step = folder / "step.sh"
    step.write_text('exec bash --noprofile --norc "$CI_AGENT_ACTION/action/run.sh"\n')
    ended = cancel(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(step)], folder, environment, record)
    assert (ended.status, ended.killed) == (130, False)
    assert ended.took_s < 5
    assert (ended.result["reason"], ended.result["exit_code"]) == ("cancelled", 130)
    assert "conclusion<<" in (folder / "output").read_text()
    assert orphans() == []


def test_a_plain_step_ends_with_the_shell_above_it(folder: Path) -> None:
    record = folder / "t.json"
    step = folder / "step.sh"
    flags = "--policy policy.yml --model scripted:script.yaml --transcript t.json"
    step.write_text(f"{sys.executable} -P -m ci_agent run {flags} Wait. > out\necho afterwards\n")
    ended = cancel(["bash", "-e", str(step)], folder, dict(os.environ), record)
    wait_for(record)
    assert not ended.killed
    assert ended.took_s < 10
    assert ended.result["reason"] == "cancelled"
    assert orphans() == []
