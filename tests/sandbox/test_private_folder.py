import os
import stat
import tempfile
from pathlib import Path

import pytest

from ci_agent.sandbox import private_folder
from ci_agent.sandbox.private_folder import PrivateFolder


def test_it_is_made_once_and_for_its_user_alone() -> None:
    folder = PrivateFolder()
    path = folder.path()
    try:
        assert path == Path(os.path.realpath(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert folder.path() == path
    finally:
        folder.remove()
    assert not path.exists()


def test_it_is_removed_with_folders_that_were_locked_and_not_what_links_lead_to(tmp_path: Path) -> None:
    folder = PrivateFolder()
    locked = folder.path() / "locked" / "inner"
    locked.mkdir(parents=True)
    (locked / "file").write_text("")
    (tmp_path / "kept").write_text("")
    (folder.path() / "link").symlink_to(tmp_path)
    locked.chmod(0)
    locked.parent.chmod(0o500)
    folder.remove()
    assert not locked.parent.parent.exists()
    assert (tmp_path / "kept").exists()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_what_a_killed_run_has_left_is_removed_by_the_next_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(private_folder, "_ABANDONED_AFTER_S", -1.0)
    in_use, next_one = PrivateFolder(), PrivateFolder()
    used = in_use.path()
    (tmp_path / "ci-agent-tmp-left" / "inner").mkdir(parents=True)
    (tmp_path / "somebody-elses").mkdir()
    (tmp_path / "ci-agent-tmp-link").symlink_to("somebody-elses")
    mine = next_one.path()
    names = {used.name, mine.name, "somebody-elses", "ci-agent-tmp-link"}
    assert set(os.listdir(tmp_path)) == names
    next_one.remove()
    in_use.remove()
    assert set(os.listdir(tmp_path)) == names - {used.name, mine.name}


def test_a_young_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "ci-agent-tmp-young").mkdir()
    folder = PrivateFolder()
    folder.path()
    folder.remove()
    assert os.listdir(tmp_path) == ["ci-agent-tmp-young"]


def test_removing_what_was_never_made_does_nothing() -> None:
    PrivateFolder().remove()
