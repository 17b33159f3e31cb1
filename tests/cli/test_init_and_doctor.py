"""The first minutes: what `init` writes is good as it is, and `doctor` says the truth about a run."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_command import Run

from ci_agent.cli.doctor import doctor_command
from ci_agent.cli.run import run_command

CIAgent = Callable[..., Any]

KEY = "sk-canary-0123456789"


def git(folder: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True)


def test_what_is_written_passes_every_check(ci_agent: CIAgent, workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
    (workspace / ".github").mkdir()
    done = ci_agent("init")
    assert [line for line in done.stdout.splitlines() if line.startswith("written")] == [
        "written  policies/review.yml",
        "written  tasks/review.yaml",
        "written  .github/workflows/review.yml",
    ]
    assert "0 failed), 0 errors, 0 warnings" in ci_agent("policy", "check", "policies/review.yml").stdout
    assert ci_agent("task", "check", "tasks/review.yaml").returncode == 0
    doctor = ci_agent("doctor", "--task", "tasks/review.yaml", "--offline", env={"ANTHROPIC_API_KEY": KEY})
    assert doctor.returncode == 0, doctor.stdout
    zizmor = Path(sys.executable).with_name("zizmor")
    if zizmor.exists():
        safe = subprocess.run([zizmor, "--offline", "--pedantic", "."], cwd=workspace, capture_output=True, check=False)
        assert safe.returncode == 0, safe.stdout


def test_the_task_s_own_command_is_allowed_beside_a_tracked_example(ci_agent: CIAgent, workspace: Path) -> None:
    ci_agent("init", "--ci", "none")
    (workspace / ".env.example").write_text("KEY=\n")
    git(workspace, "init", "-q")
    git(workspace, "add", "-A")
    asked = json.dumps({"command": "git diff origin/main"})
    done = ci_agent("policy", "explain", "--policy", "policies/review.yml", "--tool", "bash", "--args", asked)
    assert done.stdout.startswith("allow"), done.stdout
    assert "0 failed), 0 errors, 0 warnings" in ci_agent("policy", "check", "policies/review.yml").stdout


def test_nothing_that_is_there_is_written_over(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "policies").mkdir()
    (workspace / "policies" / "review.yml").write_text("mine")
    (workspace / "tasks").mkdir()
    (workspace / "tasks" / "review.yaml").symlink_to(workspace / "elsewhere")
    done = ci_agent("init", "--ci", "none")
    assert done.stdout.startswith("there    policies/review.yml\nthere    tasks/review.yaml\n")
    assert (workspace / "policies" / "review.yml").read_text() == "mine"
    assert not (workspace / "elsewhere").exists()


def test_a_pipeline_that_is_there_is_left_alone_and_its_job_is_shown(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / ".gitlab-ci.yml").write_text("build:\n  script: [make]\n")
    shown = ci_agent("init").stdout
    assert "there    .gitlab-ci.yml\nIt has no job for this task yet. Add:\n\n# Reviews merge requests." in shown
    assert (workspace / ".gitlab-ci.yml").read_text() == "build:\n  script: [make]\n"
    (workspace / ".gitlab-ci.yml").write_text("review:\n  script: [ci-agent run]\n")
    assert "Add:" not in ci_agent("init").stdout


def test_what_is_in_the_way_is_told_before_anything_is_written(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "tasks").write_text("mine")
    for more in ((), ("--dry-run",)):
        done = ci_agent("init", "--ci", "github", *more)
        assert (done.returncode, done.stdout) == (3, "")
        assert "'tasks/review.yaml' cannot be written: 'tasks' is no folder; nothing was written" in done.stderr
    assert [path.name for path in workspace.iterdir()] == ["tasks"]


def test_nothing_is_written_where_git_keeps_a_repository(ci_agent: CIAgent, workspace: Path) -> None:
    git(workspace, "init", "-q")
    for folder in (".git", ".git/new"):
        done = ci_agent("init", folder)
        assert (done.returncode, "lies where git keeps a repository" in done.stderr) == (2, True), done.stderr
    assert not (workspace / ".git/policies").exists()
    assert not (workspace / ".git/new").exists()


def test_nothing_is_written_when_one_stands_where_git_keeps_a_repository(
    workspace: Path, environment: dict[str, str], run_command: Run
) -> None:
    git(workspace, "init", "-q")
    done = run_command(["init"], cwd=workspace / ".git", env=environment)
    assert (done.returncode, "lies where git keeps a repository" in done.stderr) == (2, True), done.stderr
    assert not (workspace / ".git/policies").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="every folder takes files of root")
def test_a_folder_that_takes_no_files_is_told_before_anything_is_written(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "tasks").mkdir(mode=0o555)
    for more in ((), ("--dry-run",)):
        done = ci_agent("init", "--ci", "none", *more)
        assert (done.returncode, done.stdout) == (3, "")
        assert "'tasks/review.yaml' cannot be written: 'tasks' takes no files; nothing was written" in done.stderr
    assert [path.name for path in workspace.iterdir()] == ["tasks"]


def test_a_workflow_in_a_subfolder_is_told_to_be_read_by_nobody(ci_agent: CIAgent, workspace: Path) -> None:
    git(workspace, "init", "-q")
    told = f"GitHub reads workflows at the root of a repository alone: move this one to {workspace.resolve()}.\n"
    assert told in ci_agent("init", "--ci", "github", "app").stdout
    assert told not in ci_agent("init", "--ci", "github").stdout


def test_a_dry_run_writes_nothing(ci_agent: CIAgent, workspace: Path) -> None:
    done = ci_agent("init", "--dry-run", "--ci", "gitlab")
    assert "would be .gitlab-ci.yml\n" in done.stdout
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("remote", "workflow", "line"),
    [
        ("git@github.com:acme/site.git", ".github/workflows/review.yml", r"- uses: \S+/ci-agent@[0-9a-f]{40} # v0\."),
        (
            "https://gitlab.example/a/b",
            ".gitlab-ci.yml",
            r"- pip install git\+https://\S+/ci-agent@[0-9a-f]{40} # v0\.",
        ),
    ],
)
def test_the_ci_system_is_found_by_where_the_repository_comes_from(
    ci_agent: CIAgent, workspace: Path, remote: str, workflow: str, line: str
) -> None:
    git(workspace, "init", "-q")
    git(workspace, "remote", "add", "origin", remote)
    ci_agent("init", "--model", "openai:gpt-5")
    written = (workspace / workflow).read_text()
    assert "OPENAI_API_KEY" in written
    assert re.search(line, written)
    assert "review" in {str(key) for key in yaml.safe_load(written).get("jobs", yaml.safe_load(written))}
    assert "model: openai:gpt-5" in (workspace / "tasks" / "review.yaml").read_text()


def checks(done: Any) -> dict[str, tuple[str, str]]:
    return {check["name"]: (check["status"], check["text"]) for check in json.loads(done.stdout)["checks"]}


def test_a_run_without_policy_and_model_would_not_start(ci_agent: CIAgent) -> None:
    done = ci_agent("doctor", "--format", "json")
    assert done.returncode == 3
    assert {name for name, (status, _) in checks(done).items() if status == "missing"} == {"policy", "model"}


def test_a_missing_key_is_named_and_a_key_is_never_shown(ci_agent: CIAgent) -> None:
    asked = ("doctor", "--offline", "--policy", "review", "--model", "anthropic:claude-x", "--format", "json")
    without = ci_agent(*asked)
    assert (without.returncode, "ANTHROPIC_API_KEY" in checks(without)["model"][1]) == (3, True)
    having = ci_agent(*asked, env={"ANTHROPIC_API_KEY": KEY})
    assert (having.returncode, checks(having)["model"][0]) == (0, "ok")
    assert KEY not in having.stdout + having.stderr


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_server_of_the_model_is_connected_to_and_asked_nothing(ci_agent: CIAgent, listening: int) -> None:
    asked = ("doctor", "--policy", "review", "--model", "openai-chat:m", "--format", "json")
    done = ci_agent(*asked, "--base-url", f"http://127.0.0.1:{listening}/v1")
    assert checks(done)["connection"] == ("ok", f"127.0.0.1:{listening} can be reached")
    gone = ci_agent(*asked, "--base-url", "http://127.0.0.1:9/v1")
    assert (gone.returncode, checks(gone)["connection"][0]) == (3, "missing")


def test_through_a_proxy_that_proxy_is_connected_to_as_a_run_would(ci_agent: CIAgent, listening: int) -> None:
    asked = ("doctor", "--policy", "review", "--model", "openai-chat:m", "--format", "json")
    proxy = {"ALL_PROXY": f"127.0.0.1:{listening}", "OPENAI_API_KEY": "sk-abc"}
    done = ci_agent(*asked, "--base-url", "https://model.test/v1", env=proxy)
    assert checks(done)["connection"] == ("ok", f"127.0.0.1:{listening} can be reached")


def test_what_makes_a_run_poorer_is_a_warning(ci_agent: CIAgent, tmp_path: Path) -> None:
    done = ci_agent("doctor", "--policy", "review", "--model", "scripted:s.yaml", env={"PATH": str(tmp_path)})
    told = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()[:-1]}
    assert (told["git"], told["rg"]) == ("warning", "warning")
    assert done.returncode == 3  # the script is not there
    (tmp_path / "ws" / "s.yaml").write_text("turns: [{text: Done.}]\n")
    assert ci_agent("doctor", "--policy", "review", "--model", "scripted:s.yaml").stdout.endswith(
        "A run would start.\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_workspace_that_cannot_be_written_to_is_told_of(ci_agent: CIAgent, workspace: Path) -> None:
    workspace.chmod(0o555)
    done = ci_agent("doctor", "--policy", "review", "--format", "json")
    assert checks(done)["workspace"][0] == "warning"


PULL_REQUESTS = [
    {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_BASE_REF": "main"},
    {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7"},
]

TASK = "task: 1\nprompt: Look at {{ what }}.\ninputs: {what: {default: it}}\npolicy: review\nmodel: scripted:s.yaml\n"


@pytest.fixture
def task(workspace: Path) -> str:
    git(workspace, "init", "-q")
    (workspace / "s.yaml").write_text("turns: [{text: Done.}]\n")
    (workspace / "task.yaml").write_text(TASK)
    return "task.yaml"


@pytest.mark.parametrize("job", PULL_REQUESTS)
def test_rules_of_a_pull_request_are_refused_in_the_words_of_a_run(
    ci_agent: CIAgent, task: str, job: dict[str, str]
) -> None:
    doctor, run = (ci_agent(command, "--task", task, env=job) for command in ("doctor", "run"))
    assert (doctor.returncode, run.returncode) == (3, 3)
    assert run.stderr.strip().removeprefix("ci-agent: ") in doctor.stdout
    trusted = [ci_agent(command, "--task", task, "--trust-head", env=job) for command in ("doctor", "run")]
    assert [done.returncode for done in trusted] == [0, 0], trusted


@pytest.mark.parametrize(
    "wrong",
    [
        ("--transcript", "nowhere/t.json"),
        ("--answer-file", "nowhere/answer"),
        ("--proposals", "p.json"),
        ("--input", "whatt=it"),
        ("--tools", "raed"),
        ("--output-schema", "none.json"),
        ("--report", "junitt=x.xml"),
        ("--max-cost-usd", "1"),
        ("--pass-env", "LD_PRELOAD"),
        ("--config", "c.yaml"),
    ],
)
def test_whatever_would_keep_a_run_from_starting_is_missing(
    ci_agent: CIAgent, task: str, workspace: Path, wrong: tuple[str, str]
) -> None:
    (workspace / "c.yaml").write_text("answer-file: nowhere/answer\n")
    before = sorted(workspace.iterdir())
    doctor = ci_agent("doctor", "--task", task, *wrong)
    assert sorted(workspace.iterdir()) == before
    assert (doctor.returncode, ci_agent("run", "--task", task, *wrong).returncode) in {(3, 3), (3, 2)}, doctor.stdout


def test_what_is_missing_is_told_once(ci_agent: CIAgent, task: str) -> None:
    doctor = ci_agent("doctor", "--task", task, "--model", "nobody:m", "--policy", "nope.yml")
    assert [line.split()[1] for line in doctor.stdout.splitlines() if line.startswith("missing")] == ["policy", "model"]


def test_every_option_of_a_run_is_taken() -> None:
    own = {name for parameter in doctor_command.params for name in parameter.opts}
    assert {name for parameter in run_command.params for name in parameter.opts} - own == set()
    assert own - {name for parameter in run_command.params for name in parameter.opts} == {"--offline", "--format"}


def test_that_git_refuses_the_workspace_is_told_by_doctor_and_run(
    ci_agent: CIAgent, task: str, workspace: Path
) -> None:
    of_another_user = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    flags = ("--task", task, "--pass-env", "GIT_TEST_ASSUME_DIFFERENT_OWNER")
    doctor, run = (ci_agent(command, *flags, env=of_another_user) for command in ("doctor", "run"))
    said = "git refuses to work in the workspace, so every git command will fail: detected dubious ownership in "
    assert f"warning  place       {said}" in doctor.stdout
    assert f"warning: {said}" in run.stderr
    notes = [event["text"] for event in json.loads(run.stdout)["notes"]]
    assert [text for text in notes if text.startswith(said)], notes
    quiet = ci_agent("doctor", "--task", task)
    assert "git refuses" not in quiet.stdout


def test_a_revision_that_is_not_there_is_missing_for_doctor_and_run(
    ci_agent: CIAgent, task: str, workspace: Path
) -> None:
    (workspace / "task.yaml").write_text(TASK.replace("{default: it}", "{type: revision, default: origin/main}"))
    doctor, run = (ci_agent(command, "--task", task) for command in ("doctor", "run"))
    said = f"task.yaml: there is no revision 'origin/main' in '{workspace}'"
    assert said in doctor.stdout
    assert said in run.stderr
    assert (doctor.returncode, run.returncode) == (3, 3)
    git(workspace, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
    assert ci_agent("run", "--task", task, "--input", "what=HEAD").returncode == 0
    assert ci_agent("run", "--task", task, "--input", "what=--help").returncode == 3


def test_init_says_that_a_folder_is_no_repository(ci_agent: CIAgent, workspace: Path) -> None:
    said = "No git repository is here, and the task asks for a revision to compare with"
    assert said in ci_agent("init", "new").stdout
    (workspace / ".git").mkdir()
    assert said not in ci_agent("init", "other").stdout


def test_init_makes_the_last_folder_of_a_path_and_says_so(ci_agent: CIAgent, workspace: Path) -> None:
    assert ci_agent("init", "new", "--ci", "none", "--dry-run").stdout.startswith("would be new/\n")
    assert list(workspace.iterdir()) == []
    done = ci_agent("init", "new", "--ci", "none")
    assert done.stdout.startswith("made     new/\nwritten  policies/review.yml\n"), done.stderr
    assert (workspace / "new" / "tasks" / "review.yaml").is_file()


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("nosuch/dir", "the folder 'nosuch/dir' cannot be made: there is no folder 'nosuch'"),
        ("file/dir", "the folder 'file/dir' cannot be made: there is no folder 'file'"),
        ("dangling", "the folder 'dangling' cannot be made: something else has its name"),
        ("file", "the folder 'file' cannot be made: something else has its name"),
    ],
)
def test_init_makes_no_folders_on_the_way(
    folder: str, why: str, more: list[str], ci_agent: CIAgent, workspace: Path
) -> None:
    (workspace / "file").touch()
    (workspace / "dangling").symlink_to(workspace / "gone" / "far")
    before = sorted(workspace.rglob("*"))
    done = ci_agent("init", folder, "--ci", "none", *more)
    advice = ". Make it yourself, or name one that is there"
    assert (done.returncode, done.stderr, done.stdout) == (3, f"ci-agent: {why}{advice}\n", "")
    assert sorted(workspace.rglob("*")) == before
