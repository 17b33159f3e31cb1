"""A key that comes by descriptor is read once, and the descriptor is gone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent.cli.key_file import MAX_KEY_BYTES, read_key
from ci_agent.errors import ConfigurationError, InvalidFileError

KEY = "key-0123456789abcdef"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends; whoever closes one takes it out of here."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_key_comes_out_of_a_pipe_in_pieces_and_the_descriptor_is_closed(folder: str, pipe: tuple[int, int]) -> None:
    read_end, write_end = pipe
    os.write(write_end, KEY[:5].encode())
    os.write(write_end, f"{KEY[5:]}\n".encode())
    os.close(write_end)
    assert read_key(f"{folder}/{read_end}") == KEY
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read_end)


def test_a_file_that_has_no_name_any_more_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    descriptor = os.open(path, os.O_RDONLY)
    path.unlink()
    assert read_key(f"/dev/fd/{descriptor}") == KEY


def test_standard_input_gives_its_key_and_is_empty_afterwards() -> None:
    script = "import sys; from ci_agent.cli.key_file import read_key; print(read_key('/dev/stdin'), sys.stdin.read())"
    done = subprocess.run([sys.executable, "-c", script], input=KEY, capture_output=True, text=True, check=True)
    assert done.stdout == f"{KEY} \n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold one key and nothing else"),
        (b"two words", "must hold one key and nothing else"),
        (b"x" * (MAX_KEY_BYTES + 1), "did not end within 60 s and 64 KiB"),
        (b"\xff\xfe\xfd", "UTF-16"),
        (b"key-\xff", "UTF-8"),
    ],
)
def test_what_is_no_key_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    with pytest.raises((ConfigurationError, InvalidFileError), match=message) as caught:
        read_key(f"/dev/fd/{descriptor}")
    assert "key-" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/dev/fd/1", "is the run's own output"),
        ("/dev/fd/2", "is the run's own output"),
        ("/dev/fd/987654", "Bad file descriptor"),
        ("/dev/fd/99999999", "Bad file descriptor"),
    ],
)
def test_a_descriptor_that_cannot_have_a_key_is_refused(path: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_key(path)


def test_a_folder_has_no_key(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(ConfigurationError, match="Is a directory"):
        read_key(f"/dev/fd/{descriptor}")
    os.close(descriptor)


def test_nobody_waits_for_ever_for_a_writer(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ci_agent.cli.key_file.WAIT_FOR_KEY_S", 0.05)
    with pytest.raises(ConfigurationError, match="did not end within"):
        read_key(f"/dev/fd/{pipe[0]}")
