"""A neighbour process swaps links and real folders as fast as the kernel lets it while each file tool works."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.tools.beneath import EnterFolder, best_way_in, enter_at_once, enter_name_by_name
from ci_agent.tools.edit import create_edit_tool
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.find import create_find_tool
from ci_agent.tools.grep import create_grep_tool
from ci_agent.tools.ls import create_ls_tool
from ci_agent.tools.read import create_read_tool
from ci_agent.tools.write import create_write_tool
from ci_agent.workspace import open_workspace

CANARY = "CANARY-of-the-outside"

WAYS = [
    pytest.param(
        enter_at_once,
        id="openat2",
        marks=pytest.mark.skipif(best_way_in() is not enter_at_once, reason="this kernel has no openat2"),
    ),
    pytest.param(enter_name_by_name, id="name-by-name"),
]

SWAP_FOR_EVER = """
import ctypes, sys
renameat2 = ctypes.CDLL(None).renameat2
pairs = [(sys.argv[at].encode(), sys.argv[at + 1].encode()) for at in range(1, len(sys.argv), 2)]
print("ready", flush=True)
while True:
    for left, right in pairs:
        renameat2(-100, left, -100, right, 2)  # AT_FDCWD, RENAME_EXCHANGE
"""

MAKERS = {
    "read": create_read_tool,
    "write": create_write_tool,
    "edit": create_edit_tool,
    "grep": create_grep_tool,
    "find": create_find_tool,
    "ls": create_ls_tool,
}

ARGUMENTS: dict[str, list[JsonObject]] = {
    "read": [{"path": "current/file"}, {"path": "current/name"}],
    "write": [{"path": "current/file", "content": "mine\n"}, {"path": "current/deep/new", "content": "mine\n"}],
    "edit": [
        {"path": "current/file", "edits": [{"old": old, "new": new}]} for old, new in (("in", "with"), ("with", "in"))
    ],
    "grep": [{"pattern": ".", "path": "current"}, {"pattern": "."}, {"pattern": ".", "path": "current/name"}],
    "find": [{"pattern": "**", "path": "current"}, {"pattern": "*"}],
    "ls": [{"path": "current"}, {"path": "."}],
}

MAX_TIMES_LONGER = 20
"""A machine that does other things as well may let calls and swaps meet late."""

SLOW_TOOLS = {"write", "edit"}
"""Each call waits for the disk twice."""


@dataclass(frozen=True)
class Arena:
    root: Path
    outside: Path
    swaps: subprocess.Popen[bytes]

    def stop_swapping(self) -> None:
        assert self.swaps.poll() is None, "the names were not swapped to the end"
        self.swaps.kill()
        self.swaps.wait()


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """A workspace where `current` is now a folder and now a link out of it, and `current/name` likewise a file."""
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("only Linux exchanges two names in one step")
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "current/deep", outside / "deep"):
        folder.mkdir(parents=True)
    (outside / "file").write_text(CANARY)
    (outside / f"name-{CANARY}").write_text(CANARY)
    (root / "current/file").write_text("inside\n")
    (root / "current/name").write_text("inside\n")
    (root / "link").symlink_to(outside)
    (root / "current/name-link").symlink_to(outside / "file")
    pairs = [root / "current", root / "link", root / "current/name", root / "current/name-link"]
    with subprocess.Popen([sys.executable, "-c", SWAP_FOR_EVER, *pairs], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield Arena(root, outside, process)
        process.kill()


def contents(folder: Path) -> dict[str, str | None]:
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


def attack(arena: Arena, name: str, enter: EnterFolder, rounds: int) -> None:
    before = contents(arena.outside)
    files = FileAccess(open_workspace(arena.root), lambda _effect, path: arena.root in (path, *path.parents), enter)
    tool = MAKERS[name](files)
    choices = len(ARGUMENTS[name])
    done, refused = set[int](), set[int]()
    for number in range(rounds * MAX_TIMES_LONGER):
        if number >= rounds and refused and len(done) == choices:
            break
        try:
            result = tool.execute("call", ARGUMENTS[name][number % choices], CancelToken(), lambda _update: None)
            done.add(number % choices)
            seen = f"{result.content} {result.details}"
        except ToolError as error:
            refused.add(number % choices)
            seen = str(error)
        assert CANARY not in seen
    arena.stop_swapping()
    assert (len(done), refused != set()) == (choices, True), "the calls and the swaps did not meet"
    assert contents(arena.outside) == before


@pytest.mark.parametrize("enter", WAYS)
@pytest.mark.parametrize("name", MAKERS)
def test_no_tool_leaves_the_workspace_while_links_are_swapped(arena: Arena, name: str, enter: EnterFolder) -> None:
    attack(arena, name, enter, 200 if name in SLOW_TOOLS else 2_000)


@pytest.mark.hard
@pytest.mark.parametrize("enter", WAYS)
@pytest.mark.parametrize("name", sorted(SLOW_TOOLS))
def test_no_write_leaves_the_workspace_in_thousands_of_swaps(arena: Arena, name: str, enter: EnterFolder) -> None:
    attack(arena, name, enter, 4_000)


def test_what_is_left_of_the_writes_is_whole(arena: Arena) -> None:
    attack(arena, "write", best_way_in(), 200)
    (folder,) = (path for path in (arena.root / "current", arena.root / "link") if not path.is_symlink())
    assert list(folder.rglob(".ci-agent-*")) == []
    assert (folder / "file").read_text() in {"inside\n", "mine\n"}
    assert (folder / "deep/new").read_text() == "mine\n"
