"""Both ways of reaching a folder, held to the same."""

import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from ci_agent.tools.beneath import EnterFolder, best_way_in, enter_at_once, enter_folder, enter_name_by_name

WAYS = [
    pytest.param(
        enter_at_once,
        id="openat2",
        marks=pytest.mark.skipif(best_way_in() is not enter_at_once, reason="this kernel has no openat2"),
    ),
    pytest.param(enter_name_by_name, id="name-by-name"),
]
both_ways = pytest.mark.parametrize("enter", WAYS)


def place_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def refusal(path: Path, enter: EnterFolder, *, create: bool = False) -> int | None:
    """The number of the error; None when the folder was entered."""
    try:
        with enter_folder(path, enter, create=create):
            return None
    except OSError as error:
        return error.errno


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@both_ways
def test_a_folder_is_reached(tree: Path, enter: EnterFolder) -> None:
    for path in (tree / "a/b", Path("/"), tree):
        with enter_folder(path, enter) as descriptor:
            assert place_of(descriptor) == (path.stat().st_dev, path.stat().st_ino)


@both_ways
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("link", errno.ELOOP),
        ("link/b", errno.ELOOP),
        ("loop", errno.ELOOP),
        ("loop/x", errno.ELOOP),
        ("dangling", errno.ELOOP),
        ("file", errno.ENOTDIR),
        ("file/x", errno.ENOTDIR),
        ("pipe", errno.ENOTDIR),
        ("missing", errno.ENOENT),
        ("n" * 256, errno.ENAMETOOLONG),
    ],
)
def test_everything_else_is_refused_with_the_same_error(
    tree: Path, enter: EnterFolder, name: str, expected: int
) -> None:
    before = len(os.listdir("/dev/fd"))
    assert refusal(tree / name, enter) == expected
    assert len(os.listdir("/dev/fd")) == before


@both_ways
def test_links_of_the_kernel_are_links_too(enter: EnterFolder) -> None:
    if not os.path.islink("/proc/self/cwd"):
        pytest.skip("there is no /proc")
    for path in ("/proc/self/cwd", f"/proc/{os.getpid()}/root", f"/proc/{os.getpid()}/fd/0"):
        assert refusal(Path(path), enter) == errno.ELOOP


@both_ways
def test_missing_folders_are_created_and_links_are_not_followed_for_it(tree: Path, enter: EnterFolder) -> None:
    with enter_folder(tree / "a/new/newer", enter, create=True) as descriptor:
        assert place_of(descriptor)[1] == (tree / "a/new/newer").stat().st_ino
    for name in ("link/new", "dangling/new", "dangling"):
        assert refusal(tree / name, enter, create=True) == errno.ELOOP
    assert not (tree / "a/new/new").exists()
    assert not (tree / "nowhere").exists()


@both_ways
def test_two_makers_of_one_folder_do_not_hinder_each_other(tree: Path, enter: EnterFolder) -> None:
    failures: list[OSError] = []

    def make() -> None:
        for number in range(100):
            try:
                with enter_folder(tree / f"x{number}/y/z", enter, create=True):
                    pass
            except OSError as error:
                failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@both_ways
def test_a_socket_is_no_folder(tree: Path, enter: EnterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert stat.S_ISSOCK((tree / "socket").stat().st_mode)
        with pytest.raises(NotADirectoryError), enter_folder(tree / "socket", enter):
            pass


def test_a_folder_too_deep_for_one_path_is_reached_name_by_name_and_refused_at_once(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 250] * 17)
    with enter_folder(deep, enter_name_by_name, create=True) as descriptor:
        os.mkdir("end", dir_fd=descriptor)
    with enter_folder(deep / "end", enter_name_by_name):
        pass
    if best_way_in() is enter_at_once:
        assert refusal(deep, enter_at_once) == errno.ENAMETOOLONG


def test_the_way_in_that_tools_take_is_one_of_those_that_are_tried_here() -> None:
    """Where it is none of them, the tests of openat2 here and in `test_races` would be skipped."""
    try:
        os.close(enter_at_once(Path("/")))
    except (OSError, AttributeError):  # before Linux 5.6, or macOS
        assert best_way_in() is enter_name_by_name
    else:
        assert best_way_in() is enter_at_once
