from pathlib import Path

import pytest

from ci_agent.policy.disk import MAX_ENTRIES, MAX_ENTRIES_ABROAD, DiskBudget, walk
from ci_agent.policy.shell.program import BoundExceededError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.txt", ".git/config", "d/e/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "dangling").symlink_to("nowhere")
    return tmp_path


def test_a_walk_names_all_beneath_and_follows_no_link(folder: Path) -> None:
    found = {"/".join((*above, entry.name)) for above, entries in walk(folder, DiskBudget()) for entry in entries}
    assert found == {"a.txt", ".git", ".git/config", "d", "d/e", "d/e/b.txt", "link", "dangling"}


def test_a_walk_that_sees_too_much_exceeds_a_bound(folder: Path) -> None:
    with pytest.raises(BoundExceededError, match=str(MAX_ENTRIES)):
        list(walk(folder, DiskBudget(entries=5)))


def test_less_is_looked_at_outside_the_workspace(tmp_path: Path) -> None:
    budget = DiskBudget()
    inside = budget.at(tmp_path / "work" / "src", tmp_path / "work")
    outside = budget.at(tmp_path, tmp_path / "work")
    assert inside is budget
    assert budget.at(tmp_path / "work", tmp_path / "work") is budget
    assert (outside.entries, outside is budget.at(Path("/"), tmp_path / "work")) == (MAX_ENTRIES_ABROAD, True)
    with pytest.raises(BoundExceededError, match=f"more than {MAX_ENTRIES_ABROAD} files"):
        outside.spend_entries(MAX_ENTRIES_ABROAD + 1)
