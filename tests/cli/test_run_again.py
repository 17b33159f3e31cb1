"""Runs that come again and again: `--state-dir`, `--transcript-dir`, `--keep-transcripts`, and what cron would mail."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Faults

CIAgent = Callable[..., Any]

COMMAND = [sys.executable, "-P", "-m", "ci_agent"]

TASK = """\
task: 1
prompt: "What happened since {{ since }} ({{ time }})?"
inputs:
  since: {default: HEAD~9, state: revision}
  time: {default: yesterday, state: started_at}
policy: read-only
model: scripted:script.yaml
"""
GOOD = "turns: [{text: Nothing.}]"
DENIED = "turns: [{tool_calls: [{name: bash, arguments: {command: git push}}]}, {text: No.}]"


@pytest.fixture(autouse=True)
def repository(workspace: Path, script: Callable[[str], str]) -> None:
    (workspace / "task.yaml").write_text(TASK)
    script(GOOD)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    commit(workspace)


def commit(workspace: Path) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=workspace, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=workspace, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def run_again(ci_agent: CIAgent, tmp_path: Path) -> CIAgent:
    """Runs the task with the folders `state` and `records` beside the workspace."""

    def run(*args: str) -> Any:
        folders = ["--state-dir", str(tmp_path / "state"), "--transcript-dir", str(tmp_path / "records")]
        return ci_agent("run", "--quiet", "--task", "task.yaml", *folders, *args)

    return run


def begun(workspace: Path, environment: dict[str, str], tmp_path: Path, *args: str) -> subprocess.Popen[bytes]:
    """A run that has said its first line."""
    process = subprocess.Popen(
        [*COMMAND, "run", "--task", "task.yaml", "--state-dir", str(tmp_path / "state"), *args],
        cwd=workspace,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stderr.readline()
    return process


def prompts(folder: Path) -> list[str]:
    records = [json.loads((folder / name).read_text()) for name in sorted(os.listdir(folder))]
    return [record["messages"][0]["content"][0]["text"] for record in records]


def state(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "state" / "last-run.json").read_text())


def test_the_next_run_begins_where_the_last_good_one_was(
    run_again: CIAgent, workspace: Path, tmp_path: Path, script: Callable[[str], str]
) -> None:
    script(DENIED)
    assert run_again().returncode == 5
    assert state(tmp_path)["last_good"] is None
    script(GOOD)
    first = commit(workspace)
    done = run_again()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    good = state(tmp_path)["last_good"]
    assert (good["revision"], good["exit_code"], good["reason"]) == (first, 0, "completed")
    commit(workspace)
    script(DENIED)
    assert run_again().returncode == 5
    script(GOOD)
    assert run_again().returncode == 0
    assert state(tmp_path)["last"] == state(tmp_path)["last_good"]
    assert state(tmp_path)["last"]["revision"] != first
    assert Path(state(tmp_path)["last"]["transcript"]).parent == tmp_path / "records"
    old, since = "What happened since HEAD~9 (yesterday)?", f"What happened since {first} ({good['started_at']})?"
    assert sorted(prompts(tmp_path / "records")) == sorted([old, old, since, since])


def test_an_input_that_is_given_comes_before_the_state(run_again: CIAgent, tmp_path: Path) -> None:
    run_again()
    assert run_again("--input", "since=v1", "--input", "time=noon").returncode == 0
    assert "What happened since v1 (noon)?" in prompts(tmp_path / "records")


def test_a_run_that_was_refused_leaves_the_state_as_it_was(run_again: CIAgent, tmp_path: Path) -> None:
    run_again()
    before = state(tmp_path)
    assert run_again("--model", "scripted:gone.yaml").returncode == 3
    assert run_again("--input", "sinc=x").returncode == 3
    assert state(tmp_path) == before


def test_a_state_that_cannot_be_read_ends_the_run_before_it_begins(run_again: CIAgent, tmp_path: Path) -> None:
    run_again()
    (tmp_path / "state" / "last-run.json").write_text("{}")
    done = run_again()
    assert done.returncode == 3
    assert "is not what ci-agent wrote: it is no ci-agent.last-run/1; move it away to begin anew" in done.stderr
    assert len(os.listdir(tmp_path / "records")) == 1


def test_a_second_run_with_the_same_state_ends_at_once(run_again: CIAgent, tmp_path: Path) -> None:
    run_again()
    with (tmp_path / "state" / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run_again()
    assert done.returncode == 8
    assert "another run holds the lock" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_that_cannot_be_written_is_no_success(run_again: CIAgent, tmp_path: Path) -> None:
    run_again()
    (tmp_path / "state").chmod(0o500)
    try:
        done = run_again()
    finally:
        (tmp_path / "state").chmod(0o700)
    assert done.returncode == 1
    assert "the state" in done.stderr


def test_a_state_that_can_no_longer_be_written_is_no_success(
    ci_agent: CIAgent, faults: "Faults", tmp_path: Path
) -> None:
    """As when the disk is full: found out at the run's end, and said in its record."""
    server = faults.serve([(tmp_path / "state" / "last-run.json").mkdir, *faults.answer("Done.")])
    model = ["--model", "openai-chat:m", "--base-url", f"{server.url}/v1"]
    files = ["--state-dir", str(tmp_path / "state"), "--transcript", str(tmp_path / "t.json")]
    done = ci_agent("run", "--task", "task.yaml", *model, *files, env={"OPENAI_API_KEY": "sk-test-0123456789abcdef"})
    assert done.returncode == 1
    assert "cannot be written: Is a directory" in done.stderr
    assert json.loads((tmp_path / "t.json").read_text())["result"]["exit_code"] == 1


def test_attack_no_tool_writes_what_the_next_run_shall_know(
    run_again: CIAgent, workspace: Path, tmp_path: Path, script: Callable[[str], str]
) -> None:
    """Although the policy opens the folder: whoever names the last revision hides commits from the next run."""
    run_again()
    good = state(tmp_path)["last_good"]
    folder = tmp_path / "state"
    script(
        json.dumps(
            {
                "turns": [
                    {
                        "tool_calls": [
                            {"name": "write", "arguments": {"path": f"{folder}/last-run.json", "content": "canary"}},
                            {"name": "bash", "arguments": {"command": f"rm {folder}/last-run.json"}},
                            {"name": "bash", "arguments": {"command": f"mv {folder} {tmp_path}/away"}},
                            {"name": "bash", "arguments": {"command": f"touch {folder}/lock"}},
                            {"name": "write", "arguments": {"path": f"{tmp_path}/other", "content": "allowed"}},
                        ]
                    },
                    {"text": "Done."},
                ]
            }
        )
    )
    rules = (
        "rules:\n"
        f"  - {{id: files, allow: write, path: ['{tmp_path}/**']}}\n"
        f"  - {{id: commands, allow: bash, command: ['rm **', 'mv **', 'touch **'], paths: ['{tmp_path}/**']}}\n"
    )
    (workspace / "policy.yml").write_text(f"policy: 1\n{rules}")
    assert run_again("--policy", "policy.yml", "--fail-on-denied", "any").returncode == 5
    newest = max((tmp_path / "records").iterdir())
    statuses = [call["status"] for call in json.loads(newest.read_text())["tool_calls"]]
    assert statuses == ["denied"] * 4 + ["ok"]
    assert state(tmp_path)["last_good"] == good


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_was_cancelled_is_on_record_as_such_and_one_that_was_killed_leaves_nothing(
    number: signal.Signals, run_again: CIAgent, workspace: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    run_again()
    before = state(tmp_path)
    (workspace / "script.yaml").write_text("turns: [{text: x, delay_s: 60}]")
    process = begun(workspace, environment, tmp_path, "--transcript", str(tmp_path / "t.json"))
    process.send_signal(number)
    process.communicate(timeout=110)
    after = state(tmp_path)
    if number == signal.SIGKILL:
        assert after == before
    else:
        assert (after["last"]["exit_code"], after["last"]["reason"]) == (143, "cancelled")
    assert after["last_good"] == before["last_good"]
    (workspace / "script.yaml").write_text(GOOD)
    assert run_again().returncode == 0


def test_the_newest_records_stay(run_again: CIAgent, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "notes.json").write_text("mine")
    (tmp_path / "records" / "2020-01-01T00-00-00.000000Z-00000000.json").write_text("old")
    for _ in range(3):
        assert run_again("--keep-transcripts", "2").returncode == 0
    names = sorted(os.listdir(tmp_path / "records"))
    assert len(names) == 3
    assert names[-1] == "notes.json"
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z-[0-9a-f]{8}\.json", name) for name in names[:-1])
    assert "2020-01-01T00-00-00.000000Z-00000000.json" not in names


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (("--state-dir", "state"), 3, "lies in the workspace, where tools may write"),
        (("--transcript-dir", "."), 3, "lies in the workspace"),
        (("--transcript-dir", "../no/such"), 3, "cannot be made"),
        (("--state-dir", "/dev/null"), 3, "cannot be made"),
        (("--transcript-dir", "../r", "--transcript", "t.json"), 2, "not both"),
        (("--keep-transcripts", "3"), 2, "--transcript-dir"),
        (("--keep-journal",), 2, "give --transcript FILE"),
        (("--transcript-dir", "../r", "--keep-transcripts", "0"), 2, "x>=1"),
    ],
)
def test_what_makes_no_sense_is_refused(args: tuple[str, ...], code: int, problem: str, ci_agent: CIAgent) -> None:
    done = ci_agent("run", "--task", "task.yaml", *args)
    assert done.returncode == code
    assert problem in done.stderr


def test_a_name_that_no_folder_can_have_is_refused(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "config.yml").write_text('state-dir: "../a\\0b"\n')
    done = ci_agent("run", "--task", "task.yaml", "--config", "config.yml")
    assert (done.returncode, "cannot be made" in done.stderr) == (3, True)


def test_attack_a_link_from_the_workspace_leads_to_no_other_folder(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "inside").mkdir()
    (workspace.parent / "outside").symlink_to(workspace / "inside")
    done = ci_agent("run", "--task", "task.yaml", "--state-dir", str(workspace.parent / "outside"))
    assert done.returncode == 3
    assert "lies in the workspace" in done.stderr


@pytest.mark.parametrize("option", ["--state-dir", "--transcript-dir"])
@pytest.mark.parametrize("name", ["kept", "kept/new", "new"])
def test_attack_have_records_kept_where_a_link_of_the_workspace_leads(
    ci_agent: CIAgent, workspace: Path, option: str, name: str
) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (workspace / "kept").symlink_to(outside)
    (workspace / "new").symlink_to(outside / "made")
    for command in ("run", "doctor"):
        done = ci_agent(command, "--task", "task.yaml", option, name)
        assert done.returncode == 3
        assert "leads out of the workspace by a link" in done.stdout + done.stderr
    assert list(outside.iterdir()) == []


def test_records_are_kept_outside_of_the_folder_that_one_stands_in(run_again: CIAgent, workspace: Path) -> None:
    assert run_again("--transcript-dir", "../kept").returncode == 0
    assert len(list((workspace.parent / "kept").iterdir())) == 1


def test_the_first_line_of_a_failure_is_what_a_subject_would_be(
    run_again: CIAgent, workspace: Path, tmp_path: Path, script: Callable[[str], str]
) -> None:
    script(DENIED)
    done = run_again()
    first, blank, *_, last = done.stderr.splitlines()
    assert (first, blank) == (f"ci-agent failed in {workspace}: denied, exit code 5", "")
    assert last == f"Record     {state(tmp_path)['last']['transcript']}"
    assert done.stdout == ""


def test_a_run_that_was_killed_is_told_of_by_the_next_and_its_record_made(
    run_again: CIAgent, workspace: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Also with --quiet: nobody else would ever say so."""
    records = tmp_path / "records"
    (workspace / "script.yaml").write_text("turns: [{text: x, delay_s: 60}]")
    killed = begun(workspace, environment, tmp_path, "--transcript-dir", str(records))
    killed.kill()
    killed.communicate(timeout=110)
    (journal,) = records.iterdir()
    (workspace / "script.yaml").write_text(GOOD)
    record = journal.with_suffix("")
    done = run_again()
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"warning: an earlier run was killed; its record is in {record}\n"
    assert json.loads(record.read_text())["result"]["reason"] == "unknown"
    assert not journal.exists()
    assert run_again().stderr == ""


def test_a_run_that_goes_on_is_no_run_that_was_killed(
    run_again: CIAgent, workspace: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (workspace / "script.yaml").write_text("turns: [{text: x, delay_s: 60}]")
    process = subprocess.Popen(
        [*COMMAND, "run", "--task", "task.yaml", "--transcript-dir", str(tmp_path / "records")],
        cwd=workspace,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stderr.readline()
    (workspace / "script.yaml").write_text(GOOD)
    assert run_again().stderr == ""
    process.terminate()
    process.communicate(timeout=110)
    assert process.returncode == 143
    assert [name for name in os.listdir(tmp_path / "records") if name.endswith(".journal")] == []


def test_a_refusal_is_said_once_and_its_first_line_is_what_a_subject_would_be(
    run_again: CIAgent, ci_agent: CIAgent, workspace: Path, tmp_path: Path
) -> None:
    run_again()
    lock = tmp_path / "state" / "lock"
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        busy = run_again().stderr.splitlines()
    (subject,) = busy
    assert subject.startswith(f"ci-agent failed in {workspace}: busy, exit code 8: another run holds the lock '{lock}'")
    no_key = run_again("--api-key-file", "gone").stderr
    why = "cannot read the API key file 'gone': No such file or directory"
    assert no_key == f"ci-agent failed in {workspace}: configuration, exit code 3: {why}\n"
    typo = run_again("--bogus", "--workspace", "/elsewhere").stderr
    why = "No such option '--bogus'. Did you mean '--verbose'?"
    assert typo == f"ci-agent failed in /elsewhere: usage, exit code 2: {why}\n"
    (workspace / "two.yml").write_text("policy: 1\nrules: [{id: a, alow: ls}, {id: b, alow: ls}]\n")
    first, second = run_again("--policy", "two.yml").stderr.splitlines()
    assert first.startswith(f"ci-agent failed in {workspace}: configuration, exit code 3: two.yml:2:17: unknown key")
    assert second.startswith("ci-agent: two.yml:2:36: unknown key")
    long = run_again("--tools", "x" * 300).stderr
    assert (long.count("x" * 300), long.count("\n")) == (1, 1)
    variable = ci_agent("run", "--bogus", env={"CI_AGENT_QUIET": "true", "CI_AGENT_WORKSPACE": "/w"})
    assert variable.stderr.startswith("ci-agent failed in /w: usage, exit code 2: ")
    assert not ci_agent("run", "--bogus").stderr.startswith("ci-agent failed")


def test_attack_a_workspace_breaks_out_of_no_line(run_again: CIAgent) -> None:
    first, *_ = run_again("--bogus", "--workspace", "/a\n::error::b\x1b[2J").stderr.split("\n")
    assert first.startswith("ci-agent failed in /a ::error::b")
    assert "\x1b" not in first
