"""Where ci-agent was installed from, by what installers keep of it."""

import subprocess
from pathlib import Path

import pytest

from ci_agent.starter.source import PLACEHOLDER, Source, read_source

COMMIT = "89" * 20


@pytest.mark.parametrize(
    ("address", "repository"),
    [
        ("https://github.com/acme/ci-agent", "github.com/acme/ci-agent"),
        ("https://github.com/acme/ci-agent.git", "github.com/acme/ci-agent"),
        ("https://me:sk-token@git.acme.test:8443/tools/ci-agent.git", "git.acme.test:8443/tools/ci-agent"),
        ("ssh://git@github.com/acme/ci-agent.git", "github.com/acme/ci-agent"),
        ("git@github.com:acme/ci-agent.git", "github.com/acme/ci-agent"),
    ],
)
def test_a_repository_is_named_without_who_may_stand_in_its_address(address: str, repository: str) -> None:
    told = {"url": address, "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    assert read_source(told) == Source(repository, COMMIT)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"url": "https://acme.test/ci_agent-0.1.0-py3-none-any.whl", "archive_info": {}},
        {"url": "https://github.com/acme/ci-agent; rm", "vcs_info": {"commit_id": COMMIT}},
        {"url": "https://github.com/acme/ci-agent", "vcs_info": {"commit_id": "main"}},
        {"url": "file:///gone", "dir_info": {}},
    ],
)
def test_what_names_no_repository_and_commit_is_not_guessed(told: dict[str, object]) -> None:
    assert read_source(told) is None


def test_a_folder_is_asked_for_its_repository_and_its_commit(tmp_path: Path) -> None:
    folder = tmp_path / "with blank"
    told = {"url": folder.as_uri(), "dir_info": {"editable": True}}
    git(tmp_path, "init", "-q", str(folder))
    assert read_source(told) is None
    git(folder, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
    git(folder, "remote", "add", "origin", "git@github.com:acme/ci-agent.git")
    assert read_source(told) == Source("github.com/acme/ci-agent", git(folder, "rev-parse", "HEAD"))


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_source_is_written_as_pip_and_as_workflows_take_it() -> None:
    assert PLACEHOLDER.requirement == f"git+https://github.com/OWNER/ci-agent@{PLACEHOLDER.commit}"
    assert PLACEHOLDER.action == f"OWNER/ci-agent@{PLACEHOLDER.commit}"
    assert Source("gitlab.com/acme/ci-agent", COMMIT).action is None
