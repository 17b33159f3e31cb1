"""No result of a run breaks the repository that it is about."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_agent.cli.repository_places import repository_place

CIAgent = Callable[..., Any]

RESULTS = (
    ("--report", "junit=.git/config"),
    ("--report", "junit=link/config"),
    ("--report", "junit=.GIT/x"),
    ("--report", "junit=.github/workflows/ci.yml"),
    ("--answer-file", ".git/HEAD"),
    ("--answer-file", "/proc/self/cwd/.git/HEAD"),
    ("--transcript", ".git/index"),
    ("--transcript", "link/t.jsonl"),
    ("--proposals", ".git/packed-refs"),
    ("--lock", ".git/index.lock"),
    ("--spill-dir", ".git/hooks"),
    ("--spill-dir", ".github/workflows"),
    ("--report", "junit=inner/.git"),
    ("--answer-file", "bare/hooks/update"),
    ("--answer-file", "kept/config"),
)
BREAKS = "lies where git keeps a repository, which would be broken by it"
WORKFLOW = "lies among the workflows, which GitHub runs"


@pytest.fixture
def repository(workspace: Path) -> Path:
    """With one that is bare, one whose folder lies apart, and a link to its own."""
    subprocess.run(["git", "init", "-q", "."], cwd=workspace, check=True)
    subprocess.run(["git", "init", "-q", "--bare", "bare"], cwd=workspace, check=True)
    subprocess.run(["git", "init", "-q", "--separate-git-dir", "kept", "inner"], cwd=workspace, check=True)
    (workspace / "link").symlink_to(".git")
    (workspace / ".github/workflows").mkdir(parents=True)
    (workspace / "s.yaml").write_text("turns: [{text: x}]\n")
    return workspace


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("result", RESULTS, ids=" ".join)
def test_a_result_in_a_repositorys_own_files_is_a_usage_error(
    ci_agent: CIAgent, repository: Path, result: tuple[str, str]
) -> None:
    before = contents(repository)
    done = ci_agent("run", "--policy", "read-only", "--model", "scripted:s.yaml", *result, "Look.")
    assert (done.returncode, "cannot go there" in done.stderr) == (2, True), done.stderr
    assert contents(repository) == before


@pytest.mark.parametrize("option", ["--state-dir", "--transcript-dir"])
def test_a_folder_of_results_in_a_git_folder_is_not_made(ci_agent: CIAgent, repository: Path, option: str) -> None:
    (repository / "w").mkdir()
    place = repository / "kept/x"
    options = ["--workspace", "w", option, str(place)]
    done = ci_agent("run", "--policy", "read-only", "--model", "scripted:s.yaml", *options, "Look.")
    assert (done.returncode, place.exists()) == (2, False), done.stderr


def test_a_refused_run_leaves_no_report_there(ci_agent: CIAgent, repository: Path) -> None:
    done = ci_agent("run", "--policy", "nowhere.yml", "--report", "text=.git/hooks/update", "Look.")
    assert (done.returncode, (repository / ".git/hooks/update").exists()) == (2, False), done.stderr


def test_what_lies_beside_is_written(ci_agent: CIAgent, repository: Path) -> None:
    (repository / "tracked.txt").write_text("old\n")
    options = ["--answer-file", "tracked.txt", "--report", "text=.github/report.txt", "--quiet"]
    done = ci_agent("run", "--policy", "read-only", "--model", "scripted:s.yaml", *options, "Look.")
    assert (done.returncode, done.stderr, (repository / "tracked.txt").read_text()) == (0, "", "x\n")
    assert (repository / ".github/report.txt").exists()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".git", BREAKS),
        ("a/.Git/b", BREAKS),
        (".git /x", BREAKS),
        ("a/.github/Workflows/x", WORKFLOW),
        (".github/workflows", WORKFLOW),
        (".gitignore", None),
        ("a.git/x", None),
        (".github/x", None),
    ],
)
def test_places_are_told_by_their_names(tmp_path: Path, path: str, problem: str | None) -> None:
    assert repository_place(tmp_path / path) == problem
