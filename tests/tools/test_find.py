import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.errors import ToolError
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.find import create_find_tool
from ci_agent.tools.ls import create_ls_tool

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]


@pytest.fixture
def find(files: FileAccess) -> Tool:
    return create_find_tool(files)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        ".env",
        ".git/config",
        "a.py",
        "src/b.py",
        "src/deep/c.py",
        "src/deep/.d.py",
        "vendor/e.py",
        "out.log",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("vendor/\n*.log\n")
    (tmp_path / "link").symlink_to("src")
    return tmp_path


def test_a_name_is_found_in_every_folder_sorted(tree: Path, find: Tool, call: Call) -> None:
    assert call(find, pattern="*.py") == ToolResult(
        (TextContent("a.py\nsrc/b.py\nsrc/deep/.d.py\nsrc/deep/c.py"),),
        {"paths": 4, "folders_unlisted": 0, "truncated": False},
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "**"}, ".env\n.gitignore\na.py\nlink\nsrc/\nsrc/b.py\nsrc/deep/\nsrc/deep/.d.py\nsrc/deep/c.py"),
        ({"pattern": "*/"}, "src/\nsrc/deep/"),
        ({"pattern": "src/**/*.py"}, "src/b.py\nsrc/deep/.d.py\nsrc/deep/c.py"),
        ({"pattern": "deep/*", "path": "src"}, "src/deep/.d.py\nsrc/deep/c.py"),
        ({"pattern": "*.py", "path": "link"}, "src/b.py\nsrc/deep/.d.py\nsrc/deep/c.py"),
        ({"pattern": ".*"}, ".env\n.gitignore\nsrc/deep/.d.py"),
        ({"pattern": "{a,b}.py"}, "a.py\nsrc/b.py"),
        ({"pattern": "*.py", "path": "vendor"}, "vendor/e.py"),
        (
            {"pattern": "*.log"},
            "Nothing matches.\n[What .gitignore leaves out is found only when path names its folder.]",
        ),
        (
            {"pattern": "*.py", "limit": 2.0},
            "a.py\nsrc/b.py\n[2 paths shown; there are more. Narrow pattern or path, or raise limit.]",
        ),
        ({"pattern": "*.py", "limit": 4}, "a.py\nsrc/b.py\nsrc/deep/.d.py\nsrc/deep/c.py"),
    ],
)
def test_what_a_glob_finds(
    tree: Path, find: Tool, call: Call, text_of: TextOf, *, arguments: dict[str, object], expected: str
) -> None:
    assert text_of(call(find, **arguments)) == expected


def test_names_are_listed_also_of_files_that_may_not_be_read(
    tree: Path, files: FileAccess, call: Call, text_of: TextOf
) -> None:
    find = create_find_tool(replace(files, permits=lambda effect, _path: effect == "list"))
    assert text_of(call(find, pattern=".env")) == ".env"


def test_paths_outside_the_workspace_are_absolute(
    tmp_path: Path, files: FileAccess, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "other").touch()
    workspace = replace(files.workspace, root=files.workspace.root / "ws")
    find = create_find_tool(replace(files, workspace=workspace))
    assert text_of(call(find, pattern="other", path="..")) == str(files.workspace.root / "other")


def test_odd_names_are_shown_on_one_line(tmp_path: Path, find: Tool, call: Call, text_of: TextOf) -> None:
    for name in ("a\nb", "\x1b[31m", "\u202e", os.fsdecode(b"caf\xe9")):
        (tmp_path / name).touch()
    assert text_of(call(find, pattern="*")) == "\\x1b[31m\na\\nb\ncaf\\udce9\n\\u202e"
    assert text_of(call(find, pattern="caf?")) == "caf\\udce9"


def test_never_more_than_50_kb(tmp_path: Path, find: Tool, call: Call, text_of: TextOf) -> None:
    for number in range(400):
        (tmp_path / f"{'n' * 200}{number}").touch()
    text = text_of(call(find, pattern="*", limit=1e300))
    assert 45_000 < len(text) <= 50_000
    assert text.endswith("paths shown; there are more. Narrow pattern or path, or raise limit.]")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pattern": "*", "path": "scr"}, r"^scr does not exist\. Did you mean src\?$"),
        ({"pattern": "*", "path": "a.py"}, r"^a\.py is a file, not a folder\.$"),
        ({"pattern": "*", "path": "/proc"}, r"^/proc is out of reach"),
        ({"pattern": ""}, r"^pattern: the glob is empty\."),
        ({"pattern": "[a"}, r"^pattern: a bracket is not closed\. A glob looks like"),
    ],
)
def test_what_cannot_be_found_says_why(
    tree: Path, find: Tool, call: Call, arguments: dict[str, object], reason: str
) -> None:
    with pytest.raises(ToolError, match=reason):
        call(find, **arguments)


@pytest.mark.parametrize("create", [create_find_tool, create_ls_tool], ids=["find", "ls"])
def test_the_policy_is_asked_once_more_about_the_folder_itself(
    tree: Path, files: FileAccess, call: Call, create: Callable[[FileAccess], Tool]
) -> None:
    tool = create(replace(files, permits=lambda effect, path: (effect, path) != ("list", tree / "src")))
    arguments = {"pattern": "*"} if tool.name == "find" else {}
    call(tool, **arguments)
    with pytest.raises(ToolError, match=r"^src may not be listed: the policy does not allow it\.$"):
        call(tool, path="src", **arguments)
