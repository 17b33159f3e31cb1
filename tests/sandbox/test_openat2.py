"""What the kernel opens, and what it refuses."""

import errno
import os
import sys
from pathlib import Path

import pytest

from ci_agent.sandbox.openat2 import FOLLOW_NO_LINKS, STAY_BENEATH, openat2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the call is Linux's")


@pytest.fixture
def folder(tmp_path: Path) -> int:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/file").touch()
    (tmp_path / "in/link").symlink_to("file")
    (tmp_path / "beside").touch()
    descriptor = os.open(tmp_path / "in", os.O_RDONLY)
    try:
        os.close(openat2(descriptor, b"file", os.O_RDONLY, 0))
    except OSError as error:
        os.close(descriptor)
        if error.errno in {errno.ENOSYS, errno.EPERM}:
            pytest.skip("this kernel has no openat2")
        raise
    return descriptor


@pytest.mark.parametrize(
    ("path", "resolve", "number"),
    [
        (b"file", FOLLOW_NO_LINKS | STAY_BENEATH, None),
        (b"link", 0, None),
        (b"link", FOLLOW_NO_LINKS, errno.ELOOP),
        (b"../beside", FOLLOW_NO_LINKS, None),
        (b"../beside", STAY_BENEATH, errno.EXDEV),
        (b"missing", 0, errno.ENOENT),
    ],
)
def test_links_and_ways_out_are_refused_as_asked(folder: int, path: bytes, resolve: int, number: int | None) -> None:
    try:
        os.close(openat2(folder, path, os.O_RDONLY, resolve))
        found = None
    except OSError as error:
        found = error.errno
    finally:
        os.close(folder)
    assert found == number
