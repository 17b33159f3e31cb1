from hypothesis import given
from hypothesis import strategies as st

from ci_agent.tools.truncate import (
    Truncated,
    count_lines,
    count_of,
    join_head_and_tail,
    keep_head,
    keep_head_and_tail,
    keep_tail,
)


def test_text_within_the_limits_is_left_alone() -> None:
    text = "x" * 24_999 + "\n" + "y" * 24_999 + "\n"
    assert keep_head_and_tail(text) == Truncated(text, 0, 0)
    assert keep_head_and_tail("a\n" * 2000) == Truncated("a\n" * 2000, 0, 0)
    assert keep_head_and_tail("") == Truncated("", 0, 0)


def test_too_many_lines_lose_the_middle_and_the_note_counts_as_a_line() -> None:
    text = "".join(f"{number}\n" for number in range(1, 11))
    assert keep_head_and_tail(text, max_lines=6) == Truncated(
        "1\n2\n[... 10 bytes in 5 lines left out ...]\n8\n9\n10\n", 10, 5
    )


def test_too_many_bytes_lose_whole_lines_from_the_middle() -> None:
    text = "".join(f"line {number:04}\n" for number in range(1000))
    truncated = keep_head_and_tail(text, max_bytes=200)
    assert truncated == Truncated(
        "".join(f"line {number:04}\n" for number in range(6))
        + "[... 9,880 bytes in 988 lines left out ...]\n"
        + "".join(f"line {number:04}\n" for number in range(994, 1000)),
        9880,
        988,
    )


def test_one_long_line_is_cut_inside_the_line_but_never_inside_a_character() -> None:
    truncated = keep_head_and_tail("€" * 1000, max_bytes=100)
    assert truncated == Truncated("€€€\n[... 2,982 bytes left out ...]\n€€€", 2982, 0)


def test_a_short_line_before_a_very_long_one_does_not_cost_the_long_ones_beginning() -> None:
    truncated = keep_head_and_tail("short\n" + "x" * 1000 + "\nend\n", max_bytes=140)
    assert truncated.text == "short\n" + "x" * 24 + "\n[... 951 bytes left out ...]\n" + "x" * 25 + "\nend\n"


@given(
    st.text(alphabet=st.sampled_from(["a", "\n", "€", "😀", "\ud800", "\r"]), max_size=400),
    st.integers(100, 300),
    st.integers(3, 30),
)
def test_the_answer_stays_within_both_limits_and_loses_nothing_unsaid(
    text: str, max_bytes: int, max_lines: int
) -> None:
    truncated = keep_head_and_tail(text, max_bytes, max_lines)
    data = truncated.text.encode("utf-8", "surrogatepass")
    assert len(data) <= max_bytes
    assert count_lines(truncated.text) <= max_lines
    if truncated.omitted_bytes:
        head, _, tail = truncated.text.partition("[... ")
        tail = tail.partition(" left out ...]\n")[2]
        assert text.endswith(tail)
        assert text.startswith((head, head.removesuffix("\n")))
        kept = len((head + tail).encode("utf-8", "surrogatepass"))
        assert kept + truncated.omitted_bytes - len(text.encode("utf-8", "surrogatepass")) in {0, 1}
    else:
        assert truncated.text == text


def test_head_and_tail_prefer_whole_lines() -> None:
    assert keep_head(b"aaaa\nbbbb\ncccc\n", 12, 10) == b"aaaa\nbbbb\n"
    assert keep_tail(b"aaaa\nbbbb\ncccc\n", 12, 10) == b"bbbb\ncccc\n"
    assert keep_head(b"a\nb\nc", 10, 2) == b"a\nb\n"
    assert keep_tail(b"a\nb\nc", 10, 2) == b"b\nc"
    assert keep_head(b"a\nb", 10, 5) == keep_tail(b"a\nb", 10, 5) == b"a\nb"
    assert keep_head(b"a\nb\n", 10, 0) == keep_tail(b"a\nb\n", 10, 0) == b""


def test_a_head_and_a_tail_that_were_kept_apart_are_joined_with_a_note_of_its_own_line() -> None:
    assert join_head_and_tail("a\n", "z\n", 1, 1).text == "a\n[... 1 byte in 1 line left out ...]\nz\n"
    assert join_head_and_tail("a", "z", 2000, 0).text == "a\n[... 2,000 bytes left out ...]\nz"
    assert join_head_and_tail("", "z", 3, 2).text == "[... 3 bytes in 2 lines left out ...]\nz"


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    assert [count_lines(text) for text in ("", "a", "a\n", "a\nb", "\n")] == [0, 1, 1, 2, 1]


def test_counts_read_as_words() -> None:
    assert (count_of(0, "line"), count_of(1, "line"), count_of(2000, "line")) == ("0 lines", "1 line", "2,000 lines")
