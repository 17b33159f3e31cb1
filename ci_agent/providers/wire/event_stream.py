"""Messages of the AWS event stream out of bytes that are cut anywhere: length, headers, payload, two checksums.

Numbers are big-endian. A message is 4 bytes of total length, 4 of headers' length, their CRC-32, the headers, the
payload, and a CRC-32 of all that came before.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.errors_on_wire import error_from_object
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.untrusted_json import text_at

MAX_MESSAGE_BYTES = 16 << 20
"""More than any event of a model needs; a length beyond it is no length."""

_PRELUDE = struct.Struct(">III")
_LENGTH = struct.Struct(">H")
_CRC = struct.Struct(">I")
_OVERHEAD = _PRELUDE.size + _CRC.size

_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type: true, false, integers, a time, a UUID."""
_BYTES, _TEXT = 6, 7


@dataclass(frozen=True, slots=True)
class Message:
    headers: dict[str, str]
    """Those that are texts."""
    payload: bytes


def read_messages(chunks: Iterator[bytes]) -> Iterator[Message]:
    """The messages; raises ApiError for a checksum that is wrong, a message too long, and an end in the middle."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        start = 0
        while (size := _size_of_next(buffer, start)) is not None:
            yield _message(bytes(buffer[start : start + size]))
            start += size
        del buffer[:start]
    if buffer:
        raise ApiError("truncated", "the event stream ended in the middle of a message", retryable=True)


def read_json_messages(chunks: Iterator[bytes]) -> Iterator[tuple[str, JsonObject]]:
    """Type and payload of each event. Raises ApiError for an exception or an error among them, for a payload that is no
    JSON object, and as `read_messages` does."""
    for message in read_messages(chunks):
        match message.headers.get(":message-type"):
            case "exception":
                raise error_from_object(_exception(message), status=None)
            case "error":
                said = message.headers.get(":error-message", "")
                raise error_from_object({"type": message.headers.get(":error-code", ""), "message": said}, status=None)
            case _:
                yield message.headers.get(":event-type", ""), _event(message)


def _size_of_next(buffer: bytearray, start: int) -> int | None:
    """The length of the message that begins at `start`; None while some of it is missing."""
    if len(buffer) - start < _PRELUDE.size:
        return None
    total, headers, checksum = _PRELUDE.unpack_from(buffer, start)
    if checksum != zlib.crc32(buffer[start : start + _PRELUDE.size - _CRC.size]):
        _refuse("the checksum of a message's beginning is wrong")
    if not _OVERHEAD + headers <= total <= MAX_MESSAGE_BYTES:
        _refuse(f"a message says that it has {total} bytes, {headers} of them headers")
    return total if len(buffer) - start >= total else None


def _message(data: bytes) -> Message:
    if _CRC.unpack_from(data, len(data) - _CRC.size)[0] != zlib.crc32(data[: -_CRC.size]):
        _refuse("the checksum of a message is wrong")
    end_of_headers = _PRELUDE.size + _PRELUDE.unpack_from(data)[1]
    headers = dict(_headers(data[_PRELUDE.size : end_of_headers]))
    return Message(headers, data[end_of_headers : -_CRC.size])


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """The headers that are texts; a header is its name's length, name, type, value."""
    try:
        position = 0
        while position < len(data):
            name_end = position + 1 + data[position]
            name, kind = data[position + 1 : name_end].decode(), data[name_end]
            start, position = _value_bounds(data, kind, name_end + 1)
            if kind == _TEXT:
                yield name, data[start:position].decode()
        if position > len(data):
            _refuse("a header is longer than its message")
    except (IndexError, struct.error, UnicodeDecodeError):
        _refuse("the headers of a message cannot be read")


def _value_bounds(data: bytes, kind: int, start: int) -> tuple[int, int]:
    if kind in (_BYTES, _TEXT):
        value = start + _LENGTH.size
        return value, value + _LENGTH.unpack_from(data, start)[0]
    if kind not in _FIXED_SIZES:
        _refuse(f"a header has the unknown type {kind}")
    return start, start + _FIXED_SIZES[kind]


def _event(message: Message) -> JsonObject:
    payload = _json(message.payload)
    if not isinstance(payload, dict):
        _refuse(f"an event is no JSON object: {message.payload[:200]!r}")
    return payload


def _exception(message: Message) -> JsonObject:
    """An error object as the API sends it outside of streams, where the names of types begin with a capital."""
    name = message.headers.get(":exception-type", "")
    payload = _json(message.payload)
    said = (text_at(payload, "message"), text_at(payload, "originalMessage"))
    return {"type": name[:1].upper() + name[1:], "message": ": ".join(filter(None, said))}


def _json(payload: bytes) -> Json:
    try:
        return json.loads(payload or b"{}")
    except (ValueError, RecursionError):
        return None


def _refuse(problem: str) -> NoReturn:
    raise ApiError("malformed", f"the event stream is broken: {problem}", retryable=True)
