"""Streams and answers of servers that speak Chat Completions, recorded ones and ones written for each quirk."""

import json
import re
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
    outcome_of,
    own_stream,
    own_streams,
    recorded_answers,
    recorded_streams,
)

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta
from ci_agent.providers.openai_chat.response import read_answer, read_stream
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.failures import ApiError, FailureKind
from ci_agent.providers.wire.sse import read_json_events


def read(chunks: Sequence[bytes], *, limit: int | None = None) -> Outcome:
    return outcome_of(read_stream, iter(chunks), limit=limit)


def read_whole(body: Json) -> Outcome:
    return outcome_of(read_answer, body)


def stream(*chunks: Json, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def delta(fields: JsonObject, reason: str | None = None, **more: Json) -> JsonObject:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": reason}], **more}


# Recorded traffic


STREAMS = recorded_streams("openai-chat")
ALL_STREAMS = [*STREAMS, *own_streams("openai_chat")]


def assert_is_as_expected(outcome: Outcome, expected: JsonObject) -> None:
    assert_says(outcome, expected)
    assert (outcome.response_id, outcome.model) == (expected["response_id"], expected["model"])
    assert outcome.usage == expected_usage(expected["usage"], expected["usage_raw"])
    error = expected["error"]
    assert (outcome.error is None) == (error is None)
    if error is not None:
        assert outcome.retryable == error["retryable"]


def expected_usage(usage: JsonObject | None, raw: JsonObject | None) -> Usage | None:
    if usage is None or raw is None:
        return None
    return Usage(
        input_tokens=usage["input"],
        output_tokens=usage["output"],
        cache_read_tokens=usage["cache_read"],
        cache_write_tokens=usage["cache_write"],
        cost_usd=raw.get("cost"),
    )


@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read([body_of(exchange)]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded_answers("openai-chat"))
def test_a_recorded_answer_gives_its_message(exchange: JsonObject) -> None:
    assert_is_as_expected(read_whole(exchange["response"]["json"]), exchange["expected"])


@pytest.mark.parametrize("exchange", recorded_answers("openai-chat", failed=True))
def test_a_recorded_failure_is_one(exchange: JsonObject) -> None:
    assert (read_whole(exchange["response"]["json"]).error, read_whole(exchange["response"]["json"]).retryable) == (
        "request",
        False,
    )


# However it is cut


@pytest.mark.parametrize("exchange", ALL_STREAMS)
def test_how_a_stream_is_split_changes_nothing(exchange: JsonObject) -> None:
    assert_splits_change_nothing(read, body_of(exchange))
    assert_line_ends_change_nothing(read, body_of(exchange))


def assert_same_or_to_be_tried_again(cut: Outcome, whole: Outcome) -> None:
    if cut.error is not None:
        assert cut.retryable or cut.error == whole.error
    elif whole.error is None:
        assert (cut.content, cut.stop_reason) == (whole.content, whole.stop_reason)
    else:
        assert cut.stop_reason == "length", "the error came after the message"


@pytest.mark.parametrize("exchange", own_streams("openai_chat"))
def test_a_stream_cut_anywhere_is_the_same_message_or_a_failure_to_try_again(exchange: JsonObject) -> None:
    data = body_of(exchange)
    whole = read([data])
    for end in range(len(data)):
        assert_same_or_to_be_tried_again(read([data[:end]]), whole)


@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_stream_cut_between_events_is_the_same_message_or_a_failure_to_try_again(
    exchange: JsonObject,
) -> None:
    data = body_of(exchange)
    whole = read([data])
    for match in re.finditer(rb"\n\n", data):
        assert_same_or_to_be_tried_again(read([data[: match.end()]]), whole)


@pytest.mark.parametrize("exchange", STREAMS)
def test_a_recorded_event_cut_at_any_byte_is_the_whole_event_or_none_or_a_failure(exchange: JsonObject) -> None:
    """With the test before it: a stream cut at any byte gives its message or a failure to try again."""
    for event in re.split(rb"(?<=\n\n)", body_of(exchange)):
        whole = list(read_json_events(iter([event])))
        for end in range(len(event)):
            assert events_in(event[:end]) in ([], whole, ("malformed", True))


def events_in(data: bytes) -> list[tuple[str, JsonObject]] | tuple[FailureKind, bool]:
    try:
        return list(read_json_events(iter([data])))
    except ApiError as error:
        return error.kind, error.retryable


# Streams of our own


def own(name: str) -> bytes:
    return own_stream("openai_chat", f"{name}.sse")


def test_parallel_calls_come_with_their_text_and_cached_tokens() -> None:
    assert read([own("parallel_calls")]) == Outcome(
        (
            TextContent("Größe der Dateien 📏"),
            ToolCall("call_a", "ls", '{"path": "src"}'),
            ToolCall("call_b", "read", '{"path": "ä.txt"}'),
        ),
        "tool_use",
        Usage(36, 20, 64, 0),
        "chat-1",
        "sample-1",
    )


def test_thinking_in_two_fields_is_read_once_and_its_details_are_kept_whole() -> None:
    details = [
        {"type": "reasoning.text", "text": "Let me see.", "format": "sample-v1", "index": 0, "signature": "c2lnbmVk"}
    ]
    assert read([own("thinking_details")]) == Outcome(
        (ThinkingContent("Let me see.", {"field": "reasoning", "reasoning_details": details}), TextContent("Done.")),
        "stop",
        Usage(20, 9, 20, 10),
        "gen-1",
        "maker/sample",
    )


def test_a_local_server_may_leave_out_nearly_everything() -> None:
    assert read([own("local_server")]) == Outcome(
        (TextContent("Look"), ToolCall("", "ls", '{"path": "."}'), ToolCall("", "ls", '{"path": "a"}')),
        "tool_use",
        None,
        "x-9",
        "tiny",
    )


def test_an_error_outweighs_an_earlier_reason_and_keeps_text_and_usage() -> None:
    assert read([own("error_after_text")]) == Outcome(
        (TextContent("Half an"),), "error", Usage(7, 3), "chat-2", "sample-1", "server", retryable=True
    )


# How a message ends


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("stop", "stop"),
        ("end", "stop"),
        ("eos", "stop"),
        ("STOP", "stop"),
        ("length", "length"),
        ("model_length", "length"),
    ],
)
def test_reasons_of_many_servers_mean_the_same(reason: str, stop_reason: StopReason) -> None:
    assert read([stream(delta({"content": "hi"}, reason), done=False)]) == Outcome(
        (TextContent("hi"),), stop_reason, None
    )


@pytest.mark.parametrize(
    ("reason", "kind", "retryable"),
    [
        ("content_filter", "refused", False),
        ("error", "server", True),
        ("network_error", "server", True),
        ("insufficient_system_resource", "overloaded", True),
        ("model_context_window_exceeded", "overflow", False),
        ("moonrise", "malformed", False),
    ],
)
def test_reasons_that_are_failures(reason: str, kind: FailureKind, retryable: bool) -> None:
    assert read([stream(delta({"content": "hi"}, reason), done=True)]) == Outcome(
        (TextContent("hi"),), "error", None, error=kind, retryable=retryable
    )


def test_an_unknown_reason_is_quoted() -> None:
    with pytest.raises(ApiError, match="moonrise"):
        list(read_stream(iter([stream(delta({"content": "hi"}, "moonrise"))]), Assembly()))


def test_without_a_reason_the_end_of_the_stream_says_that_it_is_over() -> None:
    assert read([stream(delta({"content": "hi"}))]) == Outcome((TextContent("hi"),), "stop", None)


def test_without_a_reason_usage_after_the_last_choice_says_that_it_is_over() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    assert read([stream(delta({"content": "hi"}), usage, done=False)]) == Outcome(
        (TextContent("hi"),), "stop", Usage(1, 2)
    )


def test_usage_on_every_chunk_does_not_make_half_a_stream_whole() -> None:
    chunk = delta({"content": "hi"}, usage={"prompt_tokens": 1, "completion_tokens": 2})
    assert read([stream(chunk, chunk, done=False)]) == Outcome(
        (TextContent("hihi"),), "error", Usage(1, 2), error="truncated", retryable=True
    )


def test_usage_before_the_message_does_not_make_half_of_it_whole() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 0}}
    assert read([stream(usage, delta({"content": "hi"}), done=False)]).error == "truncated"


@pytest.mark.parametrize("nothing", [b"", b"\n\n", b": ping\n\n", stream(), stream(delta({"content": ""}, "stop"))])
def test_nothing_is_never_an_answer(nothing: bytes) -> None:
    outcome = read([nothing])
    assert (outcome.content, outcome.stop_reason, outcome.retryable) == ((), "error", True)


def test_half_a_call_at_the_limit_makes_the_turn_one_that_was_cut() -> None:
    call = {"index": 0, "id": "x", "function": {"name": "ls", "arguments": '{"pa'}}
    usage = {"prompt_tokens": 1, "completion_tokens": 16}
    data = stream(delta({"tool_calls": [call]}, "tool_calls", usage=usage))
    assert read([data], limit=16).stop_reason == "length"
    assert read([data], limit=17).stop_reason == "tool_use"


def test_what_is_cut_off_once_stays_cut_off() -> None:
    assert read([stream(delta({"content": "hi"}, "length"), delta({}, "stop"))]).stop_reason == "length"


def test_a_refusal_is_no_answer() -> None:
    assert read([stream(delta({"refusal": "I can"}), delta({"refusal": "not."}, "stop"))]) == Outcome(
        (TextContent("I cannot."),), "error", None, error="refused", retryable=False
    )


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "gone", "code": 500}},
        {"error": "gone", "choices": None},
        {"object": "error", "message": "gone", "code": 500},
        {"choices": [{"delta": {}, "error": {"message": "gone", "code": 500}, "finish_reason": "error"}]},
    ],
)
def test_an_error_in_a_stream_is_one_wherever_it_stands(error: JsonObject) -> None:
    with pytest.raises(ApiError, match="gone"):
        list(read_stream(iter([stream(delta({"content": "hi"}, "stop"), error)]), Assembly()))


def test_a_call_that_the_server_could_not_read_is_to_be_made_again() -> None:
    error = {"message": "no such tool", "code": "tool_use_failed", "status_code": 400, "failed_generation": "<x>"}
    data = b"event: error\n" + stream({"error": error}, done=False)
    assert (read([data]).error, read([data]).retryable) == ("bad_call", True)


# Thinking


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
def test_thinking_remembers_the_field_that_it_came_in(name: str) -> None:
    data = stream(delta({name: "Hm"}), delta({name: "m."}), delta({"content": "hi"}, "stop"))
    assert read([data]).content == (ThinkingContent("Hmm.", {"field": name}), TextContent("hi"))


def test_the_same_thought_in_two_fields_is_thought_once() -> None:
    data = stream(delta({"reasoning_content": "Hm", "reasoning": "Hm", "content": "hi"}, "stop"))
    assert read([data]).content[0] == ThinkingContent("Hm", {"field": "reasoning_content"})


def test_thinking_among_the_items_of_the_content_is_thinking() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    data = stream(
        delta(
            {"content": [thought, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "hi"}]}, "stop"
        )
    )
    assert read([data]).content == (ThinkingContent("Hm", {"field": "content"}), TextContent("hi"))


def test_sealed_thinking_is_kept_without_text() -> None:
    sealed = {"type": "reasoning.encrypted", "data": "QUJD", "index": 0}
    data = stream(delta({"content": "hi", "reasoning_details": [sealed]}, "stop"))
    assert ThinkingContent("", {"reasoning_details": [sealed]}) in read([data]).content


def test_what_google_adds_to_calls_is_kept_with_them() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "", "function": {"name": "ls", "arguments": ""}, "extra_content": extra}
    assert read([stream(delta({"tool_calls": [call]}, "tool_calls"))]).content == (
        ToolCall("", "ls", "{}", {"extra_content": extra}),
    )


def test_a_model_that_only_thought_is_quoted() -> None:
    with pytest.raises(ApiError, match="it is 42"):
        list(read_stream(iter([stream(delta({"reasoning": "it is 42"}, "stop"))]), Assembly()))


# Usage


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, Usage(10, 5)),
        ({"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}, Usage(35, 74)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8}, Usage(2, 5, 8)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "num_cached_tokens": 8}, Usage(2, 5, 8)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_token_details": {"cached_tokens": 8}}, Usage(2, 5, 8)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 40},
                "total_tokens": 55,
            },
            Usage(10, 5, 40),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}},
            Usage(10, 5),
        ),
        ({"completion_tokens": 5, "total_tokens": 15}, Usage(10, 5)),
        ({"prompt_tokens": -1, "completion_tokens": "many", "total_tokens": True}, None),
        ({}, None),
        (None, None),
        ([7], None),
    ],
)
def test_usage_is_read_from_where_servers_put_it(told: Json, usage: Usage | None) -> None:
    assert read([stream(delta({"content": "hi"}, "stop"), {"choices": [], "usage": told})]).usage == usage


def test_usage_may_stand_in_the_choice_or_beside_it() -> None:
    counts = {"prompt_tokens": 3, "completion_tokens": 4}
    in_choice = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop", "usage": counts}]}
    beside = delta({"content": "hi"}, "stop", x_groq={"usage": counts})
    assert (read([stream(in_choice)]).usage, read([stream(beside)]).usage) == (Usage(3, 4), Usage(3, 4))


# Whole answers


def test_a_whole_answer_is_read_as_a_stream_is() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm",
        "tool_calls": [{"id": "x", "function": {"name": "ls", "arguments": ""}}],
    }
    body = {"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    assert read_whole(body) == Outcome(
        (ThinkingContent("Hm", {"field": "reasoning_content"}), ToolCall("x", "ls", "{}")), "tool_use", None, "c", "m"
    )


@pytest.mark.parametrize("body", [None, [], "hi", 7, {}, {"choices": []}, {"choices": [1]}, {"output": []}])
def test_what_is_no_completion_is_a_failure_that_stays(body: Json) -> None:
    assert (read_whole(body).error, read_whole(body).retryable) == ("malformed", False)


def test_an_error_in_a_list_of_one_is_an_error() -> None:
    with pytest.raises(ApiError, match="gone"):
        list(read_answer([{"error": {"message": "gone", "code": 500}}], Assembly()))


# Whatever it is


@pytest.mark.parametrize("depth", [90, 900, 100_000])
def test_deep_json_anywhere_is_no_crash(depth: int) -> None:
    fields = (
        '"content"',
        '"reasoning_details":[{}],"extra_content"',
        '"tool_calls":[{"function":{"name":"a","arguments"',
    )
    for before, after in zip(fields, ("", "", "}}]"), strict=True):
        chunk = f'data: {{"choices":[{{"delta":{{{before}:{deep_json(depth)}{after}}},"finish_reason":"stop"}}]}}\n\n'
        read([chunk.encode()])


FIELDS = (
    "content reasoning reasoning_content reasoning_details refusal tool_calls function_call extra_content role "
    "type text thinking index id function name arguments data summary signature"
)
SHAPED = st.recursive(
    JSON | st.sampled_from(["text", "thinking", "{}", "", "null", 0, 1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=4),
    max_leaves=12,
)
CHOICE = st.fixed_dictionaries(
    {},
    optional={"delta": SHAPED, "message": SHAPED, "finish_reason": JSON, "index": JSON, "error": JSON, "usage": JSON},
)
CHUNK = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICE, max_size=2) | JSON,
        "id": JSON,
        "model": JSON,
        "usage": st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens"]), JSON) | JSON,
        "error": JSON,
        "object": JSON,
        "x_groq": JSON,
    },
)


@settings(max_examples=300, deadline=None)
@given(st.lists(CHUNK | JSON, max_size=5))
def test_no_json_makes_it_raise_anything_but_an_api_error(chunks: list[Json]) -> None:
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    for whole in (read([data]), *(read_whole(chunk) for chunk in chunks)):
        assert whole.stop_reason is not None


# Cost


def cost_of(deltas: int) -> int:
    """How many characters are held, joined or copied: counted by what the message is made of."""
    call = {"index": 0, "id": "x", "function": {"name": "ls", "arguments": '{"a":"'}}
    more = [delta({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "ls", "arguments": "y"}}]})] * deltas
    chunks = [
        delta({"tool_calls": [call]}),
        *more,
        delta({"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]}, "stop"),
    ]
    events = list(read_stream(iter([stream(*chunks)]), Assembly()))
    return sum(len(event.delta) for event in events if isinstance(event, ContentDelta))


def test_a_delta_carries_only_what_is_new() -> None:
    assert cost_of(1000) - cost_of(100) == 900


@pytest.mark.parametrize(
    ("told", "cost"),
    [
        ({"cost": 0.0125}, 0.0125),
        ({"cost": 0}, 0.0),
        ({"cost": 0.01, "is_byok": True}, None),
        ({"cost": -1}, None),
        ({"cost": 1e300}, None),
        ({"cost": True}, None),
        ({"cost": "1"}, None),
        ({}, None),
    ],
)
def test_a_cost_that_the_server_tells_is_taken(told: JsonObject, cost: float | None) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, **told}}
    assert read([stream(delta({"content": "hi"}, "stop"), usage)]).usage == Usage(1, 2, cost_usd=cost)
