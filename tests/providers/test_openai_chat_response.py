"""Streams and answers of servers that speak Chat Completions, recorded ones and ones written for each quirk."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import AssistantContent, StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta, ContentEnd, ContentEvent, ContentStart
from ci_agent.providers.assembly import Assembly
from ci_agent.providers.failures import ApiError, FailureKind
from ci_agent.providers.openai_chat_response import read_answer, read_stream

RECORDED = Path(__file__).parents[3] / "shared" / "fixtures" / "providers"
OWN = Path(__file__).parent / "fixtures" / "openai_chat"


@dataclass(frozen=True)
class Outcome:
    content: tuple[AssistantContent, ...]
    stop_reason: StopReason | None
    usage: Usage | None
    response_id: str | None = None
    model: str | None = None
    error: FailureKind | None = None
    retryable: bool | None = None


def outcome_of(events: Iterator[ContentEvent], assembly: Assembly) -> Outcome:
    kind, retryable = None, None
    seen: list[ContentEvent] = []
    try:
        seen.extend(events)
    except ApiError as error:
        kind, retryable = error.kind, error.retryable
    assert_well_formed(seen, is_whole=kind is None)
    stop_reason = assembly.stop_reason if kind is None else "error"
    named = (assembly.response_id, assembly.model)
    return Outcome(assembly.content, stop_reason, assembly.usage, *named, kind, retryable)


def assert_well_formed(events: list[ContentEvent], *, is_whole: bool) -> None:
    open_parts: set[int] = set()
    for event in events:
        if isinstance(event, ContentStart):
            assert event.index not in open_parts
            open_parts.add(event.index)
        else:
            assert event.index in open_parts
    ended = {event.index for event in events if isinstance(event, ContentEnd)}
    assert ended == (open_parts if is_whole else set())
    assert all(event.delta for event in events if isinstance(event, ContentDelta))


def read(chunks: Sequence[bytes], *, limit: int | None = None) -> Outcome:
    assembly = Assembly(max_output_tokens=limit)
    return outcome_of(read_stream(iter(chunks), assembly), assembly)


def read_whole(body: Json) -> Outcome:
    assembly = Assembly()
    return outcome_of(read_answer(body, assembly), assembly)


def stream(*chunks: Json, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def delta(fields: JsonObject, reason: str | None = None, **more: Json) -> JsonObject:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": reason}], **more}


# Recorded traffic


def recorded(*, streamed: bool, failed: bool = False) -> list[Any]:
    if not RECORDED.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no recorded traffic in {RECORDED.name}/"))]
    exchanges = [json.loads(path.read_text()) for path in sorted(RECORDED.glob("*.json"))]
    chosen = [
        exchange
        for exchange in exchanges
        if exchange["api"] == "openai-chat"
        and ("sse" in exchange["response"]) == streamed
        and (exchange["response"]["status"] != 200) == failed
    ]
    assert chosen
    return [pytest.param(exchange, id=exchange["name"]) for exchange in chosen]


STREAMS = recorded(streamed=True)


def assert_is_as_expected(outcome: Outcome, expected: JsonObject) -> None:
    calls = [part for part in outcome.content if isinstance(part, ToolCall)]
    thoughts = [part.text for part in outcome.content if isinstance(part, ThinkingContent) and part.text]
    texts = [part.text for part in outcome.content if isinstance(part, TextContent)]
    assert "".join(texts) == expected["text"]
    assert ("\n\n".join(thoughts) or None) == expected["thinking"]
    assert [(call.id or None, call.name, json.loads(call.arguments_json)) for call in calls] == [
        (call["id"], call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert outcome.stop_reason == expected["stop_reason"].replace("toolUse", "tool_use")
    assert (outcome.response_id, outcome.model) == (expected["response_id"], expected["model"])
    assert outcome.usage == expected_usage(expected["usage"])
    error = expected["error"]
    assert (outcome.error is None) == (error is None)
    if error is not None:
        assert outcome.retryable == error["retryable"]


def expected_usage(usage: JsonObject | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(
        input_tokens=usage["input"],
        output_tokens=usage["output"],
        cache_read_tokens=usage["cache_read"],
        cache_write_tokens=usage["cache_write"],
    )


@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read([exchange["response"]["sse"].encode()]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded(streamed=False))
def test_a_recorded_answer_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read_whole(exchange["response"]["json"]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded(streamed=False, failed=True))
def test_a_recorded_failure_is_one(exchange: JsonObject) -> None:
    assert (read_whole(exchange["response"]["json"]).error, read_whole(exchange["response"]["json"]).retryable) == (
        "request",
        False,
    )


# However it is cut


def own_streams() -> list[Any]:
    return [pytest.param({"response": {"sse": path.read_text()}}, id=path.stem) for path in sorted(OWN.glob("*.sse"))]


ALL_STREAMS = [*STREAMS, *own_streams()]


@pytest.mark.parametrize("exchange", ALL_STREAMS)
def test_how_a_stream_is_split_changes_nothing(exchange: JsonObject) -> None:
    data: bytes = exchange["response"]["sse"].encode()
    whole = read([data])
    chooser = random.Random(7)  # noqa: S311  no secret
    cuts = sorted(chooser.sample(range(len(data)), k=min(200, len(data) // 2)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    with_crlf = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert read(pieces) == whole
    assert read([bytes([byte]) for byte in data]) == whole
    assert read([bytes([byte]) for byte in with_crlf]) == whole
    assert read([b"\xef\xbb\xbf" + data]) == whole


@pytest.mark.parametrize("exchange", ALL_STREAMS)
def test_a_stream_cut_anywhere_is_the_same_message_or_a_failure_to_try_again(exchange: JsonObject) -> None:
    data: bytes = exchange["response"]["sse"].encode()
    whole = read([data])
    ends = data.find(b'"finish_reason":"')
    for end in cuts_of(data):
        cut = read([data[:end]])
        if cut.error is not None:
            assert cut.retryable, end
        else:
            assert (cut.content, cut.stop_reason) == (whole.content, whole.stop_reason) or whole.error, end
            assert end > ends or ends < 0


def cuts_of(data: bytes) -> Iterator[int]:
    """Every place in a short stream; in a long one, all in its end and its beginning and many between."""
    chooser = random.Random(11)  # noqa: S311  no secret
    if len(data) <= 3_000:
        yield from range(len(data))
    else:
        yield from range(300)
        yield from sorted(chooser.sample(range(300, len(data) - 700), k=50))
        yield from range(len(data) - 700, len(data))


@pytest.mark.slow
@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_cut_at_every_byte_never_gives_another_message(exchange: JsonObject) -> None:
    data: bytes = exchange["response"]["sse"].encode()
    whole = read([data])
    for end in range(len(data)):
        cut = read([data[:end]])
        same = (cut.content, cut.stop_reason) == (whole.content, whole.stop_reason)
        assert cut.retryable or same or whole.error is not None, end
