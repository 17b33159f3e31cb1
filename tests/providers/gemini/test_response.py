"""Streams and answers of Gemini and Vertex, recorded ones and ones written for each quirk."""

import json
import random
from collections.abc import Sequence

import pytest
from any_json import JSON, deep_json
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_streams import (
    Outcome,
    assert_line_ends_change_nothing,
    assert_says,
    assert_splits_change_nothing,
    body_of,
    error_of,
    outcome_of,
    own_stream,
    own_streams,
    recorded_answers,
    recorded_streams,
    usage_of,
)

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta
from ci_agent.providers.gemini.response import read_answer, read_stream
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.failures import ApiError, FailureKind


def read(chunks: Sequence[bytes], *, limit: int | None = None) -> Outcome:
    return outcome_of(read_stream, iter(chunks), limit=limit)


def read_whole(body: Json) -> Outcome:
    return outcome_of(read_answer, body)


def stream(*chunks: Json) -> bytes:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()


def chunk(*parts: Json, reason: str | None = None, **more: Json) -> JsonObject:
    candidate: JsonObject = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})], **more}


def call(name: str, **more: Json) -> JsonObject:
    return {"functionCall": {"name": name, **more}}


def piece(*partial: Json, goes_on: bool = True) -> JsonObject:
    return {"functionCall": {"partialArgs": list(partial), **({"willContinue": True} if goes_on else {})}}


# Recorded traffic


STREAMS = recorded_streams("google-generative-ai")
ALL_STREAMS = [*STREAMS, *own_streams("gemini")]


def assert_is_as_expected(outcome: Outcome, expected: JsonObject) -> None:
    assert_says(outcome, expected)
    calls = [part for part in outcome.content if isinstance(part, ToolCall)]
    assert [part.replay is not None for part in calls] == [
        block["has_signature"] for block in expected["blocks"] if block["type"] == "tool_call"
    ]
    signatures = [part.replay["thoughtSignature"] for part in outcome.content if part.replay]
    assert [len(signature) for signature in signatures] == [opaque["length"] for opaque in expected["opaque"]]
    assert (outcome.response_id, outcome.model) == (expected["response_id"], expected["model"])
    assert outcome.usage == usage_of(expected)
    assert outcome.error is None


@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read([body_of(exchange)]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded_answers("google-generative-ai"))
def test_a_recorded_answer_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read_whole(exchange["response"]["json"]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded_answers("google-generative-ai", failed=True))
def test_a_recorded_failure_is_a_request_that_stays_refused(exchange: JsonObject) -> None:
    error = error_of(exchange)
    assert (error.kind, error.retryable, error.status) == ("request", False, exchange["expected"]["error"]["status"])


# However it is cut


@pytest.mark.parametrize("exchange", ALL_STREAMS)
def test_how_a_stream_is_split_changes_nothing(exchange: JsonObject) -> None:
    assert_splits_change_nothing(read, body_of(exchange))
    assert_line_ends_change_nothing(read, body_of(exchange))


@pytest.mark.parametrize("exchange", ALL_STREAMS)
def test_a_stream_cut_anywhere_is_the_same_message_or_a_failure_to_try_again(exchange: JsonObject) -> None:
    data = body_of(exchange)
    assert_cuts_are_harmless(data, cuts_of(data))


@pytest.mark.slow
@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_cut_at_every_byte_never_gives_another_message(exchange: JsonObject) -> None:
    data = body_of(exchange)
    assert_cuts_are_harmless(data, range(len(data)))


def assert_cuts_are_harmless(data: bytes, places: Sequence[int]) -> None:
    whole = read([data])
    ends = data.find(b'"finishReason"')
    for end in places:
        cut = read([data[:end]])
        if cut.error is not None:
            assert cut.retryable, end
        else:
            assert cut == whole, end
            assert end > ends > 0, end


def cuts_of(data: bytes) -> Sequence[int]:
    """Every place in a short stream; in a long one, all in its end and its beginning and many between."""
    if len(data) <= 3_000:
        return range(len(data))
    chooser = random.Random(11)
    between = sorted(chooser.sample(range(100, len(data) - 300), k=60))
    return [*range(100), *between, *range(len(data) - 300, len(data))]


@pytest.mark.parametrize("exchange", ALL_STREAMS)
def test_a_stream_that_stops_after_an_event_without_a_reason_is_truncated(exchange: JsonObject) -> None:
    events = exchange["response"]["sse"].replace("\r\n", "\n").strip().split("\n\n")
    for count in range(len(events)):
        cut = read(["".join(f"{event}\n\n" for event in events[:count]).encode()])
        assert (cut.error, cut.retryable) == ("truncated", True)


# Streams of our own


def own(name: str) -> Outcome:
    return read([own_stream("gemini", f"{name}.sse")])


def test_signed_parts_stand_alone_and_the_others_are_joined() -> None:
    assert own("signed_calls") == Outcome(
        (
            ThinkingContent("**Plan**\n\nList first. Then read."),
            TextContent("Größe der Dateien 📏"),
            ToolCall("fc-1", "ls", '{"path": "src"}', {"thoughtSignature": "c2lnbmVk/+=="}),
            ToolCall("fc-2", "read", '{"path": "ä.txt", "limit": 3}'),
            TextContent("", {"thoughtSignature": "dGFpbA=="}),
        ),
        "tool_use",
        Usage(40, 35, 80, 0),
        "resp-1",
        "gemini-3-sample",
    )


def test_arguments_in_pieces_are_put_together_by_their_paths() -> None:
    edited = {
        "path": "src/a.py",
        "edits": [{"old": "x = 1\n", "new": ""}, {"old": 7, "new": None}],
        "sure": False,
    }
    assert own("arguments_in_pieces") == Outcome(
        (
            ToolCall("", "edit", json.dumps(edited), {"thoughtSignature": "c2ln"}),
            ToolCall("", "ls", "{}"),
            ToolCall("", "read", '{"path": "b"}'),
        ),
        "tool_use",
        Usage(26, 23),
        "resp-2",
    )


def test_an_error_in_a_list_of_one_ends_the_stream_and_keeps_what_came() -> None:
    assert own("error_after_text") == Outcome(
        (TextContent("Half an"),), "error", Usage(7, 3), "resp-3", error="overloaded", retryable=True
    )


def test_text_after_a_signed_part_is_another_part_and_the_latest_counts_stay() -> None:
    assert own("long_thought") == Outcome(
        (TextContent("First", {"thoughtSignature": "QQ=="}), TextContent(" and second.")), "length", Usage(257, 4)
    )


# How a message ends


@pytest.mark.parametrize(
    ("reason", "kind", "retryable"),
    [
        ("MALFORMED_FUNCTION_CALL", "bad_call", True),
        ("UNEXPECTED_TOOL_CALL", "bad_call", True),
        ("TOO_MANY_TOOL_CALLS", "bad_call", True),
        ("SAFETY", "refused", False),
        ("RECITATION", "refused", False),
        ("PROHIBITED_CONTENT", "refused", False),
        ("OTHER", "server", True),
        ("MOONRISE", "malformed", False),
    ],
)
def test_reasons_that_are_failures_whatever_came_before(reason: str, kind: FailureKind, retryable: bool) -> None:
    called = (ToolCall("", "ls", "{}"),)
    assert read([stream(chunk(call("ls"), reason=reason))]) == Outcome(called, "error", error=kind, retryable=retryable)


def test_a_bad_call_without_content_says_what_the_server_said() -> None:
    candidate = {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(ls())"}
    with pytest.raises(ApiError, match=r"MALFORMED_FUNCTION_CALL.*print\(ls"):
        list(read_stream(iter([stream({"candidates": [candidate]})]), Assembly()))


def test_a_blocked_prompt_is_refused_with_its_reason() -> None:
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": "not this"}
    blocked = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}}
    for outcome in (read([stream(blocked)]), read_whole(blocked)):
        assert outcome == Outcome((), "error", Usage(4, 0), error="refused", retryable=False)
    with pytest.raises(ApiError, match=r"SAFETY.*not this"):
        list(read_stream(iter([stream(blocked)]), Assembly()))


@pytest.mark.parametrize(
    "nothing",
    [b"", b"\n\n", b": ping\n\n", stream(chunk(reason="STOP")), stream({"candidates": [{"finishReason": "STOP"}]})],
)
def test_nothing_is_never_an_answer(nothing: bytes) -> None:
    outcome = read([nothing])
    assert (outcome.content, outcome.stop_reason, outcome.retryable) == ((), "error", True)


def test_a_model_that_only_thought_is_quoted() -> None:
    with pytest.raises(ApiError, match="it is 42"):
        list(read_stream(iter([stream(chunk({"text": "it is 42", "thought": True}, reason="STOP"))]), Assembly()))


def test_what_is_cut_off_once_stays_cut_off_and_is_read_to_the_end() -> None:
    data = stream(chunk({"text": "hi"}, reason="MAX_TOKENS"), chunk({"text": "!"}, reason="STOP"))
    assert read([data]) == Outcome((TextContent("hi!"),), "length")


# Calls


def test_calls_keep_the_ids_that_came_and_get_none_that_did_not() -> None:
    data = stream(chunk(call("ls", id="x"), call("ls", id="x"), call("ls"), call("ls", args=None), reason="STOP"))
    assert read([data]).content == (
        ToolCall("x", "ls", "{}"),
        ToolCall("x", "ls", "{}"),
        ToolCall("", "ls", "{}"),
        ToolCall("", "ls", "{}"),
    )


def test_the_end_of_a_call_may_be_missing_before_the_next_and_at_the_end() -> None:
    begin = {"functionCall": {"name": "ls", "willContinue": True}}
    data = stream(
        chunk(begin, piece({"jsonPath": "$.path", "stringValue": "a"})),
        chunk(begin, piece({"jsonPath": "$.path", "stringValue": "b"})),
        chunk({"text": "done"}, reason="STOP"),
    )
    assert read([data]).content == (
        ToolCall("", "ls", '{"path": "a"}'),
        ToolCall("", "ls", '{"path": "b"}'),
        TextContent("done"),
    )


def test_a_text_whose_end_never_came_is_no_argument() -> None:
    begin = {"functionCall": {"name": "bash", "willContinue": True}}
    half = piece({"jsonPath": "$.command", "stringValue": "rm -rf /", "willContinue": True})
    ends: list[JsonObject] = [{"functionCall": {}}, call("ls"), {"text": "ok"}]
    for end in ends:
        outcome = read([stream(chunk(begin), chunk(half), chunk(end, reason="STOP"))])
        assert (outcome.error, outcome.retryable) == ("malformed", True)
    assert read([stream(chunk(begin), chunk(half, reason="MAX_TOKENS"))]).stop_reason == "length"


@pytest.mark.parametrize(
    "nameless",
    [{"args": {"a": 1}}, {"partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]}],
)
def test_a_piece_of_a_call_that_never_began_is_broken(nameless: JsonObject) -> None:
    outcome = read([stream(chunk({"text": "hi"}, {"functionCall": nameless}, reason="STOP"))])
    assert (outcome.error, outcome.retryable) == ("malformed", True)


def test_a_second_end_of_a_call_says_nothing_new() -> None:
    data = stream(chunk(call("ls"), {"functionCall": {}}, {"functionCall": {"willContinue": False}}, reason="STOP"))
    assert read([data]).content == (ToolCall("", "ls", "{}"),)


def test_parts_of_unknown_kinds_are_skipped() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    assert read([stream(chunk(code, {"inlineData": {}}, "text", None, 7, {"text": "hi"}, reason="STOP"))]) == Outcome(
        (TextContent("hi"),), "stop"
    )


# Usage


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ([{"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}], Usage(10, 12)),
        ([{"promptTokenCount": 10, "cachedContentTokenCount": 8}], Usage(2, 0, 8)),
        ([{"promptTokenCount": 10, "cachedContentTokenCount": 80}], Usage(0, 0, 80)),
        ([{"promptTokenCount": 10, "toolUsePromptTokenCount": 3, "candidatesTokenCount": 1}], Usage(13, 1)),
        ([{"promptTokenCount": 10, "candidatesTokenCount": 5}, {"trafficType": "ON_DEMAND"}], Usage(10, 5)),
        ([{"promptTokenCount": 10, "candidatesTokenCount": 5}, {"promptTokenCount": 0}], Usage(10, 5)),
        ([{"promptTokenCount": 55}, {"promptTokenCount": 257, "candidatesTokenCount": 2}], Usage(257, 2)),
        ([{"promptTokenCount": -1, "candidatesTokenCount": "many", "thoughtsTokenCount": True}], None),
        ([{"trafficType": "ON_DEMAND"}, None, [7]], None),
    ],
)
def test_usage_counts_the_whole_message_and_nothing_twice(told: list[Json], usage: Usage | None) -> None:
    chunks = [chunk({"text": "hi"}, reason="STOP", usageMetadata=metadata) for metadata in told]
    assert read([stream(*chunks)]).usage == usage


# Whole answers


def test_a_whole_answer_and_a_list_of_chunks_are_read_as_a_stream_is() -> None:
    first, last = chunk({"text": "hi "}, responseId="r"), chunk({"text": "there"}, reason="STOP", modelVersion="m")
    assert read_whole([first, last]) == read([stream(first, last)])
    rated = {**last, "promptFeedback": {"safetyRatings": []}}
    assert read_whole(rated) == Outcome((TextContent("there"),), "stop", model="m")


@pytest.mark.parametrize("body", [None, [], "hi", 7, {}, {"choices": []}, [1], {"output": []}])
def test_what_is_no_answer_is_a_failure_that_stays(body: Json) -> None:
    assert (read_whole(body).error, read_whole(body).retryable) == ("malformed", False)


def test_an_error_in_a_list_of_one_is_an_error() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.837906927s"}]
    error = {"code": 429, "message": "slower", "status": "RESOURCE_EXHAUSTED", "details": details}
    with pytest.raises(ApiError, match="slower") as caught:
        list(read_answer([{"error": error}], Assembly()))
    assert (caught.value.kind, caught.value.retryable, caught.value.retry_after_s) == ("rate_limit", True, 45.837906927)


# Whatever it is


@pytest.mark.parametrize("depth", [90, 300, 900, 100_000])
@pytest.mark.parametrize("more", ["", ',"willContinue":true'])
def test_deep_arguments_are_no_crash(depth: int, more: str) -> None:
    part = f'{{"functionCall":{{"name":"a","args":{deep_json(depth)}{more}}}}}'
    read([f'data: {{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}\n\n'.encode()])


PATHS = st.sampled_from(["$.a", "$.a[0]", "$.a[0].b", "$['a']", "$.a[1]", "$", "", "$.a[999999]", "$..", "$.b", "a"])
PARTIAL = st.fixed_dictionaries(
    {},
    optional={
        "jsonPath": PATHS | JSON,
        "stringValue": st.text(max_size=3) | JSON,
        "numberValue": JSON,
        "boolValue": JSON,
        "nullValue": JSON,
        "willContinue": st.booleans() | JSON,
    },
)
CALL = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["", "ls"]) | JSON,
        "id": st.sampled_from(["", "x"]) | JSON,
        "args": JSON,
        "partialArgs": st.lists(PARTIAL | JSON, max_size=3) | JSON,
        "willContinue": st.booleans() | JSON,
    },
)
PART = st.fixed_dictionaries(
    {}, optional={"text": JSON, "thought": JSON, "thoughtSignature": JSON, "functionCall": CALL | JSON}
)
CANDIDATE = st.fixed_dictionaries(
    {},
    optional={
        "content": st.fixed_dictionaries({"parts": st.lists(PART | JSON, max_size=3) | JSON}) | JSON,
        "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY"]) | JSON,
        "finishMessage": JSON,
    },
)
CHUNK = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(CANDIDATE | JSON, max_size=2) | JSON,
        "promptFeedback": st.fixed_dictionaries({"blockReason": JSON}) | JSON,
        "usageMetadata": st.dictionaries(st.sampled_from(["promptTokenCount", "cachedContentTokenCount"]), JSON) | JSON,
        "responseId": JSON,
        "modelVersion": JSON,
        "error": JSON,
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CHUNK | JSON, max_size=5))
def test_no_json_makes_it_raise_anything_but_an_api_error(chunks: list[Json]) -> None:
    outcomes = [read([stream(*chunks)]), read_whole(chunks), *(read_whole(chunk) for chunk in chunks)]
    assert all(outcome.stop_reason is not None for outcome in outcomes)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"data: ", b"{}", b"\n\n", b'{"candidates":[']), max_size=8))
def test_no_bytes_make_it_raise_anything_but_an_api_error(chunks: list[bytes]) -> None:
    assert read(chunks).error is not None


# Cost


def test_a_delta_carries_only_what_is_new() -> None:
    def length(deltas: int) -> int:
        chunks = [chunk({"text": "y"})] * deltas
        events = list(read_stream(iter([stream(*chunks, chunk({"text": "."}, reason="STOP"))]), Assembly()))
        return sum(len(event.delta) for event in events if isinstance(event, ContentDelta))

    assert length(1000) - length(100) == 900


def test_a_text_in_many_pieces_is_copied_once() -> None:
    pieces = [{"jsonPath": "$.text", "stringValue": "y", "willContinue": True}] * 5_000
    begin = {"functionCall": {"name": "write", "willContinue": True}}
    end = {"jsonPath": "$.text", "stringValue": "."}
    data = stream(
        chunk(begin), *(chunk(piece(each)) for each in pieces), chunk(piece(end, goes_on=False), reason="STOP")
    )
    assert read([data]).content == (ToolCall("", "write", json.dumps({"text": "y" * 5_000 + "."})),)
