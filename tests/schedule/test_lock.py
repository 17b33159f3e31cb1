import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent.errors import BusyError, ConfigurationError
from ci_agent.schedule.lock import hold_lock

HOLD = """
import signal, sys
from pathlib import Path
from ci_agent.errors import BusyError
from ci_agent.schedule.lock import hold_lock
try:
    with hold_lock(Path("lock")):
        print("held", flush=True)
        signal.pause()
except BusyError as error:
    print("busy", flush=True)
    sys.exit(error.exit_code)
"""


def start_holder(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", HOLD], cwd=folder, stdout=subprocess.PIPE, text=True)


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline()


def test_a_free_lock_is_held_says_by_whom_and_can_be_held_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for _ in range(2):
        with hold_lock(path):
            assert path.read_text() == f"{os.getpid()}\n"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.exists()


def test_a_second_holder_is_told_at_once_who_has_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(tmp_path) as holder:
        assert first_line(holder) == "held\n"
        with pytest.raises(BusyError) as caught, hold_lock(path):
            pytest.fail("held twice")
        holder.kill()
    assert str(caught.value) == f"another run holds the lock '{path}' (process {holder.pid})"
    assert caught.value.exit_code == 8


def test_a_holder_that_was_killed_blocks_nobody(tmp_path: Path) -> None:
    with start_holder(tmp_path) as holder:
        assert first_line(holder) == "held\n"
        holder.send_signal(signal.SIGKILL)
    with hold_lock(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_of_ten_that_start_together_one_gets_the_lock(tmp_path: Path) -> None:
    holders = [start_holder(tmp_path) for _ in range(10)]
    try:
        assert sorted(map(first_line, holders)) == ["busy\n"] * 9 + ["held\n"]
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def test_a_child_of_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    with hold_lock(path):
        pass
    child.kill()
    child.wait()


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(KeyError), hold_lock(path):
        raise KeyError
    with hold_lock(path):
        pass


@pytest.mark.parametrize("content", ["policy: 1\n", "12 monkeys\n", "7", "\n", "9" * 40])
def test_a_file_with_other_content_is_locked_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "lock"
    path.write_text(content)
    with hold_lock(path), pytest.raises(BusyError, match=r"lock '.*lock'$"), hold_lock(path):
        pytest.fail("held twice")
    assert path.read_text() == content


def test_what_an_earlier_holder_wrote_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("4194304\n")
    with hold_lock(path):
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_folder_that_is_missing_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught, hold_lock(tmp_path / "no" / "lock"):
        pytest.fail("held")
    assert str(caught.value) == f"lock file '{tmp_path}/no/lock' cannot be opened: No such file or directory"


def test_a_folder_a_device_and_a_pipe_are_configuration_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path, "cannot be opened: Is a directory"),
        (Path("/dev/null"), "is not a regular file; name a file of its own for the lock"),
        (tmp_path / "pipe", "is not a regular file; name a file of its own for the lock"),
        (tmp_path / "a\0b", "cannot be opened: its name holds a NUL character or a lone surrogate"),
    ):
        with pytest.raises(ConfigurationError) as caught, hold_lock(path):
            pytest.fail("held")
        assert str(caught.value) == f"lock file {str(path)!r} {reason}"


@pytest.mark.parametrize("target", ["other", "missing"])
def test_a_link_that_somebody_put_there_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "other").touch()
    (tmp_path / "lock").symlink_to(target)
    with pytest.raises(ConfigurationError) as caught, hold_lock(tmp_path / "lock"):
        pytest.fail("held")
    assert str(caught.value).endswith("cannot be opened: it is a symbolic link; name the file itself")
    assert (tmp_path / "other").read_text() == ""
    assert not (tmp_path / "missing").exists()
