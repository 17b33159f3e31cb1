"""Streams and answers of Bedrock's Converse API, recorded ones and ones written for each quirk."""

import json
import struct
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from any_json import JSON, deep_json
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_streams import (
    Outcome,
    assert_says,
    assert_splits_change_nothing,
    body_of,
    outcome_of,
    recorded_answers,
    recorded_streams,
    usage_of,
)

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta
from ci_agent.providers.bedrock.response import read_answer, read_stream
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.errors_on_wire import error_from_response
from ci_agent.providers.wire.failures import FailureKind

OWN = Path(__file__).parents[1] / "fixtures" / "bedrock"


def read(chunks: Sequence[bytes], *, limit: int | None = None) -> Outcome:
    return outcome_of(read_stream, iter(chunks), limit=limit)


def read_whole(body: Json, *, limit: int | None = None) -> Outcome:
    return outcome_of(read_answer, body, limit=limit)


Event = tuple[str, Json]


def frame(kind: str, payload: Json, message_type: str = "event") -> bytes:
    named = {f":{message_type}-type": kind, ":content-type": "application/json", ":message-type": message_type}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in named.items()
    )
    data = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))


def stream(*events: Event) -> bytes:
    return b"".join(frame(kind, payload) for kind, payload in events)


def delta(index: int, fields: JsonObject) -> Event:
    return ("contentBlockDelta", {"contentBlockIndex": index, "delta": fields, "p": "abcdef"})


def begin(index: int, id_: str, name: str) -> Event:
    start = {"toolUse": {"toolUseId": id_, "name": name}}
    return ("contentBlockStart", {"contentBlockIndex": index, "start": start})


def end(index: int) -> Event:
    return ("contentBlockStop", {"contentBlockIndex": index})


def stop(reason: str) -> Event:
    return ("messageStop", {"stopReason": reason})


def usage(fresh: int, said: int, **more: int) -> Event:
    return ("metadata", {"usage": {"inputTokens": fresh, "outputTokens": said, **more}, "metrics": {"latencyMs": 1}})


START: Event = ("messageStart", {"role": "assistant", "p": "abc"})


# Recorded traffic


def written_streams() -> list[Any]:
    """Events as they are read, one on a line; their frames are made here."""
    return [pytest.param(path, id=path.stem) for path in sorted(OWN.glob("*.jsonl"))]


def bytes_of(source: JsonObject | Path) -> bytes:
    if isinstance(source, Path):
        return stream(*((kind, payload) for kind, payload in map(json.loads, source.read_text().splitlines())))
    return body_of(source)


STREAMS = recorded_streams("bedrock-converse")
ALL_STREAMS = [*STREAMS, *written_streams()]


def assert_is_as_expected(outcome: Outcome, expected: JsonObject) -> None:
    assert_says(outcome, expected)
    thoughts = [part for part in outcome.content if isinstance(part, ThinkingContent)]
    signatures = [part.replay["signature"] for part in thoughts if part.replay]
    assert [len(signature) for signature in signatures] == [opaque["length"] for opaque in expected["opaque"]]
    assert outcome.usage == usage_of(expected)
    assert outcome.error is None


@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read([bytes_of(exchange)]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded_answers("bedrock-converse"))
def test_a_recorded_answer_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read_whole(exchange["response"]["json"]), exchange["expected"])


# However it is cut


@pytest.mark.parametrize("source", ALL_STREAMS)
def test_how_a_stream_is_split_changes_nothing(source: JsonObject | Path) -> None:
    assert_splits_change_nothing(read, bytes_of(source))


@pytest.mark.parametrize("source", ALL_STREAMS)
def test_a_stream_cut_at_any_byte_is_the_same_message_or_a_failure_to_try_again(source: JsonObject | Path) -> None:
    data = bytes_of(source)
    whole = read([data])
    ends = data.find(b"messageStop")
    for place in range(len(data)):
        cut = read([data[:place]])
        if cut.error is not None:
            assert cut.retryable or whole.error is not None, place
        else:
            assert (cut.content, cut.stop_reason) == (whole.content, whole.stop_reason), place
            assert place > ends > 0


def test_a_stream_whose_bytes_were_changed_is_a_failure_to_try_again() -> None:
    data = bytearray(stream(START, delta(0, {"text": "hi"}), stop("end_turn")))
    data[data.find(b"hi")] ^= 1
    assert (read([bytes(data)]).error, read([bytes(data)]).retryable) == ("malformed", True)


# Streams of our own


def own(name: str) -> Outcome:
    return read([bytes_of(OWN / f"{name}.jsonl")])


def test_thinking_is_kept_with_its_signature_beside_parallel_calls_and_cached_tokens() -> None:
    assert own("thinking_and_calls") == Outcome(
        (
            ThinkingContent("Let me see.", {"signature": "c2lnbmVk/+=="}),
            ThinkingContent("", {"redactedContent": "c2VhbGVk"}),
            TextContent("Größe 📏"),
            ToolCall("tooluse_a", "ls", '{"path": "src"}'),
            ToolCall("tooluse_b", "now", "{}"),
        ),
        "tool_use",
        Usage(12, 34, 560, 78),
    )


def test_empty_blocks_are_no_parts() -> None:
    assert own("empty_blocks") == Outcome((ThinkingContent("Short."), TextContent("Hello!")), "stop", Usage(7, 4))


# How a message ends


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
    ],
)
def test_reasons_that_end_a_message(reason: str, stop_reason: StopReason) -> None:
    assert read([stream(START, delta(0, {"text": "hi"}), end(0), stop(reason))]) == Outcome(
        (TextContent("hi"),), stop_reason
    )


@pytest.mark.parametrize(
    ("reason", "kind", "retryable"),
    [
        ("guardrail_intervened", "refused", False),
        ("content_filtered", "refused", False),
        ("malformed_tool_use", "bad_call", True),
        ("malformed_model_output", "malformed", True),
        ("moonrise", "malformed", False),
    ],
)
def test_reasons_that_are_failures_keep_what_came_and_what_it_cost(
    reason: str, kind: FailureKind, retryable: bool
) -> None:
    called = (ToolCall("x", "ls", "{}"),)
    data = stream(START, begin(0, "x", "ls"), end(0), stop(reason), usage(3, 4))
    assert read([data]) == Outcome(called, "error", Usage(3, 4), error=kind, retryable=retryable)


def test_an_exception_in_the_stream_is_an_error_that_keeps_what_came() -> None:
    broken = frame("modelStreamErrorException", {"message": "broke"}, "exception")
    assert read([stream(START, delta(0, {"text": "Half an"})) + broken]) == Outcome(
        (TextContent("Half an"),), "error", None, error="server", retryable=True
    )


def test_calls_at_the_end_of_a_turn_that_says_it_just_ended_are_calls() -> None:
    data = stream(START, begin(0, "x", "ls"), delta(0, {"toolUse": {"input": "{}"}}), end(0), stop("end_turn"))
    assert read([data]).stop_reason == "tool_use"


def test_a_call_whose_end_never_came_is_none_even_if_it_reads_as_one() -> None:
    data = stream(START, begin(0, "x", "ls"), delta(0, {"toolUse": {"input": '{"a": 1}'}}), stop("tool_use"))
    assert (read([data]).error, read([data]).retryable) == ("malformed", True)


def test_half_a_call_at_the_limit_makes_the_turn_one_that_was_cut() -> None:
    half = (START, begin(0, "x", "ls"), delta(0, {"toolUse": {"input": '{"pa'}}))
    for events in ((*half, end(0), stop("end_turn"), usage(1, 16)), (*half, stop("end_turn"), usage(1, 16))):
        assert read([stream(*events)], limit=16).stop_reason == "length"
    assert read([stream(*half, stop("max_tokens"))]).stop_reason == "length"


@pytest.mark.parametrize("nothing", [b"", stream(START), stream(START, stop("end_turn")), stream(START, usage(1, 0))])
def test_nothing_is_never_an_answer(nothing: bytes) -> None:
    outcome = read([nothing])
    assert (outcome.content, outcome.stop_reason, outcome.retryable) == ((), "error", True)


@pytest.mark.parametrize(
    "events",
    [
        (begin(0, "x", "ls"), begin(0, "y", "ls")),
        (delta(0, {"toolUse": {"input": "{}"}}),),
        (begin(0, "x", "ls"), end(0), delta(0, {"toolUse": {"input": "{}"}})),
        (("contentBlockDelta", {"delta": {"text": "hi"}}),),
        (("contentBlockDelta", {"delta": {"text": "hi"}, "contentBlockIndex": True}),),
    ],
)
def test_pieces_that_belong_to_nothing_are_broken(events: tuple[Event, ...]) -> None:
    outcome = read([stream(START, *events, stop("end_turn"))])
    assert (outcome.error, outcome.retryable) == ("malformed", True)


def test_unknown_events_and_pieces_are_skipped() -> None:
    events: list[Event] = [("ping", {}), delta(0, {"citation": {}}), delta(0, {"text": "hi"}), ("later", {"a": 1})]
    assert read([stream(START, *events, stop("end_turn"))]) == Outcome((TextContent("hi"),), "stop")


def test_thinking_in_the_text_of_a_model_is_text() -> None:
    data = stream(START, delta(0, {"text": "<thinking>a"}), delta(0, {"text": "b</thinking>"}), stop("end_turn"))
    assert read([data]).content == (TextContent("<thinking>ab</thinking>"),)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 4},
            Usage(1, 2, 3, 4),
        ),
        ({"inputTokens": 1}, Usage(1)),
        ({"inputTokens": -1, "outputTokens": "two", "totalTokens": 3}, None),
        (None, None),
    ],
)
def test_usage_is_what_the_server_says(told: Json, expected: Usage | None) -> None:
    data = stream(START, delta(0, {"text": "hi"}), stop("end_turn"), ("metadata", {"usage": told}))
    assert read([data]).usage == expected


# Whole answers


def answer(*blocks: Json, reason: str = "end_turn") -> JsonObject:
    return {"output": {"message": {"role": "assistant", "content": list(blocks)}}, "stopReason": reason}


def test_a_whole_answer_is_read_as_a_stream_is() -> None:
    body = answer(
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "cw=="}}},
        {"reasoningContent": {"redactedContent": "cg=="}},
        {"text": ""},
        {"text": "hi"},
        {"toolUse": {"toolUseId": "x", "name": "ls", "input": {"path": "ä"}}},
        {"guardContent": {}},
        reason="tool_use",
    )
    assert read_whole(body | {"usage": {"inputTokens": 1, "outputTokens": 2}}) == Outcome(
        (
            ThinkingContent("Hm", {"signature": "cw=="}),
            ThinkingContent("", {"redactedContent": "cg=="}),
            TextContent("hi"),
            ToolCall("x", "ls", '{"path": "ä"}'),
        ),
        "tool_use",
        Usage(1, 2),
    )


@pytest.mark.parametrize("body", [None, [], "hi", 7, {}, {"choices": []}, {"output": []}, {"output": {"message": {}}}])
def test_what_is_no_answer_is_a_failure_that_stays(body: Json) -> None:
    assert (read_whole(body).error, read_whole(body).retryable) == ("malformed", False)


# Whatever it is

FIELDS = "text toolUse toolUseId name input reasoningContent reasoningText signature redactedContent delta start"
SHAPED = st.recursive(
    JSON, lambda inner: st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=4), max_leaves=10
)
PAYLOAD = st.fixed_dictionaries(
    {},
    optional={
        "contentBlockIndex": st.integers(0, 2) | JSON,
        "delta": SHAPED,
        "start": SHAPED,
        "stopReason": st.sampled_from(["end_turn", "tool_use", "max_tokens"]) | JSON,
        "usage": st.dictionaries(st.sampled_from(["inputTokens", "outputTokens"]), JSON) | JSON,
    },
)
KINDS = st.sampled_from(
    ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "x"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(KINDS, PAYLOAD | JSON), max_size=6), st.lists(SHAPED | JSON, max_size=3), JSON)
def test_no_json_makes_it_raise_anything_but_an_api_error(events: list[Event], blocks: list[Json], body: Json) -> None:
    data = b"".join(frame(kind, json.loads(json.dumps(payload))) for kind, payload in events)
    for outcome in (read([data]), read_whole(answer(*blocks)), read_whole(body)):
        assert outcome.stop_reason is not None


def test_deep_input_is_no_crash() -> None:
    for depth in (90, 900, 100_000):
        deep = deep_json(depth)
        data = stream(START, begin(0, "x", "ls"), delta(0, {"toolUse": {"input": deep}}), end(0), stop("tool_use"))
        assert read([data]).content == (ToolCall("x", "ls", deep),)


def test_a_delta_carries_only_what_is_new() -> None:
    events = list(read_stream(iter([stream(START, *[delta(0, {"text": "y"})] * 500, stop("end_turn"))]), Assembly()))
    assert [event.delta for event in events if isinstance(event, ContentDelta)] == ["y"] * 500


# Refused before anything was said


@pytest.mark.parametrize(
    ("status", "kind_header", "said", "expected", "retryable"),
    [
        (429, "ThrottlingException", "Too many tokens, please wait before trying again.", "rate_limit", True),
        (429, "ModelNotReadyException:http://internal.amazon.com/", "not ready", "overloaded", True),
        (424, "ModelErrorException", "the model broke", "server", True),
        (408, "ModelTimeoutException", "too slow", "timeout", True),
        (403, "AccessDeniedException", "no access", "auth", False),
        (400, "ValidationException", "Input is too long for requested model.", "overflow", False),
        (400, "ValidationException", "toolConfig is missing", "request", False),
    ],
)
def test_errors_are_told_apart_by_the_type_in_their_header(
    status: int, kind_header: str, said: str, expected: FailureKind, retryable: bool
) -> None:
    body = json.dumps({"message": said}).encode()
    error = error_from_response(status, {"x-amzn-ErrorType": kind_header}, body, datetime(2026, 11, 1, tzinfo=UTC))
    assert (error.kind, error.retryable, error.status) == (expected, retryable, status)
