import os
import stat
from pathlib import Path

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


def test_removing_what_was_never_made_does_nothing() -> None:
    PrivateFolder().remove()
