import re
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.errors import ToolError
from ci_agent.tools.line_search import MAX_LINE_BYTES, FoundLine, compile_pattern, search_lines


def search(
    text: bytes,
    pattern: str,
    *,
    context: int = 0,
    literal: bool = False,
    ignore_case: bool = False,
    piece: int = 1 << 20,
) -> list[FoundLine]:
    pieces = (text[start : start + piece] for start in range(0, len(text), piece))
    return list(search_lines(pieces, compile_pattern(pattern, literal=literal, ignore_case=ignore_case), context))


def numbers(found: list[FoundLine]) -> list[int]:
    return [line.number for line in found if line.is_match]


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        (b"one\ntwo\none two\n", "one", [1, 3]),
        (b"one\ntwo", "^two$", [2]),
        (b"one\r\ntwo\r\n", "e$", [1]),
        (b"a\n\nb\n", "^$", [2]),
        (b"a\nb\n", "", [1, 2]),
        (b"", "", []),
        (b"\n", "", [1]),
        (b"a", "$", [1]),
        (b"a\nb\n", r"a\s*b", []),
        (b"a\nb\n", r"a[^x]*b", []),
        (b"a\nb\n", r"a\nb", []),
        (b"a\nxb\n", r"[^\n]b", [2]),
        (b"caf\xc3\xa9\ncaf\xe9\n", r"caf.$", [1]),
        (b"a\xe9b\n", r"a.b", []),
        (b"x\n" * 3, "x*", [1, 2, 3]),
        (b"a|b\nb\n", "^a|b$", [1, 2]),
        (b"K\nk\n\xe2\x84\xaa\n", "(?i)k", [1, 2, 3]),
    ],
)
def test_patterns_mean_single_lines(text: bytes, pattern: str, expected: list[int]) -> None:
    assert numbers(search(text, pattern)) == expected


def test_a_literal_pattern_has_no_special_characters() -> None:
    assert numbers(search(b"a.b\naxb\n", "a.b", literal=True)) == [1]
    assert numbers(search(b"x(\n", "X(", literal=True, ignore_case=True)) == [1]


def test_lines_around_a_match_come_once_and_in_order() -> None:
    text = b"1\n2\nx3\n4\nx5\n6\n7\n8\n9\nx10\n"
    assert search(text, "x", context=1) == [
        FoundLine(2, b"2", is_match=False),
        FoundLine(3, b"x3", is_match=True),
        FoundLine(4, b"4", is_match=False),
        FoundLine(5, b"x5", is_match=True),
        FoundLine(6, b"6", is_match=False),
        FoundLine(9, b"9", is_match=False),
        FoundLine(10, b"x10", is_match=True),
    ]


@settings(deadline=None)
@given(
    st.text(alphabet="ab\n\r", max_size=60),
    st.sampled_from(["a", "b$", "^", "^a*$", "ab", "", "b?a"]),
    st.integers(0, 3),
    st.integers(1, 9),
)
def test_the_pieces_that_a_text_comes_in_make_no_difference(text: str, pattern: str, context: int, piece: int) -> None:
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    matching = {number for number, line in enumerate(lines, 1) if re.search(pattern, line)}
    around = {number + offset for number in matching for offset in range(-context, context + 1)}
    assert search(text.encode(), pattern, context=context, piece=piece) == [
        FoundLine(number, line.encode(), number in matching) for number, line in enumerate(lines, 1) if number in around
    ]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        ("(?=x)", "invalid perl operator: (?="),
        ("a{2000}", "invalid repetition size: {2000}"),
        (r"\A", r"\A has no meaning where lines are searched one by one; use ^ and $."),
        (r"a\z", r"\z has no meaning"),
        (r"\C", r"\C has no meaning"),
        ("a\ud800", "the pattern contains a lone surrogate"),
        ("a)|(b", "unexpected )"),
        ("((a{100}){100}){100}", "invalid repetition size"),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(ToolError) as error:
        compile_pattern(pattern, literal=False, ignore_case=False)
    assert reason in str(error.value)


def test_a_backslash_before_a_backslash_is_no_anchor() -> None:
    assert numbers(search(rb"C:\Apps", r"C:\\Apps")) == [1]


def test_hostile_patterns_take_linear_time() -> None:
    started = time.process_time()
    assert search(b"a" * 1_000_000 + b"!\n", r"(a+)+$") == []
    assert search(b"a" * 1_000_000 + b"!\n", r"(a|aa)*b") == []
    assert time.process_time() - started < 10


def test_an_endless_line_is_searched_in_bounded_memory() -> None:
    def endless() -> Iterator[bytes]:
        yield b"start "
        for _ in range(1000):
            yield b"x" * 100_000
        yield b" end\nlast start\n"

    pattern = compile_pattern("start|end", literal=False, ignore_case=False)
    tracemalloc.start()
    found = list(search_lines(endless(), pattern, 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(line.number, len(line.text)) for line in found] == [(1, MAX_LINE_BYTES), (2, 10)]
    assert peak < 8 * MAX_LINE_BYTES
