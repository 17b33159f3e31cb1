"""Compressed bytes unpacked piece by piece, without unpacking a bomb."""

import zlib
from collections.abc import Iterator

from ci_agent.providers.wire.failures import ApiError

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_PIECE_BYTES = 64 * 1024
_RATIO_COUNTS_FROM_BYTES = 1 << 20
"""A small text may well shrink to nothing."""


def inflated(chunks: Iterator[bytes], max_ratio: int) -> Iterator[bytes]:
    """The text of gzip or zlib, as far as it came. Raises ApiError when it is neither, or grows beyond `max_ratio`."""
    inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
    received = made = 0
    for chunk in chunks:
        received += len(chunk)
        rest, piece = chunk, b""
        while rest or len(piece) == _PIECE_BYTES:  # of a full piece, more may be kept back
            try:
                piece = inflate.decompress(rest, _PIECE_BYTES)
            except zlib.error as error:
                raise ApiError("malformed", "the answer's compression is broken", retryable=True) from error
            rest = inflate.unconsumed_tail
            made += len(piece)
            if made > max(received * max_ratio, _RATIO_COUNTS_FROM_BYTES):
                raise ApiError("malformed", "the answer unpacks to far more than was sent", retryable=False)
            yield piece
        if inflate.eof:
            return
