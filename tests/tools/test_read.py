import base64
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.errors import ToolError
from ci_agent.messages import ImageContent, TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.read import create_read_tool

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def read(files: FileAccess) -> Tool:
    return create_read_tool(files)


def test_a_small_file_comes_exactly_as_it_is(tmp_path: Path, read: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_bytes("one\n\ttwo €\x1b[0m\rstill two\nthree".encode())
    assert call(read, path="a.txt") == ToolResult(
        (TextContent("one\n\ttwo €\x1b[0m\rstill two\nthree"),),
        {"size_bytes": 32, "first_line": 1, "last_line": 3, "total_lines": 3, "truncated": False},
    )


def test_a_range_says_what_it_is_and_how_to_go_on(tmp_path: Path, read: Tool, call: Call, text_of: TextOf) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n4\n5\n")
    result = call(read, path="a.txt", offset=2.0, limit=2.0)
    assert text_of(result) == "2\n3\n[Lines 2 to 3; the file has 5. Read on with offset=4.]"
    assert text_of(call(read, path="a.txt", offset=4)) == "4\n5\n[Lines 4 to 5; the file has 5.]"
    assert text_of(call(read, path="a.txt", limit=5)) == "1\n2\n3\n4\n5\n"


def test_following_the_offsets_reads_the_whole_file(tmp_path: Path, read: Tool, call: Call, text_of: TextOf) -> None:
    lines = [f"{number} {'x' * (number % 90)}\n" for number in range(1, 5001)]
    (tmp_path / "a.txt").write_text("".join(lines))
    seen, offset = "", 1
    while True:
        result = call(read, path="a.txt", offset=offset)
        assert result.details is not None
        assert len(text_of(result).encode()) <= 50_000
        seen += text_of(result).partition("\n[Lines")[0] + "\n"
        if result.details["last_line"] == result.details["total_lines"]:
            break
        assert f"Read on with offset={result.details['last_line'] + 1}." in text_of(result)
        offset = result.details["last_line"] + 1
    assert seen == "".join(lines)


def test_at_most_2000_lines_at_once_even_when_more_are_asked_for(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 2500)
    assert text_of(call(read, path="a.txt", limit=1e300)) == (
        "x\n" * 2000 + "[Lines 1 to 2000; the file has 2500. Read on with offset=2001.]"
    )


def test_an_offset_beyond_the_end_says_how_many_lines_there_are(tmp_path: Path, read: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("1\n2")
    (tmp_path / "empty").touch()
    with pytest.raises(ToolError, match=r"^offset 3 is beyond the end: a\.txt has 2 lines\.$"):
        call(read, path="a.txt", offset=3)
    with pytest.raises(ToolError, match=r"^offset 2 is beyond the end: empty has 0 lines\.$"):
        call(read, path="empty", offset=2)


def test_an_empty_file_says_so(tmp_path: Path, read: Tool, call: Call, text_of: TextOf) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "mark-only").write_bytes(b"\xef\xbb\xbf")
    assert text_of(call(read, path="empty")) == "empty is empty."
    assert text_of(call(read, path="mark-only")) == "mark-only is empty."


def test_a_long_line_is_cut_and_says_how_to_see_the_rest(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "a.js").write_text("first\n" + "€" * 3000 + "\nlast\n")
    assert text_of(call(read, path="a.js")) == (
        "first\n" + "€" * 2000 + " [... 3,000 bytes left out ...]\nlast\n"
        "[1 line longer than 2,000 characters cut, the first is line 2; "
        "in a shell, sed -n 2p and cut -c show all of it.]"
    )


def test_a_long_line_of_bytes_that_are_not_text_is_cut_too(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "a").write_bytes(b"\xff" * 3000)
    assert text_of(call(read, path="a")).startswith("\ufffd" * 2000 + " [... 1,000 bytes left out ...]\n")


def test_bytes_that_are_not_utf8_are_shown_as_replacements_and_said(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "latin1.txt").write_bytes(b"caf\xe9\nok \xef\xbf\xbd\n")
    (tmp_path / "honest.txt").write_text("a real \ufffd\n")
    assert text_of(call(read, path="latin1.txt")) == (
        "caf\ufffd\nok \ufffd\n[Some bytes are not UTF-8 and are shown as U+FFFD.]"
    )
    assert text_of(call(read, path="honest.txt")) == "a real \ufffd\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_other_unicode_encodings_with_a_byte_order_mark_are_decoded(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf, encoding: str
) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffGrüße 😀\n".encode(encoding))
    assert text_of(call(read, path="a.txt")) == f"Grüße 😀\n[The file is encoded in {encoding.upper()}.]"


def test_a_utf8_byte_order_mark_is_not_part_of_the_text(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfhello\n")
    assert text_of(call(read, path="a.txt")) == "hello\n"


def test_crlf_is_shown_as_lf_and_said(tmp_path: Path, read: Tool, call: Call, text_of: TextOf) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert text_of(call(read, path="a.txt")) == "one\ntwo\n[Lines end in CRLF, shown as LF; edit keeps them.]"


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + b"\0" * 20, "image/jpeg"),
        (b"GIF89a" + b"\0" * 20, "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 " + b"\0" * 20, "image/webp"),
    ],
)
def test_an_image_becomes_an_image_part_whatever_its_name(
    tmp_path: Path, read: Tool, call: Call, data: bytes, mime_type: str
) -> None:
    (tmp_path / "picture.txt").write_bytes(data)
    assert call(read, path="picture.txt") == ToolResult(
        (
            TextContent(f"picture.txt: {mime_type}, {len(data)} bytes."),
            ImageContent(mime_type, base64.b64encode(data).decode()),
        ),
        {"size_bytes": len(data), "mime_type": mime_type},
    )


def test_an_image_that_is_too_large_is_refused(tmp_path: Path, read: Tool, call: Call) -> None:
    (tmp_path / "big.png").write_bytes(PNG + b"\0" * 3_750_000)
    with pytest.raises(ToolError, match="image/png of 3,750,028 bytes; images are shown up to 3,750,000 bytes"):
        call(read, path="big.png")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\n\0", "a PDF document"),
        (b"PK\x03\x04\0", "a zip archive (or a document or package made of one)"),
        (b"\x7fELF\x02\x01\x01\0", "an ELF program or library"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"name\0" + b"\0" * 252 + b"ustar\0", "a tar archive"),
        (b"\x01\x02\0\x03", "binary data"),
    ],
)
def test_binary_files_are_refused_with_what_they_are(
    tmp_path: Path, read: Tool, call: Call, data: bytes, kind: str
) -> None:
    (tmp_path / "blob").write_bytes(data)
    with pytest.raises(ToolError) as refusal:
        call(read, path="blob")
    assert str(refusal.value) == f"blob is {kind} ({len(data)} bytes), not text; read shows only text and images."


def test_a_missing_file_suggests_names_that_are_there_and_may_be_read(files: FileAccess, call: Call) -> None:
    root = files.workspace.root
    for name in ("main.py", "mail.py", "unrelated.txt", "main.py.key"):
        (root / name).touch()
    guarded = replace(files, permits=lambda _effect, path: path.suffix != ".key")
    with pytest.raises(ToolError, match=r"^mian\.py does not exist\. Did you mean main\.py, mail\.py\?$"):
        call(create_read_tool(guarded), path="mian.py")
    with pytest.raises(ToolError, match=r"^zzz does not exist\. Look with ls or find\.$"):
        call(create_read_tool(guarded), path="zzz")
    with pytest.raises(ToolError, match=r"^a/b/c does not exist\. Its folder a/b does not exist either"):
        call(create_read_tool(guarded), path="a/b/c")


def test_a_folder_says_use_ls(tmp_path: Path, read: Tool, call: Call) -> None:
    (tmp_path / "src").mkdir()
    for path in ("src", ".", "/"):
        with pytest.raises(ToolError, match="is a folder, not a file: use ls"):
            call(read, path=path)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, read: Tool, call: Call) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path, reason in {
            "pipe": "pipe is a named pipe, not a regular file",
            "socket": "socket is a socket, not a regular file",
            "/dev/null": "/dev/null is out of reach",
            "/dev/stdin": "is out of reach|does not exist",
            "/proc/self/environ": "is out of reach",
            "/sys/kernel": "is out of reach",
            "/dev/zero": "/dev/zero is out of reach",
        }.items():
            with pytest.raises(ToolError, match=reason):
                call(read, path=path)


def test_a_sparse_file_of_a_terabyte_costs_neither_time_nor_memory(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(1 << 40)
    with (tmp_path / "log").open("wb") as file:
        file.write(b"line\n" * 3000)
        file.truncate(1 << 40)
    started = time.process_time()
    with pytest.raises(ToolError, match=r"binary data \(1,099,511,627,776 bytes\)"):
        call(read, path="zeros")
    assert text_of(call(read, path="log")).endswith(
        "line\n[Lines 1 to 2000; the file goes on. Read on with offset=2001.]"
    )
    assert time.process_time() - started < 10


def test_a_line_far_into_a_file_is_not_looked_for(tmp_path: Path, read: Tool, call: Call) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.write(b"line\n" * 3000)
        file.truncate(1 << 40)
    with pytest.raises(ToolError, match="offset 9999 lies beyond the first 256 MiB of log, which hold 3,000 lines"):
        call(read, path="log", offset=9999)


def test_a_file_that_the_policy_refuses_is_not_opened(files: FileAccess, call: Call) -> None:
    (files.workspace.root / "secret").write_text("hidden")
    asked = []

    def permits(effect: str, path: Path) -> bool:
        asked.append((effect, path))
        return False

    with pytest.raises(ToolError, match=r"^secret may not be read: the policy does not allow it\.$"):
        call(create_read_tool(replace(files, permits=permits)), path="secret")
    assert asked == [("read", files.workspace.root / "secret")]


def test_a_link_is_judged_by_where_it_leads(files: FileAccess, tmp_path: Path, call: Call) -> None:
    root = files.workspace.root
    (root / "secret").write_text("hidden")
    (root / "innocent").symlink_to("secret")
    guarded = replace(files, permits=lambda _effect, path: path.name != "secret")
    with pytest.raises(ToolError, match=r"^secret may not be read"):
        call(create_read_tool(guarded), path="innocent")


def test_a_file_this_user_may_not_read_says_so(tmp_path: Path, read: Tool, call: Call) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "locked").touch(mode=0)
    with pytest.raises(ToolError, match=r"^locked cannot be read: Permission denied\. This user lacks the permission"):
        call(read, path="locked")


def test_a_line_as_long_as_the_disk_is_not_read_to_its_end(
    tmp_path: Path, read: Tool, call: Call, text_of: TextOf
) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.write(b"first\n" + b"x" * 9_000)
        file.truncate(1 << 40)
    result = call(read, path="log")
    assert text_of(result).endswith(
        "\n[Lines 1 to 2; the file goes on. Read on with offset=3.]\n[1 line longer than 2,000 characters cut, the "
        "first is line 2; in a shell, sed -n 2p and cut -c show all of it.]"
    )
    assert isinstance(result.details, dict)
    assert (result.details["total_lines"], result.details["truncated"]) == (None, True)
