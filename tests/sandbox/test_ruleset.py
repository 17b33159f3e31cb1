from pathlib import Path

import pytest

from ci_agent.sandbox import landlock, ruleset
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.landlock import EXECUTE, READ_DIR, READ_FILE
from ci_agent.sandbox.ruleset import TooManyEntriesError, ruleset_for

READ = EXECUTE | READ_FILE | READ_DIR


def readable_beneath(folder: Path, access: Access) -> list[str]:
    grants = ruleset_for(access, 7).grants
    top = str(folder)
    return sorted(path[len(top) + 1 :] for path, bits in grants if path.startswith(top + "/") and bits == READ)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    for name in ("a/x", "a/secret", "a/b/y", "c/z"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    return top


def test_the_siblings_of_what_is_hidden_are_granted_one_by_one(folder: Path) -> None:
    assert readable_beneath(folder, Access(hidden=(str(folder / "a/secret"),))) == ["a/b", "a/x", "c"]


def test_a_hidden_folder_is_left_out_with_all_that_is_in_it(folder: Path) -> None:
    hidden = (str(folder / "a"), str(folder / "a/secret"))
    assert readable_beneath(folder, Access(hidden=hidden)) == ["c"]


def test_links_beside_what_is_hidden_grant_nothing(folder: Path) -> None:
    (folder / "link").symlink_to("a/secret")
    assert readable_beneath(folder, Access(hidden=(str(folder / "a/secret"),))) == ["a/b", "a/x", "c"]


def test_what_is_not_there_is_not_looked_for(folder: Path) -> None:
    assert readable_beneath(folder, Access(hidden=(str(folder / "nothing"),))) == []


def test_too_many_siblings_are_refused_and_not_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruleset, "MAX_ENTRIES", 60)
    for number in range(61):
        (folder / f"{number}").write_text("")
    with pytest.raises(TooManyEntriesError, match="more than 60 files beside"):
        ruleset_for(Access(hidden=(str(folder / "a/secret"),)), 7)


def test_network_and_scopes_are_handled_as_far_as_the_version_goes() -> None:
    def handled(abi: int, access: Access) -> tuple[int, int]:
        made = ruleset_for(access, abi)
        return made.handled_network, made.scopes

    assert handled(3, Access()) == (0, 0)
    assert handled(4, Access()) == (landlock.BIND_TCP | landlock.CONNECT_TCP, 0)
    assert handled(6, Access()) == (landlock.BIND_TCP | landlock.CONNECT_TCP, 3)
    assert handled(6, Access(network=True)) == (0, 3)
