"""Compressed bytes unpacked piece by piece."""

import gzip
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.providers.network.inflation import inflated
from ci_agent.providers.wire.failures import ApiError


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[i : i + size] for i in range(0, len(body), size))


@given(st.binary(max_size=500), st.integers(1, 300))
def test_the_text_is_the_same_however_it_is_cut(text: bytes, size: int) -> None:
    for packed in (gzip.compress(text), zlib.compress(text)):
        assert b"".join(inflated(pieces(packed, size), 100)) == text


def test_what_is_there_is_given_before_more_is_asked_for() -> None:
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)

    def chunks() -> Iterator[bytes]:
        yield first
        pytest.fail("it was there already")

    assert next(inflated(chunks(), 100)) == b"data: 1\n\n"


def test_a_text_that_is_cut_comes_as_far_as_it_goes() -> None:
    packer = zlib.compressobj(wbits=31)
    cut = packer.compress(b"abc") + packer.flush(zlib.Z_SYNC_FLUSH)
    assert b"".join(inflated(iter([cut]), 100)) == b"abc"


def test_what_follows_the_end_is_not_read() -> None:
    assert b"".join(inflated(iter([gzip.compress(b"abc") + b"rest", b"more"]), 100)) == b"abc"


def test_a_bomb_is_noticed_early() -> None:
    made: list[int] = []
    with pytest.raises(ApiError, match="far more than was sent"):
        made.extend(map(len, inflated(pieces(gzip.compress(bytes(20 << 20)), 1024), 100)))
    assert sum(made) < 2 << 20


@pytest.mark.parametrize("body", [b"no gzip at all", b"\x1f\x8b\x08\x00garbage", b"\x00"])
def test_what_is_not_compressed_is_broken(body: bytes) -> None:
    with pytest.raises(ApiError, match="compression is broken") as caught:
        list(inflated(iter([body + b"\xff" * 100]), 100))
    assert caught.value.retryable is True
