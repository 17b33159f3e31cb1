import pytest

from ci_agent.process import HeadAndTail, Output


def taken(chunks: list[bytes], head_bytes: int, tail_bytes: int) -> Output:
    kept = HeadAndTail(head_bytes, tail_bytes)
    for chunk in chunks:
        kept.append(chunk)
    return kept.taken()


def test_what_fits_is_whole() -> None:
    output = taken([b"one\n", b"two\n"], 5, 5)
    assert output == Output(head=b"one\nt", tail=b"wo\n", total_bytes=8, total_newlines=2)
    assert (output.is_complete, output.omitted_bytes) == (True, 0)


def test_of_what_does_not_fit_both_ends_are_kept_and_everything_is_counted() -> None:
    output = taken([b"a\nb\nc\nd\ne\n"], 2, 4)
    assert output == Output(head=b"a\n", tail=b"d\ne\n", total_bytes=10, total_newlines=5)
    assert (output.is_complete, output.omitted_bytes) == (False, 4)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_the_size_of_the_chunks_makes_no_difference(size: int) -> None:
    data = bytes(range(256)) * 3
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert taken(chunks, 10, 20) == Output(data[:10], data[-20:], 768, 3)


def test_a_head_alone_is_the_beginning() -> None:
    assert taken([b"abc", b"def"], 4, 0) == Output(b"abcd", b"", 6, 0)


def test_a_tail_alone_is_the_end() -> None:
    assert taken([b"abc", b"def"], 0, 4) == Output(b"", b"cdef", 6, 0)


def test_what_was_taken_does_not_change_any_more() -> None:
    kept = HeadAndTail(1, 1)
    kept.append(b"ab")
    before = kept.taken()
    kept.append(b"c")
    assert (before, kept.taken()) == (Output(b"a", b"b", 2, 0), Output(b"a", b"c", 3, 0))
