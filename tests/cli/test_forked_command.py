"""A forked command is the command: it says, takes and leaves what one does that was started anew."""

from collections.abc import Callable
from pathlib import Path

import pytest
from forked_command import ForkedCommand, run_anew


@pytest.mark.parametrize(
    ("args", "stdin"),
    [
        (["--version"], None),
        (["nope"], None),
        (["policy", "check", "wrong.yml"], None),
        (["report", "missing.json"], None),
        (["run", "--policy", "read-only", "--model", "scripted:script.yaml", "--output", "text", "--quiet"], b"Go."),
        (["run", "--policy", "read-only", "--model", "scripted:script.yaml", "--output", "text"], None),
        (["run", "--policy", b"\xff.yml", "--model", "scripted:script.yaml", "Go."], None),
    ],
    ids=str,
)
def test_it_answers_as_one_that_was_started_anew(
    forked_command: ForkedCommand,
    workspace: Path,
    environment: dict[str, str],
    script: Callable[[str], str],
    args: list[str | bytes],
    stdin: bytes | None,
) -> None:
    script("turns: [{text: Größe 📏}]")
    (workspace / "wrong.yml").write_text("policy: 1\nrules: [{id: look, alow: ls}]\n")
    runs = [run(args, cwd=workspace, env=environment, stdin=stdin) for run in (forked_command.run, run_anew)]
    forked, anew = ((done.returncode, done.stdout, done.stderr) for done in runs)
    assert forked == anew


def test_calls_leave_nothing_to_those_that_follow(
    forked_command: ForkedCommand, workspace: Path, environment: dict[str, str]
) -> None:
    first = forked_command.run(["--version"], cwd=workspace, env={**environment, "CI_AGENT_MODEL": "x"})
    again = forked_command.run(["run", "--policy", "read-only", "Go."], cwd=workspace, env=environment)
    assert (first.returncode, again.returncode) == (0, 2)
    assert "--model" in again.stderr
