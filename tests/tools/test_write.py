import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.write import create_write_tool

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]


@pytest.fixture
def write(files: FileAccess) -> Tool:
    return create_write_tool(files)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_created_with_its_folders(tmp_path: Path, write: Tool, call: Call) -> None:
    assert call(write, path="a/b/c.txt", content="one\ntwo €") == ToolResult(
        (TextContent("Created a/b/c.txt: 11 bytes, 2 lines."),),
        {"created": True, "size_bytes": 11, "lines": 2, "diff": None},
    )
    assert (tmp_path / "a/b/c.txt").read_bytes() == "one\ntwo €".encode()
    assert names(tmp_path / "a/b") == ["c.txt"]


def test_overwriting_says_so_and_records_the_difference(tmp_path: Path, write: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert call(write, path="a.txt", content="one\n2\n") == ToolResult(
        (TextContent("Overwrote a.txt: 6 bytes, 2 lines."),),
        {
            "created": False,
            "size_bytes": 6,
            "lines": 2,
            "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        },
    )


def test_a_binary_file_or_one_that_may_not_be_read_leaves_no_trace_in_the_record(files: FileAccess, call: Call) -> None:
    root = files.workspace.root
    (root / "blob").write_bytes(b"\0\1")
    (root / "secret").write_text("hidden")
    write_only = create_write_tool(replace(files, permits=lambda effect, _path: effect == "write"))
    for tool, name in ((create_write_tool(files), "blob"), (write_only, "secret")):
        result = call(tool, path=name, content="x")
        assert result.details == {"created": False, "size_bytes": 1, "lines": 1, "diff": None}
        assert (root / name).read_text() == "x"


def test_line_ends_are_written_as_given(tmp_path: Path, write: Tool, call: Call) -> None:
    call(write, path="a.txt", content="one\r\ntwo\n\0")
    assert (tmp_path / "a.txt").read_bytes() == b"one\r\ntwo\n\0"


def test_the_mode_of_an_existing_file_stays_and_a_new_one_obeys_the_umask(
    tmp_path: Path, write: Tool, call: Call
) -> None:
    (tmp_path / "run.sh").touch()
    (tmp_path / "run.sh").chmod(0o751)
    before = os.umask(0o027)
    try:
        call(write, path="run.sh", content="#!/bin/sh\n")
        call(write, path="new/file", content="")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o751
    assert stat.S_IMODE((tmp_path / "new/file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o750


def test_the_owner_stays_when_root_writes(tmp_path: Path, write: Tool, call: Call) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root writes the files of others")
    (tmp_path / "a.txt").touch()
    os.chown(tmp_path / "a.txt", 12345, 54321)
    call(write, path="a.txt", content="x")
    status = (tmp_path / "a.txt").stat()
    assert (status.st_uid, status.st_gid) == (12345, 54321)


def test_a_link_keeps_pointing_and_its_target_is_replaced(
    tmp_path: Path, write: Tool, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    (tmp_path / "dangling").symlink_to("later/real")
    assert text_of(call(write, path="link.txt", content="new")).startswith("Overwrote real.txt")
    assert text_of(call(write, path="dangling", content="made")).startswith("Created later/real")
    assert (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "later/real").read_text() == "made"
    assert (tmp_path / "link.txt").is_symlink()


def test_other_hard_links_keep_the_old_content(tmp_path: Path, write: Tool, call: Call) -> None:
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "b")
    call(write, path="a", content="new")
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new", "old")


def test_the_policy_is_asked_about_the_target_of_a_link(files: FileAccess, call: Call) -> None:
    root = files.workspace.root
    (root / "protected").write_text("old")
    (root / "innocent").symlink_to("protected")
    guarded = create_write_tool(replace(files, permits=lambda _effect, path: path.name != "protected"))
    with pytest.raises(ToolError, match=r"^protected may not be written: the policy does not allow it\.$"):
        call(guarded, path="innocent", content="new")
    assert (root / "protected").read_text() == "old"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("folder", r"^folder is a folder; give the path of a file in it\.$"),
        ("new/", r"^new/ names a folder; give the path of a file in it\.$"),
        (".", r"is a folder"),
        ("/", r"names a folder"),
        ("pipe", r"^pipe is a named pipe; only regular files are written\.$"),
        ("file/below", r"^file/below cannot be written: Not a directory\. One of the folders in the path is not"),
        ("n" * 300, r"cannot be written: File name too long\. Use shorter names: at most 255 bytes each\.$"),
        ("/dev/null", r"^/dev/null is out of reach"),
        ("/proc/self/comm", r"is out of reach"),
    ],
)
def test_what_cannot_be_written_says_why(tmp_path: Path, write: Tool, call: Call, path: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match=reason):
        call(write, path=path, content="x")
    assert names(tmp_path) == ["file", "folder", "pipe"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_lone_surrogate_cannot_be_written(tmp_path: Path, write: Tool, call: Call) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(ToolError, match=r"^content contains the lone surrogate U\+D800 at character 3"):
        call(write, path="a", content="abc\ud800")
    assert (tmp_path / "a").read_text() == "old"


def test_read_only_files_and_folders_are_respected(tmp_path: Path, write: Tool, call: Call) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    (tmp_path / "fixed.txt").touch(mode=0o444)
    (tmp_path / "folder").mkdir(mode=0o555)
    with pytest.raises(ToolError, match=r"^fixed\.txt is read-only \(mode 0444\); leave it, or change its mode\.$"):
        call(write, path="fixed.txt", content="x")
    with pytest.raises(ToolError, match=r"^folder/a cannot be written: Permission denied\."):
        call(write, path="folder/a", content="x")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, write: Tool, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)  # no test can count on a small file system
    with pytest.raises(ToolError, match=r"^a cannot be written: No space left on device\. Free some space"):
        call(write, path="a", content="x")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_cancelled_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, write: Tool, call: Call) -> None:
    (tmp_path / "a").write_text("old")
    cancel = CancelToken()
    cancel.cancel("enough")
    with pytest.raises(Cancelled):
        call(write, cancel, path="a", content="x")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


SLOW_WRITER = """
import sys
from pathlib import Path
from ci_agent.cancellation import CancelToken
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.write import create_write_tool
from ci_agent.workspace import open_workspace
write = create_write_tool(FileAccess(open_workspace(sys.argv[1]), lambda effect, path: True))
print("ready", flush=True)
for letter in "bc" * 10_000:
    write.execute("call", {"path": "a", "content": letter * 1_000_000}, CancelToken(), lambda update: None)
"""


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 1_000_000)
    for attempt in range(3):
        with subprocess.Popen([sys.executable, "-c", SLOW_WRITER, tmp_path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            for _ in range(3 + attempt):
                os.stat(tmp_path / "a")
            process.send_signal(signal.SIGKILL)
        content = (tmp_path / "a").read_text()
        assert (len(content), len(set(content))) == (1_000_000, 1)


def test_two_writers_at_once_never_mix(files: FileAccess, call: Call) -> None:
    write = create_write_tool(files)
    texts = ["a" * 200_000, "b" * 300_000]
    threads = [
        threading.Thread(target=lambda text=text: [call(write, path="f", content=text) for _ in range(20)])
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (files.workspace.root / "f").read_text() in texts
    assert names(files.workspace.root) == ["f"]
