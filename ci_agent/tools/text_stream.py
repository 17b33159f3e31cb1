"""Telling text from other files, and reading text of any size and encoding as UTF-8, piece by piece."""

import codecs
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Literal, TypeAlias

from ci_agent.cancellation import CancelToken

TextEncoding: TypeAlias = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
"""With `utf-8` there is no byte order mark; with every other there is one."""

BYTE_ORDER_MARKS: dict[TextEncoding, bytes] = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-32-le": codecs.BOM_UTF32_LE,  # before UTF-16, whose mark is its beginning
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}

HEAD_BYTES = 8_000
"""How much of a file decides what it is: git looks this far for a NUL too."""

_CHUNK_BYTES = 1 << 18


def detect_encoding(head: bytes) -> TextEncoding | None:
    """How the text is encoded, from its first `HEAD_BYTES`; None: it is not text.

    Bytes that are not UTF-8 may follow: only a NUL makes a file binary, as for git.
    """
    for encoding, mark in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    return None if b"\0" in head else "utf-8"


def read_head(file: BinaryIO) -> bytes:
    """The first `HEAD_BYTES` of the file; the next read starts at the beginning again."""
    head = read_at_most(file, HEAD_BYTES)
    file.seek(0)
    return head


def read_at_most(file: BinaryIO, max_bytes: int) -> bytes:
    """Up to `max_bytes` from here on; less only where the file ends."""
    pieces = []
    while max_bytes > 0 and (piece := file.read(min(max_bytes, 1 << 20))):
        pieces.append(piece)
        max_bytes -= len(piece)
    return b"".join(pieces)


def utf8_chunks(
    file: BinaryIO, encoding: TextEncoding, cancel: CancelToken, max_bytes: int | None = None
) -> Iterator[bytes]:
    """The text from the file's beginning, without its byte order mark; never an empty piece.

    `max_bytes` ends it when about as much of the file has been read; None: at the file's end.

    What is UTF-8 passes as it is, wrong bytes included; in other encodings what is wrong becomes U+FFFD.
    """
    file.seek(len(BYTE_ORDER_MARKS.get(encoding, b"")))
    raw = islice(_raw_chunks(file, cancel), None if max_bytes is None else -(-max_bytes // _CHUNK_BYTES))
    if encoding in {"utf-8", "utf-8-sig"}:
        return raw
    return _recoded(raw, encoding)


def _raw_chunks(file: BinaryIO, cancel: CancelToken) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        cancel.raise_if_cancelled()
        yield chunk


def _recoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        if text := decoder.decode(chunk):
            yield text.encode()
    if text := decoder.decode(b"", final=True):
        yield text.encode()
