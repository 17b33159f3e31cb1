import subprocess
import tempfile
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.tools.diff import unified_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "\x0c\n", "-- x\n", "@@ -1 +1 @@\n"]), max_size=30)
TEXTS = st.builds(lambda lines, last: "".join(lines) + last, LINES, st.sampled_from(["", "end"]))


def test_equal_texts_have_no_difference() -> None:
    assert unified_diff("same\n", "same\n", "a") == ""


def test_a_change_is_shown_with_three_lines_around_it_and_its_place_in_the_file() -> None:
    before = "".join(f"{number}\n" for number in range(1, 21))
    assert unified_diff(before, before.replace("10\n", "ten\n"), "dir/a.txt") == (
        "--- a/dir/a.txt\n+++ b/dir/a.txt\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    )


def test_a_missing_last_line_end_is_marked() -> None:
    assert unified_diff("a\nb\n", "a\nb", "f") == (
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"
    )


def test_a_large_change_is_one_block() -> None:
    before = "same\n" + "".join(f"old {number}\n" for number in range(1500)) + "end\n"
    after = "same\n" + "".join(f"new {number}\n" for number in range(1500)) + "end\n"
    diff = unified_diff(before, after, "f")
    assert diff.startswith("--- a/f\n+++ b/f\n@@ -1,1502 +1,1502 @@\n same\n-old 0\n-old 1\n")
    assert diff.endswith("+new 1498\n+new 1499\n end\n")


def test_time_and_size_are_bounded_whatever_the_texts() -> None:
    started = time.process_time()
    for lines in (1_000, 200_000):
        before = "".join(f"{number * 7919 % 499}\n" for number in range(lines))
        after = "".join(f"{number * 7907 % 499}\n" for number in range(lines))
        assert len(unified_diff(before, after, "f").encode()) <= 50_000
    assert time.process_time() - started < 10


@settings(deadline=None, max_examples=25)
@given(TEXTS, TEXTS)
def test_git_makes_the_second_text_from_the_first_and_the_difference(before: str, after: str) -> None:
    diff = unified_diff(before, after, "f")
    if before == "" or after == "" or diff == "":
        return  # git wants other headings for files that appear or go
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "f")
        file.write_text(before)
        subprocess.run(["git", "apply", "-"], cwd=folder, input=diff, text=True, check=True)
        assert file.read_text() == after


def test_a_diff_of_repetitive_text_keeps_its_context_so_that_git_takes_it(tmp_path: Path) -> None:
    before, after = "a\na\nb\na\nend\n", "a\nb\na\nb\na\nend\n"
    assert unified_diff(before, after, "f") == ("--- a/f\n+++ b/f\n@@ -1,4 +1,5 @@\n a\n+b\n a\n b\n a\n")
    (tmp_path / "f").write_text(before)
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=unified_diff(before, after, "f").encode(), check=False
    )
    assert (applied.returncode, (tmp_path / "f").read_text()) == (0, after)
