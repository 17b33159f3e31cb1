"""What the action's step says when it cannot even start ci-agent."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest
from runner_files import read_outputs

import ci_agent

ROOT = Path(ci_agent.__file__).parent.parent

INPUTS = {"SUMMARY": "true", "ANNOTATIONS": "true", "TRUST_HEAD": "false", "EVENT_TEXT": "false", "EXTRA_ARGS": "[]"}


class Step(Protocol):
    def __call__(
        self, inputs: Mapping[str, str], variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def step(tmp_path: Path) -> Step:
    """Runs the step's script with other inputs, after a line of the job that ended without its end."""
    for name in ("output", "summary"):
        (tmp_path / name).write_text("earlier=1")

    def run(inputs: Mapping[str, str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        given = {f"INPUT_{name}": value for name, value in (INPUTS | {"API_KEY": "", **inputs}).items()}
        files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
        environment = {"PATH": "/usr/bin:/bin", "RUNNER_TEMP": str(tmp_path), "CI_AGENT_ACTION": str(ROOT)}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", str(ROOT / "action" / "run.sh")],
            env={**environment, **files, **given, **(variables or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    return run


def test_a_python_that_is_none_is_named_in_log_annotation_outputs_and_summary(step: Step, tmp_path: Path) -> None:
    done = step({"PYTHON": "/gone/100%\n::warning::x"})
    reason = r"the input python names no Python 3.11 or newer: $'/gone/100%\n::warning::x'"
    assert (done.returncode, done.stderr) == (3, f"ci-agent: {reason}\n")
    title = "ci-agent%3A configuration%2C exit code 3"
    assert done.stdout == f"::error title={title}::{reason.replace('%', '%25')}\n"
    assert read_outputs((tmp_path / "output").read_text()) == {
        "earlier": "1",
        "conclusion": "configuration",
        "exit-code": "3",
        "reason": reason,
    }
    heading = "## ❌ ci-agent: configuration, exit code 3"
    assert (tmp_path / "summary").read_text() == f"earlier=1\n{heading}\n\n```text\n{reason}\n```\n"


def test_without_summary_and_annotations_the_log_and_the_outputs_say_it(step: Step, tmp_path: Path) -> None:
    done = step({"PYTHON": "/gone", "SUMMARY": "false", "ANNOTATIONS": "false"})
    assert (done.stdout, done.stderr) == ("", "ci-agent: the input python names no Python 3.11 or newer: /gone\n")
    assert (tmp_path / "summary").read_text() == "earlier=1"
    assert read_outputs((tmp_path / "output").read_text())["exit-code"] == "3"


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python that installs nothing and runs nothing."""
    path = tmp_path / "python"
    path.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        'case "$*" in *venv*) mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;; esac\n'
    )
    path.chmod(0o755)
    return str(path)


def test_a_switch_that_is_neither_true_nor_false_is_named_before_any_run(step: Step, python: str) -> None:
    done = step({"PYTHON": python, "TRUST_HEAD": "yes; true"})
    assert (done.returncode, done.stderr) == (
        3,
        "ci-agent: the input trust-head is neither true nor false: yes\\;\\ true\n",
    )


ONE_OF_THEM = "the prompt stands in the task, so give one of them"
NO_TASK = "is for a task: name its file with the input task"


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"INPUT_PROMPT": "Go.", "CI_AGENT_TASK": "t.yaml"}, f"the inputs task and prompt: {ONE_OF_THEM}"),
        ({"CI_AGENT_PROMPT_FILE": "p", "CI_AGENT_TASK": "t.yaml"}, f"the inputs task and prompt-file: {ONE_OF_THEM}"),
        ({"INPUT_PROMPT": "Go.", "CI_AGENT_PROMPT_FILE": "p"}, "the inputs prompt and prompt-file: give one of them"),
        ({"INPUT_TASK_FILES": "src/a.py"}, f"the input task-files {NO_TASK}"),
        ({"INPUT_PROMPT": "Go.", "INPUT_TASK_INPUTS": "base=main"}, f"the input task-inputs {NO_TASK}"),
    ],
)
def test_inputs_of_which_one_would_be_dropped_are_refused(
    step: Step, python: str, inputs: Mapping[str, str], problem: str
) -> None:
    done = step({"PYTHON": python}, {"INPUT_PROMPT": "", "INPUT_TASK_FILES": "", "INPUT_TASK_INPUTS": "", **inputs})
    assert (done.returncode, done.stderr) == (3, f"ci-agent: {problem}\n")


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({}, "neither the input task nor the input policy is given: name a task's file, or a policy"),
        (
            {"CI_AGENT_POLICY": "p"},
            "neither the input task nor the input model is given: name a task's file, or a model",
        ),
        (
            {"CI_AGENT_POLICY": "p", "CI_AGENT_MODEL": "m"},
            "none of the inputs task, prompt and prompt-file is given: give one of them",
        ),
    ],
)
def test_inputs_that_every_run_needs_are_named_as_inputs(
    step: Step, python: str, inputs: Mapping[str, str], problem: str
) -> None:
    empty = {"INPUT_PROMPT": "", "INPUT_TASK_FILES": "", "INPUT_TASK_INPUTS": "", "CI_AGENT_TRANSCRIPT": ""}
    done = step({"PYTHON": python}, {**empty, **inputs})
    assert (done.returncode, done.stderr) == (3, f"ci-agent: {problem}\n")
