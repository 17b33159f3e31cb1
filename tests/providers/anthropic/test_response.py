"""Streams and answers of the Messages API, recorded ones and ones written for each quirk."""

import json
from collections.abc import Sequence

import pytest
from any_json import json_of
from hypothesis import given
from hypothesis import strategies as st
from recorded_streams import (
    Outcome,
    assert_cuts_are_failures,
    assert_line_ends_change_nothing,
    assert_says,
    assert_splits_change_nothing,
    body_of,
    error_of,
    outcome_of,
    own_stream,
    recorded_answers,
    recorded_streams,
    usage_of,
)

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import AssistantContent, StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.providers.anthropic.api import create_anthropic_api
from ci_agent.providers.anthropic.response import read_answer, read_stream
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.failures import ApiError, FailureKind

EVERYTHING = own_stream("anthropic", "everything.sse")


def read(*chunks: bytes) -> Outcome:
    return outcome_of(read_stream, iter(chunks))


def read_chunks(chunks: Sequence[bytes]) -> Outcome:
    return read(*chunks)


def read_whole(body: Json) -> Outcome:
    return outcome_of(read_answer, body)


def stream(*events: JsonObject) -> bytes:
    return "".join(f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n" for event in events).encode(
        "utf-8", "replace"
    )


def begin(id_: str = "msg_1") -> JsonObject:
    return {"type": "message_start", "message": {"id": id_, "model": "m", "usage": {"input_tokens": 3}}}


def block(index: int, **fields: Json) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index: int, kind: str, **fields: Json) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def end(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def finish(reason: str | None = "end_turn", **more: Json) -> tuple[JsonObject, JsonObject]:
    told = {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": {"output_tokens": 5}}
    return told, {"type": "message_stop"}


def text_message(*rest: JsonObject) -> bytes:
    said = (block(0, type="text", text=""), delta(0, "text_delta", text="Hi."), end(0))
    return stream(begin(), *said, *(rest or finish()))


HI = Outcome((TextContent("Hi."),), "stop", Usage(3, 5), "msg_1", "m")

ALL_OF_IT = Outcome(
    (
        ThinkingContent("Two files — schön ⃣.", {"signature": "c2lnbmF0dXJl+/=="}),
        ThinkingContent("", {"block": {"type": "redacted_thinking", "data": "b3BhcXVl"}}),
        TextContent("I will read both."),
        ThinkingContent(
            "",
            {"block": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}},
        ),
        ThinkingContent("", {"block": {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}}),
        ToolCall("toolu_a", "read", '{"path": "a.txt"}'),
        ToolCall("toolu_b", "ls", "{}"),
    ),
    "tool_use",
    Usage(input_tokens=12, output_tokens=55, cache_read_tokens=100, cache_write_tokens=7),
    "msg_1",
    "claude-test-5",
)


# A stream with everything in it, cut and split


def test_every_kind_of_block_becomes_a_part() -> None:
    assert read(EVERYTHING) == ALL_OF_IT


def test_a_stream_may_be_split_between_any_two_bytes() -> None:
    for at in range(len(EVERYTHING)):
        assert read(EVERYTHING[:at], EVERYTHING[at:]) == ALL_OF_IT


def test_neither_splits_nor_line_ends_nor_a_byte_order_mark_matter() -> None:
    assert_splits_change_nothing(read_chunks, EVERYTHING)
    assert_line_ends_change_nothing(read_chunks, EVERYTHING)


def test_a_stream_cut_at_any_byte_is_a_failure_that_may_be_retried_or_the_same_message() -> None:
    assert_cuts_are_failures(read_chunks, EVERYTHING)


# Recorded traffic


STREAMS = recorded_streams("anthropic-messages")
ANSWERS = recorded_answers("anthropic-messages")


def expected_of(record: JsonObject, outcome: Outcome) -> None:
    """Compare an outcome with what the recording says it means."""
    expected = record["expected"]
    assert_says(outcome, expected)
    if expected["error"] is None:
        assert [seen for part in outcome.content if (seen := as_block(part)) is not None] == expected["blocks"]
    assert (outcome.error is None) == (expected["error"] is None)
    assert (outcome.response_id, outcome.model) == (expected["response_id"], expected["model"])
    assert outcome.usage == usage_of(expected)
    assert (outcome.retryable or False) == bool(expected["error"] and expected["error"]["retryable"])


def as_block(part: AssistantContent) -> JsonObject | None:
    match part:
        case TextContent():
            return {"type": "text", "text": part.text}
        case ThinkingContent():
            return None if part.replay and "block" in part.replay else {"type": "thinking", "text": part.text}
        case ToolCall():
            arguments = json.loads(part.arguments_json)
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments}


@pytest.mark.parametrize("record", STREAMS)
def test_a_recorded_stream_gives_its_message(record: JsonObject) -> None:
    expected_of(record, read(body_of(record)))


@pytest.mark.parametrize("record", ANSWERS)
def test_a_recorded_answer_gives_its_message(record: JsonObject) -> None:
    expected_of(record, read_whole(record["response"]["json"]))


@pytest.mark.parametrize("record", ANSWERS)
def test_the_signature_of_recorded_thinking_is_kept_byte_for_byte(record: JsonObject) -> None:
    signed = [block["signature"] for block in record["response"]["json"]["content"] if "signature" in block]
    parts = read_whole(record["response"]["json"]).content
    assert [part.replay for part in parts if part.replay] == [{"signature": signature} for signature in signed]


@pytest.mark.parametrize("record", recorded_answers("anthropic-messages", failed=True))
def test_a_recorded_error_is_final(record: JsonObject) -> None:
    error = error_of(record)
    assert (error.kind, error.retryable, error.status) == ("request", False, 404)
    assert "claude-sonet-4-5" in error.message


@pytest.mark.parametrize("record", STREAMS)
def test_a_recorded_stream_may_be_split_anywhere(record: JsonObject) -> None:
    assert_splits_change_nothing(read_chunks, body_of(record))
    assert_line_ends_change_nothing(read_chunks, body_of(record))


@pytest.mark.slow
@pytest.mark.parametrize("record", STREAMS)
def test_a_recorded_stream_cut_at_any_byte_never_gives_another_message(record: JsonObject) -> None:
    data = body_of(record)
    if read(data).error is None:
        assert_cuts_are_failures(read_chunks, data)
    else:
        assert all(read(data[:end]).error is not None for end in range(len(data)))


# How a message ends


@pytest.mark.parametrize(
    ("reason", "means"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "stop"),  # though it calls nothing
        (None, "stop"),
    ],
)
def test_each_reason_has_its_meaning(reason: str | None, means: StopReason) -> None:
    assert read(text_message(*finish(reason))).stop_reason == means


@pytest.mark.parametrize(
    ("reason", "kind", "said"),
    [
        ("refusal", "refused", "declined to answer (refusal): Not this."),
        ("sensitive", "refused", "declined"),
        ("pause_turn", "request", "paused"),
        ("brand_new", "malformed", "'brand_new'"),
    ],
)
def test_reasons_that_are_failures_are_final_and_keep_the_usage(reason: str, kind: FailureKind, said: str) -> None:
    outcome = read(text_message(*finish(reason, stop_details={"explanation": "Not this."})))
    assert (outcome.error, outcome.retryable, outcome.usage) == (kind, False, Usage(3, 5))
    assert outcome.problem is not None
    assert said in outcome.problem


def test_a_call_makes_the_turn_one_of_calls_whatever_the_reason_says() -> None:
    call = (block(0, type="tool_use", id="t", name="ls", input={}), end(0))
    outcome = read(stream(begin(), *call, *finish("end_turn")))
    assert (outcome.stop_reason, outcome.content) == ("tool_use", (ToolCall("t", "ls", "{}"),))


def test_done_ends_a_message_of_a_proxy_that_knows_no_message_stop() -> None:
    told, _ = finish()
    assert read(text_message(told) + b"data: [DONE]\n\n") == HI


@pytest.mark.parametrize("data", [b"", b": hello\n\n", b"event: ping\ndata: {}\n\n", text_message({"type": "ping"})])
def test_a_stream_without_its_end_may_be_retried(data: bytes) -> None:
    outcome = read(data)
    assert (outcome.error, outcome.retryable) == ("truncated", True)


def test_a_message_that_says_nothing_is_no_answer() -> None:
    outcome = read(stream(begin(), *finish()))
    assert (outcome.error, outcome.retryable) == ("empty", True)


def test_what_follows_the_end_is_not_read() -> None:
    assert read(text_message() + b"data: junk\n\n") == HI


# Streams that contradict themselves


def test_a_second_message_in_the_stream_is_a_failure() -> None:
    outcome = read(stream(begin(), block(0, type="text", text="a"), end(0), begin("msg_2"), *finish()))
    assert (outcome.error, outcome.retryable) == ("malformed", True)


def test_the_same_beginning_again_is_nothing_new() -> None:
    assert read(text_message(begin(), *finish())) == HI


@pytest.mark.parametrize(
    "events",
    [
        (block(0, type="tool_use", id="t", name="rm", input={}), *finish("tool_use")),
        (
            block(0, type="tool_use", id="t", name="rm", input={}),
            delta(0, "input_json_delta", partial_json="{}"),
            *finish("tool_use"),
        ),
        (delta(0, "input_json_delta", partial_json="{}"), *finish("tool_use")),
        (block(0, type="text", text="a"), block(0, type="text", text="b"), *finish()),
        (block(0, type="tool_use", id="t", input={}), end(0), *finish("tool_use")),
        ({"type": "content_block_start", "content_block": {"type": "text", "text": "a"}}, *finish()),
        (
            block(0, type="server_tool_use", id="s", name="x"),
            delta(0, "input_json_delta", partial_json='{"a'),
            end(0),
            *finish(),
        ),
    ],
)
def test_a_contradiction_is_a_failure_that_may_be_retried(events: tuple[JsonObject, ...]) -> None:
    outcome = read(stream(begin(), *events))
    assert (outcome.error, outcome.retryable) == ("malformed", True)


def test_a_call_that_was_cut_by_the_limit_stays_what_it_was() -> None:
    half = (block(0, type="tool_use", id="t", name="rm", input={}), delta(0, "input_json_delta", partial_json='{"a'))
    outcome = read(stream(begin(), *half, *finish("max_tokens")))
    assert (outcome.stop_reason, outcome.content) == ("length", (ToolCall("t", "rm", '{"a'),))


# Blocks


def test_input_that_comes_with_the_beginning_counts_when_no_pieces_follow() -> None:
    whole = block(0, type="tool_use", id="t", name="ls", input={"path": "ö"})
    assert read(stream(begin(), whole, end(0), *finish())).content == (ToolCall("t", "ls", '{"path": "ö"}'),)
    pieces = delta(0, "input_json_delta", partial_json='{"path": "b"}')
    assert read(stream(begin(), whole, pieces, end(0), *finish())).content == (ToolCall("t", "ls", '{"path": "b"}'),)


def test_a_signature_without_any_text_is_kept() -> None:
    hidden = (
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="s="),
        end(0),
    )
    said = (block(1, type="text", text="Hi."), end(1))
    outcome = read(stream(begin(), *hidden, *said, *finish()))
    assert outcome.content == (ThinkingContent("", {"signature": "s="}), TextContent("Hi."))


def test_the_signature_of_thinking_that_no_server_would_read_is_not_kept() -> None:
    torn = (block(0, type="thinking", thinking="\ud800", signature="s="), end(0))
    said = (block(1, type="text", text="Hi."), end(1))
    assert read(stream(begin(), *torn, *said, *finish())).content[0] == ThinkingContent("\ud800")


def test_citations_are_kept_with_their_text() -> None:
    cited = (
        block(0, type="text", text="", citations=[]),
        delta(0, "text_delta", text="Hi."),
        delta(0, "citations_delta", citation={"url": "u"}),
        end(0),
    )
    outcome = read(stream(begin(), *cited, *finish()))
    assert outcome.content == (TextContent("Hi.", {"citations": [{"url": "u"}]}),)


def test_blocks_that_share_a_number_one_after_another_are_several() -> None:
    texts = [event for text in ("a", "b") for event in (block(0, type="text", text=text), end(0))]
    assert read(stream(begin(), *texts, *finish())).content == (TextContent("a"), TextContent("b"))


def test_unknown_events_and_deltas_are_skipped() -> None:
    odd = ({"type": "done"}, block(0, type="text", text="Hi."), delta(0, "new_delta", text="x"), end(0), end(9))
    assert read(stream(begin(), *odd, *finish())) == HI


def test_counts_that_are_no_counts_are_ignored() -> None:
    told: JsonObject = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": -1, "output_tokens": 5, "cache_read_input_tokens": "7"},
    }
    assert read(text_message(told, {"type": "message_stop"})) == HI


# Errors in the stream, and other formats


@pytest.mark.parametrize(
    ("kind", "means", "retryable", "status"),
    [
        ("overloaded_error", "overloaded", True, 529),
        ("api_error", "server", True, 500),
        ("rate_limit_error", "rate_limit", True, 429),
        ("invalid_request_error", "request", False, 400),
        ("authentication_error", "auth", False, 401),
    ],
)
def test_an_error_event_is_the_failure_that_it_names(
    kind: str, means: FailureKind, retryable: bool, status: int
) -> None:
    event: JsonObject = {"type": "error", "error": {"type": kind, "message": "So it is."}}
    assembly = Assembly()
    with pytest.raises(ApiError, match="So it is") as caught:
        list(read_stream(iter([text_message(event)]), assembly))
    assert (caught.value.kind, caught.value.retryable, caught.value.status) == (means, retryable, status)
    assert assembly.content == (TextContent("Hi."),)


def test_an_error_without_a_type_around_it_is_one_too() -> None:
    outcome = read(b'data: {"error": {"message": "Overloaded", "type": "overloaded_error"}}\n\n')
    assert (outcome.error, outcome.retryable) == ("overloaded", True)


def test_the_format_of_chat_completions_is_named() -> None:
    chunk = b'data: {"object": "chat.completion.chunk", "choices": []}\n\n'
    for outcome in (read(chunk), read_whole({"choices": []})):
        assert (outcome.error, outcome.retryable) == ("malformed", False)
        assert outcome.problem is not None
        assert "/v1/messages" in outcome.problem
        assert "openai-chat" in outcome.problem


@pytest.mark.parametrize("body", [None, [], "text", {}, {"content": None}, {"content": {}}])
def test_an_answer_that_is_no_message_is_a_final_failure(body: Json) -> None:
    outcome = read_whole(body)
    assert (outcome.error, outcome.retryable) == ("malformed", False)


def test_an_error_in_place_of_an_answer_is_the_failure_that_it_names() -> None:
    outcome = read_whole({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}})
    assert (outcome.error, outcome.retryable) == ("overloaded", True)


# Anything at all

WORDS = [
    *("type", "index", "message", "content_block", "delta", "usage", "error", "id", "name", "input", "content"),
    *(
        "text",
        "thinking",
        "signature",
        "tool_use",
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "stop_reason",
    ),
    *(
        "input_json_delta",
        "partial_json",
        "citations",
        "citations_delta",
        "citation",
        "end_turn",
        "server_tool_use",
    ),
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"),
    *("message_stop", "choices", "input_tokens", "", "\ud800"),
]
VALUES = json_of(WORDS)
WORD = st.sampled_from(WORDS)
EVENTS = st.fixed_dictionaries(
    {"type": WORD},
    optional={"index": st.integers(0, 2) | VALUES, "content_block": VALUES, "delta": VALUES, "message": VALUES},
)


@given(st.lists(EVENTS | st.dictionaries(WORD, VALUES, max_size=4), max_size=8))
def test_no_events_make_it_raise_anything_else(events: list[JsonObject]) -> None:
    read(stream(begin(), *events, *finish()))


@given(VALUES | st.fixed_dictionaries({"content": st.lists(VALUES, max_size=3)}, optional={"stop_reason": VALUES}))
def test_no_answer_makes_it_raise_anything_else(body: Json) -> None:
    read_whole(body)


def test_a_key_goes_into_the_header_that_the_server_wants() -> None:
    assert create_anthropic_api().authentication("k") == {"x-api-key": "k"}
    assert create_anthropic_api().authentication("sk-ant-oat01-k") == {"authorization": "Bearer sk-ant-oat01-k"}
