"""`ci-agent pre-commit` without pre-commit: what it takes for files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CIAgent = Callable[..., Any]

TASK = """\
task: 1
prompt: "Look at {{ files }}"
policy: read-only
model: scripted:script.yaml
transcript: record.json
"""


@pytest.fixture(autouse=True)
def task(workspace: Path) -> Path:
    (workspace / "script.yaml").write_text("turns: [{text: Fine.}]")
    (workspace / "a.py").write_text("")
    path = workspace / "task.yaml"
    path.write_text(TASK)
    return path


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("a.py", "--model", "x:y"), "there is no file '--model' here; options stand before the task"),
        (("--", "a.py", "gone.py"), "there is no file 'gone.py' here"),
        ((), "there is nothing to look at: name the files behind task.yaml, whose prompt is about them"),
        (("--",), "there is nothing to look at: name the files behind task.yaml, whose prompt is about them"),
    ],
)
def test_what_is_no_file_is_refused_and_no_model_is_asked(
    ci_agent: CIAgent, workspace: Path, args: tuple[str, ...], problem: str
) -> None:
    done = ci_agent("pre-commit", "task.yaml", *args)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"ci-agent: {problem}\n")
    assert not (workspace / "record.json").exists()


def test_files_that_are_there_are_files_whatever_they_are_called(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "--model").write_text("")
    (workspace / "link").symlink_to("gone")
    done = ci_agent("pre-commit", "task.yaml", "a.py", "--model", "link")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_task_that_is_about_no_files_needs_none(ci_agent: CIAgent, task: Path) -> None:
    task.write_text(TASK.replace("{{ files }}", "it"))
    assert ci_agent("pre-commit", "task.yaml").returncode == 0
