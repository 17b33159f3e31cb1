import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.grep import create_grep_tool

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]

NOTHING = "Nothing matches.\n[What .gitignore leaves out is searched only when path names it.]"


@pytest.fixture
def grep(files: FileAccess) -> Tool:
    return create_grep_tool(files)


def create(root: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_matches_come_as_path_line_and_text_sorted_by_path(tmp_path: Path, grep: Tool, call: Call) -> None:
    create(tmp_path, {"b.txt": "no\nneedle 1\n", "a/x.txt": "needle 2\nneedle 3", ".hidden": "a needle\n", "c": "no\n"})
    assert call(grep, pattern="needle") == ToolResult(
        (TextContent(".hidden:1:a needle\na/x.txt:1:needle 2\na/x.txt:2:needle 3\nb.txt:2:needle 1"),),
        {
            "matches": 4,
            "files_with_matches": 3,
            "files_refused": 0,
            "files_unreadable": 0,
            "folders_unlisted": 0,
            "truncated": False,
        },
    )


def test_lines_around_a_match_are_marked_and_groups_are_divided(
    tmp_path: Path, grep: Tool, call: Call, text_of: TextOf
) -> None:
    create(tmp_path, {"a": "1\nx2\n3\n4\n5\nx6\n7\n", "b": "x\n"})
    assert text_of(call(grep, pattern="x", context=1.0)) == (
        "a-1-1\na:2:x2\na-3-3\n--\na-5-5\na:6:x6\na-7-7\n--\nb:1:x"
    )


def test_the_pattern_is_a_regular_expression_unless_it_is_literal(
    tmp_path: Path, grep: Tool, call: Call, text_of: TextOf
) -> None:
    create(tmp_path, {"a": "f(x)\nfx\nF(X)\n"})
    assert text_of(call(grep, pattern=r"^f\(?x")) == "a:1:f(x)\na:2:fx"
    assert text_of(call(grep, pattern="f(x)", literal=True)) == "a:1:f(x)"
    assert text_of(call(grep, pattern="f(x)", literal=True, ignore_case=True)) == "a:1:f(x)\na:3:F(X)"
    with pytest.raises(
        ToolError, match=r"^the pattern is not a regular expression .*: missing \): f\(x\. The syntax is"
    ):
        call(grep, pattern="f(x")


def test_the_glob_chooses_files_counted_from_path(tmp_path: Path, grep: Tool, call: Call, text_of: TextOf) -> None:
    create(tmp_path, {"a.py": "x", "sub/b.py": "x", "sub/deep/c.py": "x", "sub/d.md": "x"})
    assert text_of(call(grep, pattern="x", glob="*.py")) == "a.py:1:x\nsub/b.py:1:x\nsub/deep/c.py:1:x"
    assert text_of(call(grep, pattern="x", glob="*/*.py", path="sub")) == "sub/deep/c.py:1:x"
    assert text_of(call(grep, pattern="x", glob="!*.py")) == "sub/d.md:1:x"
    with pytest.raises(ToolError, match=r"^glob: a bracket is not closed\."):
        call(grep, pattern="x", glob="[")


def test_what_git_ignores_its_own_folder_binary_files_and_links_are_not_searched(
    tmp_path: Path, grep: Tool, call: Call, text_of: TextOf
) -> None:
    create(tmp_path, {".gitignore": "*.log\nvendor/\n", "a.log": "x", "vendor/b": "x", ".git/c": "x", "bin": b"x\0"})
    create(tmp_path, {"seen": "x"})
    (tmp_path / "link").symlink_to("seen")
    (tmp_path / "folder").symlink_to("vendor")
    os.mkfifo(tmp_path / "pipe")
    assert text_of(call(grep, pattern="x")) == "seen:1:x"
    assert text_of(call(grep, pattern="x", path="vendor")) == "vendor/b:1:x"
    assert text_of(call(grep, pattern="x", path="a.log")) == "a.log:1:x"
    assert text_of(call(grep, pattern="x", path="link")) == "seen:1:x"


def test_files_that_may_not_be_read_are_skipped_and_counted(files: FileAccess, call: Call, text_of: TextOf) -> None:
    create(files.workspace.root, {".env": "KEY=1", "sub/.env": "KEY=2", "a": "KEY=3"})
    grep = create_grep_tool(replace(files, permits=lambda effect, path: effect == "list" or path.name != ".env"))
    assert text_of(call(grep, pattern="KEY")) == (
        "a:1:KEY=3\n[2 files not searched: the policy does not let them be read.]"
    )
    with pytest.raises(ToolError, match=r"^\.env may not be read: the policy does not allow it\.$"):
        call(grep, pattern="KEY", path=".env")


def test_the_limit_counts_matching_lines_and_says_that_there_are_more(
    tmp_path: Path, grep: Tool, call: Call, text_of: TextOf
) -> None:
    create(tmp_path, {"a": "x\nx\nx\n", "b": "-\n" * 3 + "x\n"})
    assert text_of(call(grep, pattern="x", limit=2)) == (
        "a:1:x\na:2:x\n[2 matching lines shown, which is the limit; there are more. Narrow pattern, path or glob.]"
    )
    assert text_of(call(grep, pattern="x", limit=3, context=1)) == (
        "a:1:x\na:2:x\na:3:x\n"
        "[3 matching lines shown, which is the limit; there are more. Narrow pattern, path or glob.]"
    )
    assert text_of(call(grep, pattern="x", limit=4)) == "a:1:x\na:2:x\na:3:x\nb:4:x"


def test_a_hundred_matches_by_default_and_never_more_than_50_kb(
    tmp_path: Path, grep: Tool, call: Call, text_of: TextOf
) -> None:
    create(tmp_path, {"a": "x\n" * 150, "b": ("y" * 400 + "\n") * 500})
    assert text_of(call(grep, pattern="x")).count("a:") == 100
    text = text_of(call(grep, pattern="y", limit=1e300, context=50))
    assert 45_000 < len(text.encode()) <= 50_000
    assert text.endswith("matching lines shown, which is 50 kB; there are more. Narrow pattern, path or glob.]")


def test_a_long_line_shows_the_part_around_its_match(tmp_path: Path, grep: Tool, call: Call, text_of: TextOf) -> None:
    create(tmp_path, {"a.js": "€" * 1000 + "needle" + "z" * 1000})
    assert text_of(call(grep, pattern="needle")) == (
        "a.js:1:..." + "€" * 100 + "needle" + "z" * 394 + " [... 1,506 characters left out ...]"
    )


def test_other_encodings_are_searched_as_text(tmp_path: Path, grep: Tool, call: Call, text_of: TextOf) -> None:
    create(
        tmp_path,
        {
            "latin1": b"caf\xe9 needle\n",
            "utf16": "\ufeffgrün needle\r\n".encode("utf-16-le"),
            "utf32": "\ufeffneedle 😀\n".encode("utf-32-be"),
            "utf8": b"\xef\xbb\xbfneedle\n",
        },
    )
    assert text_of(call(grep, pattern="needle")) == (
        "latin1:1:caf\ufffd needle\nutf16:1:grün needle\nutf32:1:needle 😀\nutf8:1:needle"
    )
    assert text_of(call(grep, pattern="^needle$")) == "utf8:1:needle"


def test_odd_names_are_shown_on_one_line(tmp_path: Path, grep: Tool, call: Call, text_of: TextOf) -> None:
    create(tmp_path, {"-n": "x", "a\nb": "x", "é": "x", "\x1b[0m": "x"})
    assert text_of(call(grep, pattern="x")) == "\\x1b[0m:1:x\n-n:1:x\na\\nb:1:x\né:1:x"


def test_no_match_is_an_answer_and_not_an_error(tmp_path: Path, grep: Tool, call: Call, text_of: TextOf) -> None:
    create(tmp_path, {"a": "text"})
    assert text_of(call(grep, pattern="absent")) == NOTHING


def test_a_path_that_cannot_be_searched_says_why(tmp_path: Path, grep: Tool, call: Call) -> None:
    create(tmp_path, {"name": "x", "bin": b"\0"})
    os.mkfifo(tmp_path / "pipe")
    for path, reason in {
        "nome": r"^nome does not exist\. Did you mean name\?$",
        "bin": r"^bin is a binary file; grep searches text\.$",
        "pipe": r"^pipe is a named pipe, not a regular file",
        "/proc": r"^/proc is out of reach",
        "/proc/self/environ": r"is out of reach",
    }.items():
        with pytest.raises(ToolError, match=reason):
            call(grep, pattern="x", path=path)


def test_what_cannot_be_opened_is_counted(tmp_path: Path, grep: Tool, call: Call, text_of: TextOf) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    create(tmp_path, {"a": "x", "locked": "x", "closed/b": "x"})
    (tmp_path / "locked").chmod(0)
    (tmp_path / "closed").chmod(0)
    assert (
        text_of(call(grep, pattern="x"))
        == "a:1:x\n[1 file could not be read.]\n[1 folder could not be listed, or not completely.]"
    )
    (tmp_path / "closed").chmod(0o700)


def test_a_huge_file_is_searched_in_its_beginning_alone(
    tmp_path: Path, grep: Tool, call: Call, text_of: TextOf
) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.write(b"needle\n" * 2_000)
        file.seek(1 << 40)
        file.write(b"\nneedle\n")
    create(tmp_path, {"other": "needle\n"})
    text = text_of(call(grep, pattern="needle", limit=5_000))
    assert text.endswith("log:2000:needle\nother:1:needle\n[1 file searched only in the first 256 MiB.]")


def test_a_search_stops_when_it_is_cancelled(files: FileAccess, call: Call) -> None:
    create(files.workspace.root, {f"f{number}": "x" for number in range(10)})
    cancel = CancelToken()
    asked: list[str] = []

    def permits(effect: str, path: Path) -> bool:
        if effect == "read":
            asked.append(path.name)
            cancel.cancel("enough")
        return True

    with pytest.raises(Cancelled):
        call(create_grep_tool(replace(files, permits=permits)), cancel, pattern="x")
    assert asked == ["f0"]
