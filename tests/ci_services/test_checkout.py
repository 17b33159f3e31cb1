"""Where a run stands in its repository."""

from pathlib import Path

import pytest

from ci_agent.ci_services.checkout import find_checkout
from ci_agent.transcript.run_facts import CheckoutFacts


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's folder with a part in it, in which the run is started."""
    folder = tmp_path.resolve() / "job"
    (folder / "site" / "docs").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_the_top_of_the_repository_is_the_nearest_folder_that_has_git(job: Path) -> None:
    (job.parent / ".git").mkdir()
    (job / "site" / ".git").write_text("gitdir: elsewhere\n")  # a worktree or a submodule
    assert find_checkout(job / "site" / "docs", {}) == CheckoutFacts(str(job / "site"), str(job))
    assert find_checkout(job / "site", {}) == CheckoutFacts(str(job / "site"), str(job))
    assert find_checkout(job, {}) == CheckoutFacts(str(job.parent), str(job))


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE"])
def test_files_that_were_fetched_without_git_begin_at_the_folder_of_the_job(job: Path, variable: str) -> None:
    (job.parent / ".git").mkdir()  # of the runner's own machine
    found = find_checkout(job / "site" / "docs", {variable: str(job)})
    assert found == CheckoutFacts(str(job), str(job))


def test_a_repository_within_the_folder_of_the_job_counts_before_it(job: Path) -> None:
    (job / "site" / ".git").mkdir()
    assert find_checkout(job / "site" / "docs", {"GITHUB_WORKSPACE": str(job)}).root == str(job / "site")


def test_a_workspace_elsewhere_is_not_of_the_job(job: Path) -> None:
    elsewhere = job.parent / "elsewhere"
    elsewhere.mkdir()
    assert find_checkout(elsewhere, {"GITHUB_WORKSPACE": str(job)}) == CheckoutFacts(str(elsewhere), str(job))


def test_without_any_repository_paths_begin_where_the_run_was_started(job: Path) -> None:
    assert find_checkout(job / "site", {}) == CheckoutFacts(str(job), str(job))


def test_a_current_folder_that_is_gone_is_no_error(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = job / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_checkout(job / "site", {}) == CheckoutFacts(str(job / "site"), str(job / "site"))
    monkeypatch.chdir(job)
