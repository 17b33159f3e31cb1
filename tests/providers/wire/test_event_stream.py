"""The AWS event stream: framing, checksums, exceptions."""

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.json_types import Json
from ci_agent.providers.wire.event_stream import MAX_MESSAGE_BYTES, Message, read_json_messages, read_messages
from ci_agent.providers.wire.failures import ApiError, FailureKind


def text(name: str, value: str) -> bytes:
    raw = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(raw)) + raw


def frame(headers: bytes, payload: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def event(kind: str, payload: Json) -> bytes:
    return frame(text(":message-type", "event") + text(":event-type", kind), json.dumps(payload).encode())


def exception(kind: str, payload: Json) -> bytes:
    headers = text(":message-type", "exception") + text(":exception-type", kind)
    return frame(headers, json.dumps(payload).encode())


def read(*chunks: bytes) -> list[Message]:
    return list(read_messages(iter(chunks)))


def failure(*chunks: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        list(read_json_messages(iter(chunks)))
    return caught.value


def test_the_example_of_the_format_without_headers() -> None:
    assert read(bytes.fromhex("000000100000000005c248eb7d98c8ff")) == [Message({}, b"")]


def test_messages_hold_headers_and_payload() -> None:
    data = frame(text("content-type", "application/json"), b'{"foo":"bar"}')
    assert read(data + data) == [Message({"content-type": "application/json"}, b'{"foo":"bar"}')] * 2


def test_headers_of_all_types_are_passed_over_and_texts_kept() -> None:
    headers = b"".join(
        [
            b"\x01a\x00",
            b"\x01b\x01",
            b"\x01c\x02\xff",
            b"\x01d\x03\x00\x01",
            b"\x01e\x04" + b"\x00" * 4,
            b"\x01f\x05" + b"\x00" * 8,
            b"\x01g\x06\x00\x03abc",
            text("h", "größe"),
            b"\x01i\x08" + b"\x00" * 8,
            b"\x01j\x09" + b"\x00" * 16,
        ]
    )
    assert read(frame(headers, b"x")) == [Message({"h": "größe"}, b"x")]


def test_how_the_bytes_are_split_changes_nothing() -> None:
    data = event("a", {"x": "ä"}) + event("b", {}) + event("c", {"y": [1]})
    expected = [("a", {"x": "ä"}), ("b", {}), ("c", {"y": [1]})]
    assert list(read_json_messages(bytes([byte]) for byte in data)) == expected
    for place in range(len(data)):
        assert list(read_json_messages(iter([data[:place], b"", data[place:]]))) == expected


def test_an_end_in_the_middle_of_a_message_is_truncated_wherever_it_is() -> None:
    first, second = event("a", {"x": 1}), event("b", {"y": 2})
    data = first + second
    for place in range(len(data)):
        if place in (0, len(first)):
            assert len(read(data[:place])) == (place > 0)
        else:
            assert (failure(data[:place]).kind, failure(data[:place]).retryable) == ("truncated", True)


def test_any_changed_byte_is_noticed() -> None:
    data = event("contentBlockDelta", {"delta": {"text": "rm -rf build"}})
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x20
        assert failure(bytes(changed)).kind == "malformed"


@pytest.mark.parametrize(
    ("total", "headers"), [(0, 0), (15, 0), (16, 1), (MAX_MESSAGE_BYTES + 1, 0), (0xFFFFFFFF, 0), (20, 0xFFFFFFFF)]
)
def test_a_length_that_is_none_is_refused_before_anything_is_waited_for(total: int, headers: int) -> None:
    prelude = struct.pack(">II", total, headers)
    error = failure(prelude + struct.pack(">I", zlib.crc32(prelude)))
    assert (error.kind, error.retryable) == ("malformed", True)


@pytest.mark.parametrize(
    "headers",
    [
        b"\x05ab",
        b"\x01",
        b"\x01a",
        b"\x01a\x07",
        b"\x01a\x07\x00\x09abc",
        b"\x01a\x0a",
        b"\x01a\x05\x00",
        b"\x01\xff\x00",
    ],
)
def test_headers_that_cannot_be_read_are_refused(headers: bytes) -> None:
    assert failure(frame(headers, b"{}")).kind == "malformed"


@pytest.mark.parametrize("payload", [b"[]", b"1", b"{", b"\xff", b"null", b"[" * 100_000])
def test_an_event_that_is_no_json_object_is_refused(payload: bytes) -> None:
    headers = text(":message-type", "event") + text(":event-type", "x")
    assert failure(frame(headers, payload)).kind == "malformed"


def test_a_message_without_a_payload_is_an_empty_event() -> None:
    data = frame(text(":message-type", "event") + text(":event-type", "x"), b"")
    assert list(read_json_messages(iter([data]))) == [("x", {})]


@pytest.mark.parametrize(
    ("kind", "message", "expected", "retryable", "status"),
    [
        ("throttlingException", "Too many tokens, please wait before trying again.", "rate_limit", True, 429),
        ("internalServerException", "oops", "server", True, 500),
        ("serviceUnavailableException", "busy", "overloaded", True, 503),
        ("modelStreamErrorException", "broke", "server", True, 424),
        ("validationException", "no such field", "request", False, 400),
        ("validationException", "Input is too long for requested model.", "overflow", False, 400),
    ],
)
def test_an_exception_is_raised_as_what_it_means(
    kind: str, message: str, expected: FailureKind, retryable: bool, status: int
) -> None:
    error = failure(event("messageStart", {}) + exception(kind, {"message": message}))
    assert (error.kind, error.retryable, error.status) == (expected, retryable, status)
    assert message in error.message


def test_an_exception_tells_what_the_model_said_too() -> None:
    told = {"message": "The model failed", "originalMessage": "out of memory", "originalStatusCode": 500}
    error = failure(exception("modelStreamErrorException", told))
    assert error.message == "an error in the stream ModelStreamErrorException: The model failed: out of memory"


def test_an_error_message_is_raised_from_its_headers() -> None:
    headers = text(":message-type", "error") + text(":error-code", "InternalError") + text(":error-message", "gone")
    error = failure(frame(headers, b""))
    assert (error.kind, error.retryable, "gone" in error.message) == ("server", True, True)


@pytest.mark.parametrize("payload", [[], None, {"message": 7}, "x"])
def test_an_exception_of_any_shape_is_one(payload: Json) -> None:
    assert failure(exception("", payload)).kind == "server"


BROKEN: list[Callable[[bytes], bytes]] = [lambda data: data, lambda data: data[:-1], lambda data: data[1:]]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=20), st.sampled_from(BROKEN)), max_size=4))
def test_no_bytes_make_it_raise_anything_but_an_api_error(
    parts: Sequence[tuple[bytes, bytes, Callable[[bytes], bytes]]],
) -> None:
    chunks = [damage(frame(headers, payload)) for headers, payload, damage in parts]
    for data in (chunks, [payload for _, payload, _ in parts]):
        with suppress(ApiError):
            list(read_json_messages(iter(data)))
