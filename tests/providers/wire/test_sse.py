"""Server-sent events as servers really send them, in pieces cut anywhere."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from any_json import JSON
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.sse import MAX_LINE_BYTES, SseEvent, read_events, read_json_events


def bytewise(body: bytes) -> Iterator[bytes]:
    return (body[i : i + 1] for i in range(len(body)))


QUIRKS: list[tuple[str, list[SseEvent]]] = [
    ("data: a\n\n", [SseEvent("", "a")]),
    ("data:a\n\ndata:  b\n\n", [SseEvent("", "a"), SseEvent("", " b")]),
    ("event: x\ndata: a\n\ndata: b\n\n", [SseEvent("x", "a"), SseEvent("", "b")]),
    ("data: a\nid: 7\nevent: x\nretry: 9\nother\n\n", [SseEvent("x", "a")]),
    ("data: a\ndata: b\n\n", [SseEvent("", "a\nb")]),
    (": ping\n\n:\n\nid: 1\n\nevent: lost\n\ndata: a\n\n", [SseEvent("", "a")]),
    ("\ufeffdata: a\n\n", [SseEvent("", "a")]),
    ("data: \ufeffä€😀\u2028\x0b\x85x\n\n", [SseEvent("", "\ufeffä€😀\u2028\x0b\x85x")]),
    ("data: a\n\nevent: e\ndata: b\n", [SseEvent("", "a"), SseEvent("e", "b")]),
    ("data: a", [SseEvent("", "a")]),
    ("data\n\n", [SseEvent("", "")]),
    ("\n\n\n", []),
    ("", []),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("body", "expected"), QUIRKS)
def test_events_are_the_same_however_lines_end_and_bytes_are_cut(
    body: str, expected: list[SseEvent], line_end: str
) -> None:
    raw = body.replace("\n", line_end).encode()
    expected = [SseEvent(event.event, event.data) for event in expected]
    for cut in range(len(raw) + 1):
        assert list(read_events(iter([raw[:cut], b"", raw[cut:]]))) == expected
    assert list(read_events(bytewise(raw))) == expected


def test_an_event_comes_as_soon_as_its_blank_line_has() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"data: a\n\nda"
        pytest.fail("it was there already")

    assert next(read_events(chunks())) == SseEvent("", "a")


def test_data_is_json_and_the_end_is_the_end() -> None:
    body = b'data: {"a": 1}\n\nevent: e\ndata: [{"b": 2}]\n\ndata: : PROCESSING\n\ndata:\n\n'
    body += b'data: [DONE]\n\ndata: {"c": 3}\n\n'
    assert list(read_json_events(bytewise(body))) == [("", {"a": 1}), ("e", {"b": 2}), ("[DONE]", {})]


@pytest.mark.parametrize("data", ["<html>", "1", "[]", '[{"a": 1}, 2]', '{"a": ', "[" * 100_000])
def test_other_data_is_malformed_and_shown_in_part(data: str) -> None:
    with pytest.raises(ApiError) as caught:
        list(read_json_events(iter([f"data: {data}\n\n".encode()])))
    assert (caught.value.kind, caught.value.retryable) == ("malformed", True)
    assert len(caught.value.message) < 300


def test_what_is_no_utf8_is_malformed() -> None:
    with pytest.raises(ApiError, match="not UTF-8"):
        list(read_events(iter([b"data: \xff\n\n"])))


def test_a_long_line_is_read_and_a_longer_one_is_refused() -> None:
    fits = b"data: " + b"x" * (MAX_LINE_BYTES - 6)
    assert len(next(read_events(iter([fits, b"\n\n"]))).data) == MAX_LINE_BYTES - 6
    for rest in (iter([fits, b"x"]), iter([fits + b"x\n\n"])):
        with pytest.raises(ApiError, match="a line of more than"):
            list(read_events(rest))


def seconds(size: int) -> float:
    body = b"data: " + b"x" * size + b"\n\n"
    start = time.process_time()
    list(read_events(bytewise(body)))
    return time.process_time() - start


def test_a_long_line_byte_by_byte_takes_time_in_proportion() -> None:
    assert min(seconds(400_000) for _ in range(3)) < 12 * min(seconds(100_000) for _ in range(3))


@given(st.lists(st.binary(max_size=60)))
def test_no_bytes_raise_anything_else(chunks: list[bytes]) -> None:
    with suppress(ApiError):
        list(read_json_events(iter([b"data: ", *chunks])))


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.sampled_from([1, 2, 3, 7, 1000]))
def test_any_object_comes_back_as_it_was(value: dict[str, object], size: int) -> None:
    body = f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    ((_, read),) = read_json_events(iter(pieces))
    assert json.dumps(read, ensure_ascii=False).encode("utf-8", "replace") == body[6:-2]
