"""What is no plain file, or a very large or odd one: every file tool answers soon and in bounded memory.

Each tool works through all of it in a process of its own, which is measured.
"""

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

MAX_CPU_S = 2.0
MAX_MEMORY_MB = 200

Seen: TypeAlias = dict[str, Any]

WORK_THROUGH = """
import json, resource, sys, time
from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.edit import create_edit_tool
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.find import create_find_tool
from ci_agent.tools.grep import create_grep_tool
from ci_agent.tools.ls import create_ls_tool
from ci_agent.tools.read import create_read_tool
from ci_agent.tools.write import create_write_tool
from ci_agent.workspace import open_workspace

def peak_mb():
    # Of this program alone: what getrusage tells counts what its parent held before it became this one.
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10

makers = {"read": create_read_tool, "write": create_write_tool, "edit": create_edit_tool, "grep": create_grep_tool,
          "find": create_find_tool, "ls": create_ls_tool}
root, name, calls = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
workspace = open_workspace(root)
tool = makers[name](FileAccess(workspace, lambda _effect, path: workspace.contains(path)))
for arguments in calls:
    started = time.process_time()
    try:
        result = tool.execute("call", arguments, CancelToken(), lambda _update: None)
        outcome, text = "ok", "".join(getattr(part, "text", "") for part in result.content)
    except ToolError as error:
        outcome, text = "error", str(error)
    print(json.dumps({"outcome": outcome, "text": text, "cpu_s": time.process_time() - started, "mb": peak_mb()}))
"""

EXTRA: dict[str, dict[str, Any]] = {
    "read": {},
    "write": {"content": "x"},
    "edit": {"edits": [{"old": "line", "new": "row"}]},
    "grep": {"pattern": "line|x+$", "context": 2},
    "find": {"pattern": "*"},
    "ls": {},
}


def work_through(root: Path, name: str, calls: list[dict[str, Any]]) -> list[Seen]:
    """What came of each call, after all bounds have been checked."""
    arguments = [sys.executable, "-c", WORK_THROUGH, str(root), name, json.dumps(calls)]
    result = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=110, check=True)
    seen = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(seen) == len(calls)
    for call, each in zip(calls, seen, strict=True):
        assert each["cpu_s"] < MAX_CPU_S, (call, each["cpu_s"])
        assert each["mb"] < MAX_MEMORY_MB, (call, each["mb"])
        assert len(each["text"].encode("utf-8", "replace")) <= 50_000
    return seen


@pytest.fixture
def special(tmp_path: Path) -> Iterator[Path]:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(".", os.O_RDONLY)
        os.chdir(tmp_path)  # the names of sockets are short
        listener.bind("socket")
        os.fchdir(here)
        os.close(here)
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "loop").symlink_to("loop")
        (tmp_path / "folder").mkdir()
        (tmp_path / "inner").symlink_to("/proc/self/environ")
        (tmp_path / "device").symlink_to("/dev/zero")
        yield tmp_path


SPECIAL = {
    "pipe": "a named pipe",
    "socket": "a socket",
    "loop": "Too many levels of symbolic links",
    "inner": "is out of reach",
    "device": "is out of reach",
    "/dev/zero": "is out of reach",
    "/dev/stdin": "is out of reach",
    "/dev/fd/0": "is out of reach",
    "/proc/self/environ": "is out of reach",
    "/proc/1/mem": "is out of reach",
    "/proc/self/root/etc/hosts": "is out of reach",
    "/proc/self/cwd/folder": "is out of reach",
    "/sys/kernel/notes": "is out of reach",
    "pipe/x": "",
    "n" * 256: "",
    "/".join(["n" * 200] * 18): "",
    "-missing": "",
}


@pytest.mark.parametrize("name", EXTRA)
def test_nothing_special_is_opened(special: Path, name: str) -> None:
    calls = [{"path": path, **EXTRA[name]} for path in SPECIAL]
    for (path, reason), seen in zip(SPECIAL.items(), work_through(special, name, calls), strict=True):
        creates = name == "write" and path in {"-missing", "/".join(["n" * 200] * 18)}
        assert (seen["outcome"], reason in seen["text"]) == ("ok" if creates else "error", True), (path, seen)


@pytest.mark.parametrize("name", EXTRA)
def test_a_device_in_the_workspace_is_not_opened(tmp_path: Path, name: str) -> None:
    try:
        os.mknod(tmp_path / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    (seen,) = work_through(tmp_path, name, [{"path": "zero", **EXTRA[name]}])
    assert (seen["outcome"], "a device" in seen["text"]) == ("error", True)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    for name, size in (("terabyte", 1 << 40), ("log", 10 << 30), ("one-line", 10 << 30)):
        with (tmp_path / name).open("wb") as file:
            file.write({"terabyte": b"", "log": b"a line of the log\n" * 3_000, "one-line": b"x" * 9_000}[name])
            file.seek(size)
            file.write(b"\nlast line\n")
    return tmp_path


@pytest.mark.parametrize("name", EXTRA)
def test_enormous_files_cost_little(large: Path, name: str) -> None:
    calls = [{"path": path, **EXTRA[name]} for path in ("terabyte", "log", "one-line")]
    if name == "read":
        calls += [{"path": "log", "offset": offset} for offset in (2_000, 3_001, 10**12)]
    before = os.stat(large / "log").st_blocks
    seen = work_through(large, name, calls)
    assert {each["outcome"] for each in seen[:3]} <= {"ok", "error"}
    if name != "write":
        assert os.stat(large / "log").st_blocks == before
        assert all(each["outcome"] == "error" for each in seen if "binary" in each["text"])


@pytest.mark.parametrize("name", ["read", "grep", "edit"])
def test_a_file_that_grows_while_it_is_read_ends(tmp_path: Path, name: str) -> None:
    (tmp_path / "log").write_bytes(b"a line\n")
    stop = threading.Event()

    def grow() -> None:
        with (tmp_path / "log").open("ab", buffering=0) as file:
            while not stop.is_set() and file.tell() < 1 << 29:
                file.write(b"a line\n" * 10_000)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        work_through(tmp_path, name, [{"path": "log", **EXTRA[name]}] * 3)
    finally:
        stop.set()
        writer.join()


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A tree of 2,000 folders, one in the other, with a file at the end."""
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2_000):
        os.mkdir("deep", dir_fd=folder)
        above, folder = folder, os.open("deep", os.O_RDONLY, dir_fd=folder)
        os.close(above)
    os.close(os.open("line", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    yield tmp_path
    os.unlink("line", dir_fd=folder)
    for _ in range(2_000):  # from below: what removes whole trees goes down too far
        below, folder = folder, os.open("..", os.O_RDONLY, dir_fd=folder)
        os.close(below)
        os.rmdir("deep", dir_fd=folder)
    os.close(folder)


@pytest.mark.hard
def test_a_tree_of_two_thousand_levels_ends(deep: Path) -> None:
    bottom = "/".join(["deep"] * 800)
    for name, extra in EXTRA.items():
        calls = [{"path": path, **extra} for path in (".", "deep", bottom, f"{bottom}/deep")]
        outcomes = {seen["outcome"] for seen in work_through(deep, name, calls)}
        assert outcomes == {"ok" if name in {"grep", "find", "ls"} else "error"}, name


@pytest.mark.hard
def test_a_folder_of_two_hundred_thousand_entries(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    folder = os.open(tmp_path / "many", os.O_RDONLY)
    for number in range(200_000):
        os.mkfifo(f"{number:06}", dir_fd=folder)
    os.close(folder)
    for name, extra in EXTRA.items():
        (seen,) = work_through(tmp_path, name, [{"path": "many", **extra}])
        assert seen["outcome"] == ("ok" if name in {"grep", "find", "ls"} else "error"), name


ODD_NAMES = ["new\nline", "\udcff\udcfe", "-rf", "-", "n" * 255, "\u202etxt", "a\x1b[31m", " ", "\\", "*?[]"]


@pytest.mark.parametrize("name", ["grep", "find", "ls"])
def test_odd_names_are_shown_on_one_line_each(tmp_path: Path, name: str) -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS has no names that are not UTF-8")
    for odd in ODD_NAMES:
        (tmp_path / odd).write_text("a line\n")
    (seen,) = work_through(tmp_path, name, [EXTRA[name] | ({"context": 0} if name == "grep" else {})])
    lines = seen["text"].splitlines()
    assert (seen["outcome"], len(lines)) == ("ok", len(ODD_NAMES))
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", ["read", "edit", "write"])
def test_odd_names_are_names(tmp_path: Path, name: str) -> None:
    odd_names = ["-rf", "--", "n" * 255, " ", "\\", "*?[]", "~x", "$HOME", "{a,b}", "a;b", "%s"]
    for odd in odd_names:
        (tmp_path / odd).write_text("a line\n")
    seen = work_through(tmp_path, name, [{"path": odd, **EXTRA[name]} for odd in odd_names])
    assert {each["outcome"] for each in seen} == {"ok"}
    assert {path.name for path in tmp_path.iterdir()} == set(odd_names)


@pytest.mark.parametrize("name", ["read", "edit", "write", "grep", "find", "ls"])
def test_names_that_hide_something_are_errors(tmp_path: Path, name: str) -> None:
    hidden = ["a\u200bb", "\u202etxt", "a\nb", "a\x00b", "\ud800", "\u2028", "a\u00a0b", "\x1b[31m", "", "x" * 5_000]
    calls = [{"path": text, **EXTRA[name]} for text in hidden]
    assert {seen["outcome"] for seen in work_through(tmp_path, name, calls)} == {"error"}
    assert list(tmp_path.iterdir()) == []
