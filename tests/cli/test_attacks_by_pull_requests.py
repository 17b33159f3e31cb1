"""A pull request brings everything but the rules of its own review, wherever in the checkout they are said to lie."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from forked_command import Run

Git = Callable[..., None]
Review = Callable[..., CompletedProcess[str]]

BASE = "policy: 1\nrules: [{id: look, allow: read}]\n"
HEAD = "policy: 1\nrules: [{id: all, allow: bash, command: 'touch **'}]\n"
SCRIPT = '{"turns": [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch canary"}}]}, {"text": "done"}]}'
RULES_OF_THE_HEAD = 3
DENIED = 5


@pytest.fixture
def repository(workspace: Path) -> Path:
    return workspace


@pytest.fixture
def git(repository: Path) -> Git:
    identity = {f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def call(*args: str, cwd: Path = repository) -> None:
        environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run(["git", *args], cwd=cwd, env=environment, check=True, capture_output=True)

    return call


@pytest.fixture(autouse=True)
def checkout(git: Git, repository: Path, tmp_path: Path) -> None:
    """The base's policy lets nothing be run. That of the pull request, which is checked out, does."""
    (repository / "ci").mkdir()
    (repository / "app").mkdir()
    (repository / "ci/policy.yml").write_text(BASE)
    git("init", "-q", "-b", "feature")
    git("add", ".")
    git("commit", "-qm", "base")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    (repository / "ci/policy.yml").write_text(HEAD)
    (repository / "app/file").touch()
    git("add", ".")
    git("commit", "-qm", "head")
    (tmp_path / "script.yaml").write_text(SCRIPT)


@pytest.fixture
def review(environment: dict[str, str], repository: Path, tmp_path: Path, run_command: Run) -> Review:
    """A run in a job of the pull request."""

    def call(*args: str, cwd: Path = repository, **variables: str) -> CompletedProcess[str]:
        of_the_job = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_BASE_REF": "main", **variables}
        arguments = ["run", "--model", f"scripted:{tmp_path / 'script.yaml'}", *args]
        return run_command(arguments, cwd=cwd, env={**environment, **of_the_job})

    return call


@pytest.mark.parametrize(
    "said",
    [
        ["--policy", "ci/policy.yml"],
        ["--policy", "ci/policy.yml", "--workspace", "app"],
        ["--policy", "../outside/extends.yml"],
        ["--policy", "ci/link.yml"],
        ["--policy", "ci/folder/permissive.yml"],
        ["--policy", "../outside/to_link.yml"],
        ["--task", "ci/task.yaml"],
        ["--task", "../outside/task.yaml"],
        ["--config", "ci/config.yml"],
        ["--config", "ci/trusting.yml"],
        ["--config", "ci/config.yml", "--policy", "../outside/permissive.yml"],
        ["--policy", "git:HEAD:ci/policy.yml"],
        ["--policy", "git:HEAD^{commit}:ci/policy.yml"],
        ["--policy", "git:HEAD~0:ci/policy.yml"],
    ],
    ids=str,
)
def test_attack_bring_the_rules_along(review: Review, repository: Path, said: list[str]) -> None:
    """A link of the checkout chooses among the files of the machine, and one outside may lead into the checkout."""
    outside = repository.parent / "outside"
    outside.mkdir()
    files = {
        outside / "permissive.yml": HEAD,
        outside / "extends.yml": "policy: 1\nextends: [../ws/ci/policy.yml]\n",
        outside / "task.yaml": "task: 1\nprompt: Go.\npolicy: ../ws/ci/policy.yml\n",
        repository / "ci/task.yaml": "task: 1\nprompt: Go.\npolicy: ../../outside/permissive.yml\n",
        repository / "ci/config.yml": "policy: ../outside/permissive.yml\n",
        repository / "ci/trusting.yml": "policy: ci/policy.yml\ntrust-head: true\n",
    }
    for path, text in files.items():
        path.write_text(text)
    (repository / "ci/link.yml").symlink_to(outside / "permissive.yml")
    (repository / "ci/folder").symlink_to(outside)
    (outside / "to_link.yml").symlink_to(repository / "ci/link.yml")
    done = review(*said, *([] if "--task" in said else ["Review."]))
    assert done.returncode == RULES_OF_THE_HEAD, done.stderr
    assert "is a file of the pull request" in done.stderr
    assert not (repository / "canary").exists()


STEERING = ["prompt-file", "system-file", "append-system-file", "output-schema", "models-file", "ca-file"]
OF_THE_BASE = ("--policy", "git:origin/main:ci/policy.yml")


@pytest.mark.parametrize("flag", STEERING)
@pytest.mark.parametrize("name", ["ci/given", "ci/link", "git:HEAD:ci/given"])
def test_attack_bring_what_steers_the_run(review: Review, repository: Path, flag: str, name: str) -> None:
    (repository / "ci/given").write_text("{}")
    (repository.parent / "given").write_text("{}")
    (repository / "ci/link").symlink_to("../../given")
    done = review(*OF_THE_BASE, f"--{flag}", name, *([] if flag == "prompt-file" else ["Review."]))
    assert done.returncode == RULES_OF_THE_HEAD, done.stderr
    assert f"--{flag} " in done.stderr
    assert "is a file of the pull request" in done.stderr


def test_attack_bring_what_steers_the_run_by_a_variable_or_a_task(
    review: Review, repository: Path, tmp_path: Path
) -> None:
    (repository / "ci/given").write_text("{}")
    (tmp_path / "task.yaml").write_text("task: 1\nprompt: Go.\npolicy: read-only\nappend_system_file: ws/ci/given\n")
    for done in (
        review(*OF_THE_BASE, "Review.", CI_AGENT_SYSTEM_FILE="ci/given"),
        review("--task", str(tmp_path / "task.yaml")),
    ):
        assert done.returncode == RULES_OF_THE_HEAD, done.stderr
        assert "ci/given' is a file of the pull request" in done.stderr


@pytest.mark.parametrize("flag", [flag for flag in STEERING if flag != "ca-file"])
def test_what_steers_the_run_may_come_from_the_base(
    review: Review, git: Git, repository: Path, tmp_path: Path, flag: str
) -> None:
    texts = {"models-file": "models: {}\n", "output-schema": '{"type": "object"}'}
    (repository / "ci/given").write_text(texts.get(flag, "Be brief.\n"))
    git("add", ".")
    git("commit", "-qm", "base again")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    (repository / "ci/given").write_text("canary")
    (tmp_path / "script.yaml").write_text('{"turns": [{"text": "{}"}]}')
    prompt = [] if flag == "prompt-file" else ["Review."]
    done = review(*OF_THE_BASE, f"--{flag}", "git:refs/remotes/origin/main:ci/given", *prompt)
    assert done.returncode == 0, done.stderr
    assert "canary" not in done.stdout


@pytest.mark.parametrize("flag", STEERING)
def test_what_steers_the_run_may_lie_outside(review: Review, tmp_path: Path, flag: str) -> None:
    (tmp_path / "given").write_text("{}")
    done = review(*OF_THE_BASE, f"--{flag}", "../given", *([] if flag == "prompt-file" else ["Review."]))
    assert "is a file of the pull request" not in done.stderr


@pytest.mark.parametrize("said", [["--context-file", "ci/notes"], ["--agents-md"], ["--task"]], ids=str)
def test_attack_have_a_secret_of_the_machine_shown_by_a_link(
    review: Review, repository: Path, tmp_path: Path, said: list[str]
) -> None:
    (tmp_path / "secret").write_text("canary-of-the-machine")
    for name in ("ci/notes", "AGENTS.md"):
        (repository / name).symlink_to(tmp_path / "secret")
    task = tmp_path / "task.yaml"
    task.write_text(f"task: 1\nprompt: Go.\npolicy: read-only\ncontext_files: [{repository / 'ci/notes'}]\n")
    done = review("--task", str(task)) if said == ["--task"] else review(*OF_THE_BASE, *said, "Review.")
    assert done.returncode == RULES_OF_THE_HEAD, done.stderr
    assert "leads out of the checkout of the pull request by a link" in done.stderr
    assert "canary-of-the-machine" not in done.stdout + done.stderr


def test_attack_bring_a_git_of_ones_own(review: Review, repository: Path) -> None:
    """Jobs put `node_modules/.bin` on PATH."""
    folder = repository / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    (folder / "git").write_text("#!/bin/sh\ntouch canary\ncat ci/policy.yml\n")
    (folder / "git").chmod(0o755)
    for cwd in (repository, repository / "app"):
        assert review(*OF_THE_BASE, "Review.", cwd=cwd, PATH=f"{folder}:{os.environ['PATH']}").returncode == DENIED
    event = {"GITHUB_EVENT_NAME": "issue_comment", "GITHUB_SHA": "0" * 40, "PATH": f"{folder}:{os.environ['PATH']}"}
    assert review("--policy", "ci/policy.yml", "Review.", **event).returncode == RULES_OF_THE_HEAD
    assert not list(repository.rglob("canary"))


@pytest.mark.parametrize(
    "flag",
    [
        "--answer-file=out",
        "--report=markdown=out",
        "--proposals=out",
        "--spill-dir=out",
        "--transcript=out",
        "--lock=out",
        "--transcript-dir=out",
        "--state-dir=out",
    ],
)
def test_attack_have_a_file_of_the_machine_written_by_a_link(
    review: Review, repository: Path, tmp_path: Path, flag: str
) -> None:
    (tmp_path / "profile").write_text("before")
    (repository / "out").symlink_to(tmp_path / "profile")
    done = review(*OF_THE_BASE, flag, "Review.")
    assert done.returncode == RULES_OF_THE_HEAD, done.stderr
    assert "whatever it leads to would be written" in done.stderr
    assert (tmp_path / "profile").read_text() == "before"


@pytest.mark.parametrize("said", [["--state-dir"], ["--transcript-dir"], ["--state-dir", "--config"]], ids=str)
def test_attack_have_a_folder_made_by_a_link_outside_of_the_workspace(
    review: Review, repository: Path, tmp_path: Path, said: list[str]
) -> None:
    """The link lies in the same checkout; a config file that asks for trust comes with it, too."""
    (repository / "kept").symlink_to(tmp_path / "made")
    config = repository / "ci/trusting.yml"
    config.write_text("trust_head: true\n")
    given = [said[0], "kept", *(["--config", str(config)] if "--config" in said else [])]
    done = review(*OF_THE_BASE, "--workspace", "app", *given, "Review.")
    assert done.returncode == RULES_OF_THE_HEAD, done.stderr
    assert ("whatever it leads to would be written" in done.stderr) == ("--config" not in said)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("flag", ["--answer-file", "--state-dir", "--context-file", "--system-file", "--policy"])
def test_attack_have_the_way_to_a_file_go_in_circles(review: Review, repository: Path, flag: str) -> None:
    (repository / "loop").symlink_to("loop")
    policy = () if flag == "--policy" else OF_THE_BASE
    done = review(*policy, flag, "loop/x", "Review.")
    assert (done.returncode, "Too many levels of symbolic links" in done.stderr) == (3, True), done.stderr
    assert "Traceback" not in done.stderr


def test_data_of_the_checkout_is_shown_as_data(review: Review, repository: Path) -> None:
    (repository / "NOTES.md").write_text("note of the head")
    (repository / "AGENTS.md").symlink_to("NOTES.md")
    done = review(*OF_THE_BASE, "--context-file", "NOTES.md", "--agents-md", "Review.")
    assert done.returncode == DENIED, done.stderr
    assert done.stdout.count("note of the head") >= 2


@pytest.mark.parametrize("event", ["issue_comment", "workflow_run"])
def test_attack_have_ones_commit_checked_out_by_a_comment(
    review: Review, git: Git, repository: Path, event: str
) -> None:
    """Such a job starts with the default branch, unless its workflow fetches the pull request."""

    def commit(revision: str) -> str:
        found = subprocess.run(
            ["git", "rev-parse", revision], cwd=repository, capture_output=True, text=True, check=True
        )
        return found.stdout.strip()

    base, head = commit("origin/main"), commit("HEAD")
    job = {"GITHUB_EVENT_NAME": event, "GITHUB_BASE_REF": ""}
    done = review("--policy", "ci/policy.yml", "Review.", **job, GITHUB_SHA=base)
    assert done.returncode == RULES_OF_THE_HEAD, done.stderr
    assert not (repository / "canary").exists()
    assert review("--policy", "ci/policy.yml", "Review.", **job, GITHUB_SHA=head).returncode == 0
    git("checkout", "-q", base)
    assert review("--policy", "ci/policy.yml", "Review.", **job, GITHUB_SHA=base).returncode == DENIED


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_attack_name_a_branch_like_the_base(review: Review, git: Git, repository: Path, kind: str) -> None:
    git(kind, "origin/main", "HEAD")
    done = review("--policy", "git:origin/main:ci/policy.yml", "Review.")
    assert done.returncode == RULES_OF_THE_HEAD
    assert "more than one branch or tag is called so" in done.stderr
    assert not (repository / "canary").exists()
    assert review("--policy", "git:refs/remotes/origin/main:ci/policy.yml", "Review.").returncode == DENIED


def test_attack_commit_a_bare_repository(review: Review, git: Git, repository: Path) -> None:
    git("init", "-q", "--bare", "app")
    git("fetch", "-q", str(repository), "HEAD:refs/remotes/origin/main", cwd=repository / "app")
    done = review("--policy", "git:origin/main:ci/policy.yml", "Review.", cwd=repository / "app")
    assert done.returncode == RULES_OF_THE_HEAD
    assert "bare repository" in done.stderr
    assert not (repository / "app/canary").exists()


def test_attack_make_a_folder_a_submodule(review: Review, git: Git, repository: Path) -> None:
    git("init", "-q", "app")
    git("fetch", "-q", str(repository), "HEAD:refs/remotes/origin/main", cwd=repository / "app")
    done = review("--policy", "git:origin/main:ci/policy.yml", "Review.", cwd=repository / "app")
    assert done.returncode == RULES_OF_THE_HEAD
    assert "repository that lies in another" in done.stderr
    assert not (repository / "app/canary").exists()


@pytest.mark.parametrize("said", [["--trust-head"], ["--config", "../trusting.yml"]], ids=str)
def test_who_trusts_the_head_gets_its_rules(review: Review, repository: Path, said: list[str]) -> None:
    (repository.parent / "trusting.yml").write_text("trust-head: true\n")
    assert review("--policy", "ci/policy.yml", *said, "Review.").returncode == 0
    assert (repository / "canary").exists()


def test_the_rules_of_the_base_hold(review: Review, repository: Path) -> None:
    assert review("--policy", "git:origin/main:ci/policy.yml", "Review.").returncode == DENIED
    assert review("--policy", "git:HEAD~1:ci/policy.yml", "Review.", cwd=repository / "app").returncode == DENIED
    assert not (repository / "canary").exists()
