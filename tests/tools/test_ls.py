import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.errors import ToolError
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.ls import create_ls_tool

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]


@pytest.fixture
def ls(files: FileAccess) -> Tool:
    return create_ls_tool(files)


def test_a_folder_is_listed_by_name_with_what_each_entry_is(tmp_path: Path, ls: Tool, call: Call) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("x" * 1234)
    (tmp_path / ".env").write_text("x")
    (tmp_path / "link").symlink_to("../outside")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    assert call(ls) == ToolResult(
        (
            TextContent(
                ".env  1 byte\nREADME.md  1,234 bytes\nlink -> ../outside\npipe  (named pipe)\nsocket  (socket)\nsrc/"
            ),
        ),
        {"entries": 6, "truncated": False},
    )


def test_an_empty_folder_says_so(tmp_path: Path, ls: Tool, call: Call, text_of: TextOf) -> None:
    (tmp_path / "empty").mkdir()
    assert text_of(call(ls, path="empty")) == "empty is empty."


def test_a_limit_shows_the_first_and_counts_all(tmp_path: Path, ls: Tool, call: Call, text_of: TextOf) -> None:
    for number in range(600):
        (tmp_path / f"{number:03}").mkdir()
    text = text_of(call(ls))
    assert text.startswith("000/\n001/\n")
    assert text.endswith("\n499/\n[500 of 600 entries shown; raise limit, or use find.]")
    assert text_of(call(ls, limit=1.0)) == "000/\n[1 of 600 entries shown; raise limit, or use find.]"
    assert text_of(call(ls, limit=1e300)).count("/\n") == 599


def test_never_more_than_50_kb(tmp_path: Path, ls: Tool, call: Call, text_of: TextOf) -> None:
    for number in range(400):
        (tmp_path / f"{number:03}{'n' * 200}").touch()
    text = text_of(call(ls))
    assert 45_000 < len(text) <= 50_000
    assert text.endswith(" of 400 entries shown; raise limit, or use find.]")


def test_odd_names_and_targets_are_shown_on_one_line(tmp_path: Path, ls: Tool, call: Call, text_of: TextOf) -> None:
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "l").symlink_to("\x1b[0m\n")
    assert text_of(call(ls)) == "a\\nb/\nl -> \\x1b[0m\\n"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("file", r"^file is a file, not a folder\.$"),
        ("fil", r"^fil does not exist\. Did you mean file\?$"),
        ("file/x", r"^file/x does not exist\. file is not a folder\.$"),
        ("/proc/self", r"is out of reach"),
        ("/dev", r"^/dev is out of reach"),
    ],
)
def test_what_cannot_be_listed_says_why(tmp_path: Path, ls: Tool, call: Call, path: str, reason: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match=reason):
        call(ls, path=path)


def test_a_closed_folder_says_so(tmp_path: Path, ls: Tool, call: Call) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may list everything")
    (tmp_path / "closed").mkdir(mode=0o100)
    with pytest.raises(
        ToolError, match=r"^closed cannot be listed: Permission denied\. This user lacks the permission"
    ):
        call(ls, path="closed")
