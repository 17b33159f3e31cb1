"""A whole text file as text that can be changed and put back without touching any other byte."""

from dataclasses import dataclass

from ci_agent.tools.text_stream import BYTE_ORDER_MARKS, HEAD_BYTES, TextEncoding, detect_encoding


@dataclass(frozen=True, slots=True)
class TextDocument:
    text: str
    """Without the byte order mark. Bytes that are not UTF-8 stand in it as lone surrogates (PEP 383)."""
    encoding: TextEncoding


def decode_document(data: bytes) -> TextDocument | None:
    """None for what is not text, or what encoding it again would change."""
    encoding = detect_encoding(data[:HEAD_BYTES])
    if encoding is None:
        return None
    body = data.removeprefix(BYTE_ORDER_MARKS.get(encoding, b""))
    try:
        document = TextDocument(body.decode(*_codec(encoding)), encoding)
        return document if encode_document(document) == data else None
    except UnicodeError:
        return None


def encode_document(document: TextDocument) -> bytes:
    mark = BYTE_ORDER_MARKS.get(document.encoding, b"")
    return mark + document.text.encode(*_codec(document.encoding))


def presentable(text: str) -> str:
    """The text with U+FFFD for every byte that was not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _codec(encoding: TextEncoding) -> tuple[str, str]:
    if encoding in {"utf-8", "utf-8-sig"}:
        return "utf-8", "surrogateescape"
    return encoding, "strict"
