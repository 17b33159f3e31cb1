"""The step of the action as bash runs it, with programs in place of Python that look for the key."""

import os
import subprocess
from pathlib import Path

import pytest

import ci_agent

RUN = Path(ci_agent.__file__).parent.parent / "action" / "run.sh"
KEY = "canary-of-the-key-5b1d"

SPY = """#!/bin/sh
env > "$SPY_FOLDER/environment.$$"
cat "/proc/$$/cmdline" > "$SPY_FOLDER/arguments.$$"
case "$*" in
  *"-m ci_agent"*) cat <&3 > "$SPY_FOLDER/descriptor" ;;
  *"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
esac
"""


@pytest.mark.parametrize("exported", ["", "key", "prompt", "python", "environment"])
def test_attack_find_the_key_in_what_the_step_starts(tmp_path: Path, exported: str) -> None:
    """Whatever is started: the interpreter, pip, ci-agent. A workflow may export a variable by any name."""
    seen, temporary, spy = tmp_path / "seen", tmp_path / "temp", tmp_path / "python"
    seen.mkdir()
    temporary.mkdir()
    spy.write_text(SPY)
    spy.chmod(0o755)
    names = (
        "PROMPT",
        "CONTEXT_FILES",
        "EVENT_TEXT",
        "TASK_INPUTS",
        "TASK_FILES",
        "SUMMARY",
        "ANNOTATIONS",
        "TRUST_HEAD",
    )
    environment = {
        "PATH": os.environ["PATH"],
        "SPY_FOLDER": str(seen),
        "RUNNER_TEMP": str(temporary),
        "CI_AGENT_ACTION": str(RUN.parent.parent),
        "CI_AGENT_TRANSCRIPT": "",
        "CI_AGENT_TASK": "task.yaml",
        **{f"INPUT_{name}": "" for name in names},
        "INPUT_EXTRA_ARGS": "[]",
        "INPUT_PYTHON": str(spy),
        "INPUT_API_KEY": KEY,
        **({exported: "x"} if exported else {}),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", RUN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (seen / "descriptor").read_text() == f"{KEY}\n"
    looked_at = [path for path in seen.iterdir() if path.name != "descriptor"]
    assert len(looked_at) > 4
    assert [path.name for path in looked_at if KEY in path.read_text()] == []
    assert KEY not in done.stdout + done.stderr
    left = [path for path in temporary.rglob("*") if path.is_file()]
    assert [path for path in left if KEY.encode() in path.read_bytes()] == []
