"""What a run leaves for the next: the last and the last good one, read strictly, written in one step."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.schedule.run_state import (
    STATE_FILE,
    PastRun,
    RunState,
    read_state,
    seen_revision,
    state_values,
    write_state,
)

GOOD = PastRun("run-1", "2026-01-01T04:17:00.000Z", "completed", 0, "a" * 40, "/srv/records/a.json")
BAD = replace(GOOD, run_id="run-2", exit_code=5, reason="denied", revision=None, transcript=None)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def test_the_last_good_run_stays_known_while_later_ones_fail(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    write_state(tmp_path, None, BAD)
    assert read_state(tmp_path) == RunState(BAD, None)
    write_state(tmp_path, read_state(tmp_path), GOOD)
    write_state(tmp_path, read_state(tmp_path), BAD)
    assert read_state(tmp_path) == RunState(BAD, GOOD)
    assert os.listdir(tmp_path) == [STATE_FILE]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        '{"schema": "ci-agent.last-run/2", "last": {}, "last_good": null}',
        '{"schema": "ci-agent.last-run/1", "last": {}, "last_good": null}',
        '{"schema": "ci-agent.last-run/1", "last": null, "last_good": null}',
        '{"schema": 1, "schema": "ci-agent.last-run/1"}',
    ],
)
def test_what_no_run_wrote_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text(text)
    with pytest.raises(ConfigurationError, match=r"is not what ci-agent wrote: .*; move it away to begin anew"):
        read_state(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"revision": "HEAD; rm -rf ~"},
        {"revision": "A" * 40},
        {"revision": "--output=x"},
        {"started_at": "yesterday"},
        {"exit_code": True},
        {"exit_code": "0"},
        {"run_id": None},
        {"more": 1},
    ],
)
def test_attack_a_state_that_somebody_wrote_reaches_no_prompt(wrong: dict[str, object], tmp_path: Path) -> None:
    write_state(tmp_path, None, GOOD)
    state = json.loads((tmp_path / STATE_FILE).read_text())
    state["last_good"] |= wrong
    (tmp_path / STATE_FILE).write_text(json.dumps(state))
    with pytest.raises(ConfigurationError, match="move it away"):
        read_state(tmp_path)


def test_a_state_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / STATE_FILE)
    with pytest.raises(ConfigurationError, match="state of the last run"):
        read_state(tmp_path)


def test_a_revision_that_the_repository_no_longer_has_is_left_out(repository: Path, tmp_path: Path) -> None:
    here = seen_revision(repository, os.environ)
    assert here is not None
    known = RunState(BAD, replace(GOOD, revision=here))
    assert state_values(known, repository, os.environ) == {"revision": here, "started_at": GOOD.started_at}
    assert state_values(RunState(BAD, GOOD), repository, os.environ) == {"started_at": GOOD.started_at}
    assert state_values(RunState(BAD, None), repository, os.environ) == {}
    assert state_values(None, repository, os.environ) == {}
    assert seen_revision(tmp_path, os.environ) is None
    assert seen_revision(repository, {"PATH": "/nowhere"}) is None


def test_attack_asking_for_the_revision_runs_nothing_of_the_repository(repository: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    program = tmp_path / "monitor"
    program.write_text(f"#!/bin/sh\ntouch {canary}\n")
    program.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(program)], cwd=repository, check=True)
    assert seen_revision(repository, os.environ) is not None
    assert not canary.exists()


@pytest.mark.parametrize("folder", ["bin", "link"])
def test_attack_leave_a_git_in_the_workspace_for_the_next_run(repository: Path, tmp_path: Path, folder: str) -> None:
    (repository / "bin").mkdir()
    (repository / "link").symlink_to("bin")
    git = repository / "bin" / "git"
    git.write_text(f"#!/bin/sh\ntouch {tmp_path / 'canary'}\n")
    git.chmod(0o755)
    found = seen_revision(repository, {"PATH": f"{repository / folder}:bin:{os.environ['PATH']}"})
    assert found is not None
    assert not (tmp_path / "canary").exists()
