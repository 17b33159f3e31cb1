"""A pull request brings everything but the rules of its own review, wherever in the checkout they are said to lie."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Git = Callable[..., None]
Review = Callable[..., CompletedProcess[str]]

COMMAND = [sys.executable, "-P", "-m", "ci_agent", "run"]
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
def review(environment: dict[str, str], repository: Path, tmp_path: Path) -> Review:
    """A run in a job of the pull request."""

    def call(*args: str, cwd: Path = repository) -> CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "--model", f"scripted:{tmp_path / 'script.yaml'}", *args],
            cwd=cwd,
            env={**environment, "GITHUB_EVENT_NAME": "pull_request", "GITHUB_BASE_REF": "main"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

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
