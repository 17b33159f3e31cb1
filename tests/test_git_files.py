"""Files of another revision: what they are named, what git must not do for them, and what a checkout cannot change."""

import os
import subprocess
from pathlib import Path

import pytest

from ci_agent import ConfigurationError, load_policy
from ci_agent.git_files import beside, read_named_file
from ci_agent.tasks import load_task

POLICY = "policy: 1\nextends: [../base.yml]\nrules: [{id: look, allow: ls}]\n"
BASE = "policy: 1\nrules: [{id: read, allow: read}]\n"
TASK = "task: 1\nprompt: Go.\npolicy: policies/night.yml\ncontext_files: [style.md]\n"


def git(folder: Path, *args: str) -> None:
    identity = {f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(folder)}
    subprocess.run(["git", *args], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A revision `base` with a policy and a task; the checkout has worse ones."""
    folder = tmp_path / "repo"
    (folder / "policies").mkdir(parents=True)
    for name, text in (("policies/night.yml", POLICY), ("base.yml", BASE), ("task.yaml", TASK), ("style.md", "Short.")):
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    git(folder, "tag", "base")
    for name in ("policies/night.yml", "base.yml"):
        (folder / name).write_text("policy: 1\nrules: [{id: all, allow: [bash], command: '**'}]\n")
    git(folder, "commit", "-qam", "worse")
    monkeypatch.chdir(folder)  # the names are of the repository that one stands in
    return folder


def test_a_policy_of_a_revision_brings_what_it_extends_from_there(repository: Path) -> None:
    policy = load_policy("git:base:policies/night.yml", workspace=repository)
    assert [policy.decide(tool, {"path": "."}).effect for tool in ("ls", "read")] == ["allow", "allow"]
    decision = policy.decide("bash", {"command": "rm -rf x"})
    assert decision.effect == "deny"
    assert policy.decide("read", {"path": "base.yml"}).source == "git:base:base.yml:2"
    assert policy.source.files == ()


def test_an_error_of_it_has_its_place(repository: Path) -> None:
    (repository / "wrong.yml").write_text("policy: 1\nruels: []\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "wrong")
    with pytest.raises(ConfigurationError, match=r"^git:HEAD:wrong.yml:2:1: .*rules"):
        load_policy("git:HEAD:wrong.yml", workspace=repository)


def test_a_task_of_a_revision_means_files_of_that_revision(repository: Path) -> None:
    task = load_task("git:base:task.yaml")
    assert (task.policy, task.context_files) == ("git:base:policies/night.yml", ("git:base:style.md",))
    assert read_named_file(task.context_files[0], "context file") == "Short."


def test_a_pin_and_a_cycle_hold_there_too(repository: Path) -> None:
    (repository / "a.yml").write_text("policy: 1\nextends: [./b.yml]\n")
    (repository / "b.yml").write_text("policy: 1\nextends: [./a.yml]\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "cycle")
    with pytest.raises(ConfigurationError, match="cannot extend itself"):
        load_policy("git:HEAD:a.yml", workspace=repository)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("git:base", "names no file of a revision"),
        ("git::base.yml", "names no file of a revision"),
        ("git:--help:base.yml", "names no file of a revision"),
        ("git:base..main:base.yml", "names no file of a revision"),
        ("git:base:../outside.yml", "leads out of the repository"),
        ("git:base:/etc/passwd", "leads out of the repository"),
        ("git:base:a\nb", "names no file of a revision"),
        ("git:base:gone.yml", "does not exist in 'base'"),
        ("git:base:policies", "bad file"),
        ("git:gone:base.yml", "is the revision fetched?"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_what_is_no_file_of_a_revision_is_refused(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match="git:") as caught:
        read_named_file(name, "policy")
    assert problem in str(caught.value)


def test_a_large_file_is_refused(repository: Path) -> None:
    with pytest.raises(ConfigurationError, match="larger than 0 KiB"):
        read_named_file("git:base:base.yml", "policy", max_bytes=10)
    assert repository.is_dir()


def test_git_runs_nothing_that_the_repository_or_the_environment_names(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "filter.x.smudge",
        "filter.x.clean",
    ):
        git(repository, "config", setting, f"touch {canary}")
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")
    git(repository, "config", "diff.x.textconv", f"touch {canary}; cat")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canary}")
    assert read_named_file("git:base:base.yml", "policy") == BASE
    assert not canary.exists()


@pytest.mark.parametrize(
    ("name", "other", "means"),
    [
        ("a/b.yml", "c.yml", "a/c.yml"),
        ("a/b.yml", "../c.yml", "c.yml"),
        ("a/b/c.yml", "../../d/e.yml", "d/e.yml"),
        ("a/b.yml", "/c.yml", "/c.yml"),
        ("git:v1:a/b.yml", "c.yml", "git:v1:a/c.yml"),
        ("git:v1:a/b.yml", "../c.yml", "git:v1:c.yml"),
        ("git:v1:a/b.yml", "git:v2:c.yml", "git:v2:c.yml"),
        ("a/b.yml", "git:v2:c.yml", "git:v2:c.yml"),
    ],
)
def test_names_are_relative_to_the_file_that_says_them(name: str, other: str, means: str) -> None:
    assert beside(name, other) == means


def test_a_name_that_leads_through_a_link_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "tasks").mkdir(parents=True)
    (tmp_path / "tasks").symlink_to("real/tasks")
    monkeypatch.chdir(tmp_path)
    assert beside("tasks/a.yaml", "../policy.yml") == "tasks/../policy.yml"
