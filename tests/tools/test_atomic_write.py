"""Writing where the disk says no, and being killed while writing: the old file or the new one, and little else."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

KILLED_WRITER = """
import sys
from ci_agent.cancellation import CancelToken
from ci_agent.tools.edit import create_edit_tool
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.write import create_write_tool
from ci_agent.workspace import open_workspace

workspace = open_workspace(sys.argv[1])
files = FileAccess(workspace, lambda _effect, path: workspace.contains(path))
write, edit = create_write_tool(files), create_edit_tool(files)
print("ready", flush=True)
while True:
    for letter in "bc":
        write.execute("call", {"path": "a", "content": letter * 1_000_000}, CancelToken(), lambda _update: None)
        arguments = {"path": "e", "edits": [{"old": "start", "new": letter * 300_000 + "start"}]}
        edit.execute("call", arguments, CancelToken(), lambda _update: None)
        write.execute("call", {"path": "e", "content": "start"}, CancelToken(), lambda _update: None)
"""


@pytest.mark.hard
def test_fifty_killed_writers_leave_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 1_000_000)
    (tmp_path / "a").chmod(0o640)
    (tmp_path / "e").write_text("start")
    arguments = [sys.executable, "-c", KILLED_WRITER, str(tmp_path)]
    for _ in range(50):
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            os.stat(tmp_path / "a")
            process.send_signal(signal.SIGKILL)
        content, edited = (tmp_path / "a").read_text(), (tmp_path / "e").read_text()
        assert (len(content), len(set(content))) == (1_000_000, 1)
        assert re.fullmatch(r"(b{300000}|c{300000})?start", edited)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    left = {path for path in tmp_path.iterdir() if path.name not in {"a", "e"}}
    # What a killed writer may leave is one file of its own for each kill, which no reader takes for something else.
    assert len(left) <= 50
    assert all(re.fullmatch(r"\.ci-agent-[0-9a-f]{32}\.tmp", path.name) for path in left)


ON_A_DISK_OF_ITS_OWN = """
import os, subprocess, sys
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.edit import create_edit_tool
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.write import create_write_tool
from ci_agent.workspace import open_workspace

folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "none", folder], check=True)
workspace = open_workspace(folder)
files = FileAccess(workspace, lambda _effect, path: workspace.contains(path))
write, edit = create_write_tool(files), create_edit_tool(files)

def attempt(tool, **arguments):
    try:
        return tool.execute("call", arguments, CancelToken(), lambda _update: None).content[0].text
    except ToolError as error:
        return str(error)

def state():
    return sorted((name, open(os.path.join(folder, name)).read()[:9]) for name in os.listdir(folder))

print(attempt(write, path="a", content="old line"))
print(attempt(write, path="a", content="x" * 2_000_000))
print(attempt(write, path="new", content="x" * 2_000_000))
print(attempt(edit, path="a", edits=[{"old": "old", "new": "x" * 2_000_000}]))
print(attempt(write, path="deep/er/new", content="x" * 2_000_000))
os.removedirs(os.path.join(folder, "deep/er"))
print(state())
subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
print(attempt(write, path="a", content="x"))
print(attempt(write, path="new/b", content="x"))
print(attempt(edit, path="a", edits=[{"old": "old", "new": "x"}]))
print(state())
"""


def test_a_full_and_a_read_only_disk_keep_the_old_file(tmp_path: Path) -> None:
    can_mount = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)], capture_output=True, check=False
    )
    if can_mount.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {can_mount.stderr.decode(errors='replace').strip()}")
    arguments = ["unshare", "-rm", sys.executable, "-c", ON_A_DISK_OF_ITS_OWN, str(tmp_path)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    full = "cannot be written: No space left on device. Free some space, or write less."
    fixed = "cannot be written: Read-only file system. The file system is read-only; choose another place."
    assert result.stdout.splitlines() == [
        "Created a: 8 bytes, 1 line.",
        f"a {full}",
        f"new {full}",
        f"a {full}",
        f"deep/er/new {full}",
        "[('a', 'old line')]",
        f"a {fixed}",
        f"new/b {fixed}",
        f"a {fixed}",
        "[('a', 'old line')]",
    ]
