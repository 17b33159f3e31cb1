"""The hook under the real pre-commit, in a real repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ci_agent

ROOT = Path(ci_agent.__file__).parent.parent
PRE_COMMIT = Path(sys.executable).with_name("pre-commit")

TASK = """\
task: 1
prompt: "Look at\\n{{ files }}"
policy: read-only
model: scripted:script.yaml
transcript: record.json
fail_on_denied: any
"""

LOCAL = f"""\
repos:
  - repo: local
    hooks:
      - id: ci-agent
        name: ci-agent
        entry: {sys.executable} -P -m ci_agent pre-commit
        language: system
        require_serial: true
        args: [task.yaml, --]
"""

ODD_NAMES = (
    "with blank.txt",
    "-dash.txt",
    "--help",
    "new\nline.txt",
    "ünïcode.txt",
    "quote'\".txt",
    "$(touch injected)",
)

pytestmark = pytest.mark.skipif(not PRE_COMMIT.exists(), reason="pre-commit is not installed")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "task.yaml").write_text(TASK)
    (folder / "script.yaml").write_text("turns:\n  - text: Fine.\n")
    (folder / ".pre-commit-config.yaml").write_text(LOCAL)
    (folder / ".gitignore").write_text("record.json\n")
    run(folder, "git", "init", "-q")
    for name, value in (("user.name", "x"), ("user.email", "x@example.com")):
        run(folder, "git", "config", name, value)
    run(folder, "git", "add", ".")
    run(folder, "git", "commit", "-qm", "begin")
    return folder


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "HOME": str(home), "PRE_COMMIT_HOME": str(home / "cache"), "PRE_COMMIT_COLOR": "never"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=110)
    if argv[0] == "git":
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def stage(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("x\n")
    run(folder, "git", "add", "--", *names)


def files_of(folder: Path) -> list[str]:
    prompt = json.loads((folder / "record.json").read_text())["messages"][0]["content"][0]["text"]
    return [json.loads(line) for line in prompt.splitlines()[1:]]


def test_all_is_well_and_nothing_is_said_or_changed(repository: Path) -> None:
    stage(repository, *ODD_NAMES)
    done = run(repository, str(PRE_COMMIT), "run")
    assert (done.returncode, done.stdout.splitlines()) == (0, [f"ci-agent{'.' * 65}Passed"])
    assert sorted(files_of(repository)) == sorted(ODD_NAMES)
    assert run(repository, "git", "status", "--porcelain", "-uall").stdout.count("\n") == len(ODD_NAMES)
    assert not (repository / "injected").exists()


def test_a_denied_call_fails_the_commit_and_is_shown(repository: Path) -> None:
    (repository / "script.yaml").write_text(
        "turns:\n  - tool_calls: [{name: bash, arguments: {command: git push}}]\n  - text: Sorry.\n"
    )
    run(repository, "git", "add", ".")
    run(repository, str(PRE_COMMIT), "install")
    stage(repository, "a.txt")
    done = run(repository, "bash", "-c", "git commit -qm more; echo status $?")
    assert "- exit code: 1" in done.stderr
    assert "git push" in done.stderr
    assert done.stdout.endswith("status 1\n")


def test_a_wrong_task_fails_with_what_is_wrong(repository: Path) -> None:
    (repository / "task.yaml").write_text(TASK.replace("policy: read-only", "policy: raed-only"))
    stage(repository, "a.txt")
    run(repository, "git", "add", ".")
    done = run(repository, str(PRE_COMMIT), "run")
    assert done.returncode == 1
    assert "- exit code: 1" in done.stdout
    assert "read-only" in done.stdout


def test_a_task_that_takes_no_files_fails_with_what_to_do(repository: Path) -> None:
    (repository / "task.yaml").write_text(TASK.replace("{{ files }}", "it"))
    stage(repository, "a.txt")
    run(repository, "git", "add", ".")
    done = run(repository, str(PRE_COMMIT), "run")
    assert (done.returncode, "- exit code: 1" in done.stdout) == (1, True)
    assert ": usage, exit code 2: task.yaml takes no files: its prompt has no {{ files }}. Add it there" in done.stdout
    assert "Usage" not in done.stdout


def test_five_hundred_files_are_one_run(repository: Path) -> None:
    names = [f"file number {number:03}.txt" for number in range(500)]
    stage(repository, *names)
    assert run(repository, str(PRE_COMMIT), "run").returncode == 0
    assert sorted(files_of(repository)) == names


def test_the_index_of_the_commit_is_not_what_commands_get(repository: Path) -> None:
    policy = "policy: 1\nrules: [{id: show, allow: bash, command: [env]}]\n"
    (repository / "policy.yml").write_text(policy)
    (repository / "task.yaml").write_text(TASK.replace("policy: read-only", "policy: ./policy.yml"))
    script = "turns:\n  - tool_calls: [{name: bash, arguments: {command: env}}]\n  - text: Done.\n"
    (repository / "script.yaml").write_text(script)
    run(repository, "git", "add", ".")
    run(repository, str(PRE_COMMIT), "install")
    stage(repository, "a.txt")
    run(repository, "git", "commit", "-qm", "more")
    seen = json.loads((repository / "record.json").read_text())["tool_calls"][0]["content"][0]["text"]
    assert [line for line in seen.splitlines() if line.startswith(("GIT_INDEX", "GIT_DIR", "GIT_AUTHOR"))] == []


@pytest.mark.slow
def test_the_published_hook_is_installed_and_runs(repository: Path) -> None:
    """From a clone of this repository, with its packages from the registry."""
    clone = repository.parent / "ci-agent"
    run(repository, "git", "clone", "-q", str(ROOT), str(clone))
    revision = run(clone, "git", "rev-parse", "HEAD").stdout.strip()
    config = (
        f"repos:\n  - repo: {clone}\n    rev: {revision}\n    hooks:\n      - {{id: ci-agent, args: [task.yaml, --]}}\n"
    )
    (repository / ".pre-commit-config.yaml").write_text(config)
    stage(repository, "-odd name.txt")
    run(repository, "git", "add", ".")
    done = run(repository, str(PRE_COMMIT), "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "-odd name.txt" in files_of(repository)
