import errno
import os
from pathlib import Path

import pytest

from ci_agent.tools.spill import open_spill


def test_a_file_takes_what_comes(tmp_path: Path) -> None:
    with open_spill(tmp_path, "call-") as spill:
        for chunk in (b"one", b"", b"two"):
            spill.write(chunk)
    (path,) = tmp_path.glob("call-*.log")
    assert (path.read_bytes(), spill.details) == (b"onetwo", {"output_file": str(path)})


def test_without_a_folder_nothing_is_kept() -> None:
    with open_spill(None, "call-") as spill:
        spill.write(b"one")
    assert spill.details == {}


def test_what_is_too_long_is_cut_and_the_details_say_so(tmp_path: Path) -> None:
    with open_spill(tmp_path, "call-", max_bytes=5) as spill:
        for chunk in (b"one", b"two", b"three"):
            spill.write(chunk)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"onetw"
    assert spill.details == {
        "output_file": str(path),
        "output_file_problem": "the output is longer than the file may be",
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_ends_the_file_and_not_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (full, "/dev/full"))
    with open_spill(tmp_path, "call-") as spill:
        spill.write(b"one")
        spill.write(b"two")
    assert spill.details == {"output_file": "/dev/full", "output_file_problem": os.strerror(errno.ENOSPC)}


class Shouting:
    """Holds back what comes after the last blank."""

    held = ""

    def feed(self, chunk: str) -> str:
        self.held += chunk
        said, blank, self.held = self.held.rpartition(" ")
        return (said + blank).upper()

    def flush(self) -> str:
        return self.held.upper()


def test_what_is_written_goes_through_the_filter_and_bytes_that_are_no_text_stay(tmp_path: Path) -> None:
    data = "one tw\N{EURO SIGN} ".encode() + b"\xff\xfe three"
    with open_spill(tmp_path, "call-", new_filter=Shouting) as spill:
        for at in range(len(data)):
            spill.write(data[at : at + 1])
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == "ONE TW\N{EURO SIGN} ".encode() + b"\xff\xfe THREE"
