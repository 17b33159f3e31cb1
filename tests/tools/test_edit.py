import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent.errors import ToolError
from ci_agent.json_types import Json
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.edit import create_edit_tool, repair_edit_arguments
from ci_agent.tools.file_access import FileAccess

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]


@pytest.fixture
def edit(files: FileAccess) -> Tool:
    return create_edit_tool(files)


def refusal(call: Call, edit: Tool, *edits: tuple[str, str]) -> str:
    """The error of editing `a.txt`, without its first line, which is always the same."""
    with pytest.raises(ToolError) as error:
        call(edit, path="a.txt", edits=[{"old": old, "new": new} for old, new in edits])
    first, _, rest = str(error.value).partition("\n")
    assert first == "a.txt was not changed."
    return rest


def test_several_replacements_are_made_at_once(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    result = call(edit, path="a.txt", edits=[{"old": "three", "new": "3\n3b"}, {"old": "two\n", "new": ""}])
    assert result == ToolResult(
        (TextContent("Edited a.txt: 2 replacements, first changed line 2."),),
        {
            "edits": 2,
            "first_changed_line": 2,
            "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n-two\n-three\n+3\n+3b\n four\n",
        },
    )
    assert (tmp_path / "a.txt").read_text() == "one\n3\n3b\nfour\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("one\ntwo", "one\n2", 2),
        ("two\n", "two\nmore\n", 3),
        ("one\ntwo\n", "one\n", 2),
        ("one", "1", 1),
        ("three\n", "", 3),
    ],
)
def test_the_first_changed_line_is_where_old_and_new_begin_to_differ(
    tmp_path: Path, edit: Tool, call: Call, *, old: str, new: str, line: int
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    details = call(edit, path="a.txt", edits=[{"old": old, "new": new}]).details
    assert details is not None
    assert details["first_changed_line"] == line


def test_each_old_is_looked_for_in_the_original_text(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("a b")
    call(edit, path="a.txt", edits=[{"old": "a", "new": "b"}, {"old": "b", "new": "a"}])
    assert (tmp_path / "a.txt").read_text() == "b a"


def test_edits_may_touch_but_not_overlap(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("one\nabcdef\n")
    assert refusal(call, edit, ("cde", "x"), ("abc", "y")) == (
        "edits[1] and edits[0] overlap in line 2; make them one edit."
    )
    call(edit, path="a.txt", edits=[{"old": "abc", "new": "1"}, {"old": "def", "new": "2"}])
    assert (tmp_path / "a.txt").read_text() == "one\n12\n"


def test_an_old_that_occurs_more_than_once_is_refused_with_its_lines(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("x = 1\ny = 2\nx = 1\n")
    assert refusal(call, edit, ("x = 1", "x = 2")) == (
        "edits[0]: old occurs 2 times, beginning in lines 1, 3; add lines around it until it is unique."
    )
    (tmp_path / "a.txt").write_text("aaa")
    assert refusal(call, edit, ("aa", "b")).startswith("edits[0]: old occurs 2 times, beginning in lines 1, 1;")
    (tmp_path / "a.txt").write_text("x\n" * 200)
    assert refusal(call, edit, ("x", "y")) == (
        "edits[0]: old occurs more than 100 times, beginning in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...; "
        "add lines around it until it is unique."
    )


@pytest.mark.parametrize(
    ("text", "old", "nearest"),
    [
        (
            "def f():\n\treturn 1\n",
            "def f():\n    return 1\n",
            "Line 1 differs only in whitespace: the file has '\\treturn 1', old has '    return 1'.",
        ),
        (
            "a\nb  c d\n",
            "c d e",
            "Nothing in it is similar; read it again.",
        ),
        (
            "a\nlast",
            "last\n",
            "Line 2 differs only in whitespace: the file has 'last', old has 'last\\n'.",
        ),
        (
            "Say Hello\n",
            "say hello",
            "Line 1 differs only in upper and lower case: the file has 'Say Hello', old has 'say hello'.",
        ),
        (
            "it\u2019s\xa0so\n",
            "it's so",
            "Line 1 differs only in typographic characters: the file has 'it\u2019s\\xa0so', old has \"it's so\".",
        ),
        (
            "import os\nvalue = compute(1, 2)\n",
            "value = compute(1, 3)",
            "The most similar line is 2: 'value = compute(1, 2)'. Read it again.",
        ),
        ("", "something", "Nothing in it is similar; read it again."),
    ],
)
def test_an_old_that_does_not_occur_shows_the_nearest_place(
    tmp_path: Path, edit: Tool, call: Call, *, text: str, old: str, nearest: str
) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert refusal(call, edit, (old, "new")) == f"edits[0]: old does not occur in the file. {nearest}"
    assert (tmp_path / "a.txt").read_text() == text


def test_what_may_not_be_read_is_neither_quoted_nor_recorded(files: FileAccess, call: Call) -> None:
    (files.workspace.root / "a.txt").write_text("password = hunter2\n")
    edit = create_edit_tool(replace(files, permits=lambda effect, _path: effect == "write"))
    assert refusal(call, edit, ("password = hunter3", "x")) == "edits[0]: old does not occur in the file."
    assert call(edit, path="a.txt", edits=[{"old": "password", "new": "key"}]).details == {
        "edits": 1,
        "first_changed_line": 1,
        "diff": None,
    }


def test_every_problem_is_named_and_nothing_is_changed(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("one two two\n")
    assert refusal(call, edit, ("one", "1"), ("one", "one"), ("two", "2"), ("", "x"), ("zzz", "")) == (
        "edits[1]: old and new are the same; leave out this edit.\n"
        "edits[2]: old occurs 2 times, beginning in lines 1, 1; add lines around it until it is unique.\n"
        "edits[3]: old is empty; to add text, replace a line by itself and the addition.\n"
        "edits[4]: old does not occur in the file."
    )
    assert (tmp_path / "a.txt").read_text() == "one two two\n"


def test_attack_have_a_search_take_all_its_time(tmp_path: Path, edit: Tool, call: Call) -> None:
    """Nothing can stop it half-way: it went on for minutes after its call and its time limit were over."""
    (tmp_path / "a.txt").write_text("a " * 2_500_000)
    started = time.process_time()
    assert refusal(call, edit, ("a " * 4_000 + "b", "")) != ""
    assert time.process_time() - started < 5


def test_many_failing_edits_are_told_briefly_and_soon(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_text("some line of text\n" * 3000)
    started = time.process_time()
    problems = refusal(call, edit, *((f"some line of test {number}", "x") for number in range(500))).split("\n")
    assert time.process_time() - started < 10
    assert (len(problems), problems[-1]) == (21, "and 480 more")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n2b\n", b"1\r\n2\r\n2b\r\nthree\r\n"),
        (b"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", b"1\r\n2\r\n"),
        (b"one\ntwo\n", "one\r\ntwo\r\n", "1\r\n2\r\n", b"1\n2\n"),
        (b"one\r\ntwo\nthree\r\n", "two\n", "2\n2b\n", b"one\r\n2\n2b\nthree\r\n"),
        (b"one\ntwo\r\nthree\n", "two\n", "2\n2b\n", b"one\n2\r\n2b\r\nthree\n"),
        (b"one\r\nlast", "last", "a\nb", b"one\r\na\r\nb"),
        (b"one\ntwo", "two", "2", b"one\n2"),
        (b"\xef\xbb\xbfone\n", "one", "1", b"\xef\xbb\xbf1\n"),
        (b"caf\xe9 one\n\xff", "one", "\u20ac", b"caf\xe9 \xe2\x82\xac\n\xff"),
        (b"a\rb\rc", "b", "x", b"a\rx\rc"),
        ("\ufeffone\r\ntwo".encode("utf-16-le"), "one\n", "€\n", "\ufeff€\r\ntwo".encode("utf-16-le")),
        ("\ufeffone".encode("utf-16-be"), "one", "😀", "\ufeff😀".encode("utf-16-be")),
    ],
)
def test_line_ends_byte_order_mark_and_encoding_stay(
    tmp_path: Path, edit: Tool, call: Call, *, before: bytes, old: str, new: str, after: bytes
) -> None:
    (tmp_path / "a.txt").write_bytes(before)
    call(edit, path="a.txt", edits=[{"old": old, "new": new}])
    assert (tmp_path / "a.txt").read_bytes() == after


def test_the_mode_stays(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.sh").write_text("echo one\n")
    (tmp_path / "a.sh").chmod(0o755)
    call(edit, path="a.sh", edits=[{"old": "one", "new": "two"}])
    assert stat.S_IMODE((tmp_path / "a.sh").stat().st_mode) == 0o755


def test_lone_surrogates_match_no_bytes_of_the_file(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ToolError, match=r"^edits\[0\]\.old contains the lone surrogate U\+DCE9"):
        call(edit, path="a.txt", edits=[{"old": "\udce9", "new": "e"}])
    with pytest.raises(ToolError, match=r"^edits\[0\]\.new contains the lone surrogate U\+D800"):
        call(edit, path="a.txt", edits=[{"old": "caf", "new": "\ud800"}])


def test_the_record_of_a_file_with_wrong_bytes_is_text(tmp_path: Path, edit: Tool, call: Call) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 one\n")
    result = call(edit, path="a.txt", edits=[{"old": "one", "new": "two"}])
    assert result.details is not None
    assert result.details["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-caf\ufffd one\n+caf\ufffd two\n"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("binary", r"^binary is an ELF program or library \(8 bytes\), not text; edit changes text\.$"),
        ("odd", r"^odd is binary data \(3 bytes\), not text"),
        ("huge", r"^huge has 10,000,001 bytes; edit takes files up to 10,000,000 bytes\.$"),
        ("folder", r"^folder is a folder"),
        ("missing", r"^missing does not exist\."),
        ("pipe", r"^pipe is a named pipe"),
    ],
)
def test_what_cannot_be_edited_says_why(tmp_path: Path, edit: Tool, call: Call, path: str, reason: str) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0\0\0")
    (tmp_path / "odd").write_bytes(b"\xff\xfea")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10_000_001)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match=reason):
        call(edit, path=path, edits=[{"old": "a", "new": "b"}])


def test_a_file_that_may_not_be_written_is_not_opened(files: FileAccess, call: Call) -> None:
    (files.workspace.root / "a.txt").write_text("a")
    guarded = create_edit_tool(replace(files, permits=lambda effect, _path: effect == "read"))
    with pytest.raises(ToolError, match=r"^a\.txt may not be written: the policy does not allow it\.$"):
        call(guarded, path="a.txt", edits=[{"old": "a", "new": "b"}])


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        (
            {"path": "a", "edits": '[{"old": "x", "new": "y"}]'},
            {"path": "a", "edits": [{"old": "x", "new": "y"}]},
        ),
        ({"path": "a", "edits": {"old": "x", "new": "y"}}, {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ({"path": "a", "edits": '{"old": "x", "new": "y"}'}, {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ({"path": "a", "old": "x", "new": "y"}, {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ({"path": "a", "edits": "[{"}, {"path": "a", "edits": "[{"}),
        ({"path": "a", "old": "x"}, {"path": "a", "old": "x"}),
        ({"path": "a", "edits": [{"old": "x", "new": "y"}]}, {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        (["not", "an", "object"], ["not", "an", "object"]),
        (None, None),
    ],
)
def test_malformed_arguments_that_models_are_known_to_send_are_repaired(raw: Json, repaired: Json) -> None:
    assert repair_edit_arguments(raw) == repaired


def test_repairing_leaves_what_the_model_sent_alone() -> None:
    raw = {"path": "a", "old": "x", "new": "y"}
    repair_edit_arguments(raw)
    assert raw == {"path": "a", "old": "x", "new": "y"}
