"""Server-sent events out of bytes that are cut anywhere.

The format is the one of the HTML standard, with what servers make of it: no blank line at the end, comments as data.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.failures import ApiError

MAX_LINE_BYTES = 1 << 20
DONE = "[DONE]"
"""What many APIs send as data when the stream has come to its end."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    event: str
    """Empty when the server gave it no name."""
    data: str


def read_events(chunks: Iterator[bytes]) -> Iterator[SseEvent]:
    """The events that carry data; an unfinished one at the end counts, for some servers leave out its blank line.

    Raises ApiError for a line that is too long or not UTF-8.
    """
    name, data = "", list[str]()
    for line in _lines(chunks):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
        else:
            if data:
                yield SseEvent(name, "\n".join(data))
            name, data = "", []
    if data:
        yield SseEvent(name, "\n".join(data))


def read_json_events(chunks: Iterator[bytes]) -> Iterator[tuple[str, JsonObject]]:
    """Name and data of each event; `[DONE]` is an event of that name without data, and the last.

    Raises ApiError for data that is no JSON object.
    """
    for event in read_events(chunks):
        text = event.data.strip()
        if text == DONE:
            yield DONE, {}
            return
        if text and not text.startswith(":"):
            yield event.event, _parse(text)


def _parse(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and len(value) == 1:  # one server wraps its errors so
        value = value[0]
    if not isinstance(value, dict):
        raise ApiError("malformed", f"the stream holds data that is no JSON object: {text[:200]!r}", retryable=True)
    return value


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    """Lines without their ends, which are LF, CRLF or CR; the last may lack one."""
    buffer = bytearray()
    at_start, after_cr, searched = True, False, 0
    for chunk in filter(None, chunks):
        buffer += chunk
        if at_start:
            if len(buffer) < len(_BOM) and _BOM.startswith(bytes(buffer)):
                continue
            at_start = False
            if buffer.startswith(_BOM):
                del buffer[: len(_BOM)]
        if after_cr and buffer:
            after_cr = False
            if buffer.startswith(b"\n"):
                del buffer[:1]
        end = max(buffer.rfind(b"\n", searched), buffer.rfind(b"\r", searched)) + 1
        if end:
            yield from _split(buffer[:end])
            after_cr = end == len(buffer) and buffer.endswith(b"\r")
            del buffer[:end]
        searched = len(buffer)
        if searched > MAX_LINE_BYTES:
            raise _too_long()
    if buffer:
        yield from _split(buffer + b"\n")


def _split(lines: bytearray) -> list[str]:
    """Whole lines, the last one's end included. Decoded in one go, which is most of the speed."""
    try:
        text = lines.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ApiError("malformed", "the stream holds a line that is not UTF-8", retryable=True) from error
    split = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if len(lines) > MAX_LINE_BYTES and any(len(line.encode()) > MAX_LINE_BYTES for line in split):
        raise _too_long()
    return split[:-1]


def _too_long() -> ApiError:
    return ApiError("malformed", f"the stream holds a line of more than {MAX_LINE_BYTES} bytes", retryable=False)
