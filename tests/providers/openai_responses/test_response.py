"""Streams and answers of the Responses API, recorded ones and ones written for each quirk."""

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import pytest
from any_json import json_of
from hypothesis import given
from hypothesis import strategies as st
from recorded_streams import (
    Outcome,
    assert_cuts_are_failures,
    assert_line_ends_change_nothing,
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
from ci_agent.messages import AssistantContent, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.providers.openai_responses.api import create_openai_responses_api
from ci_agent.providers.openai_responses.request import ResponsesTraits
from ci_agent.providers.openai_responses.response import read_answer, read_stream
from ci_agent.providers.wire.failures import FailureKind

EVERYTHING = own_stream("openai_responses", "everything.sse")


def read(*chunks: bytes) -> Outcome:
    return outcome_of(read_stream, iter(chunks))


def read_chunks(chunks: Sequence[bytes]) -> Outcome:
    return read(*chunks)


def read_whole(body: Json) -> Outcome:
    return outcome_of(read_answer, body)


def stream(*events: JsonObject) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def event(kind: str, index: int | None = None, **fields: Json) -> JsonObject:
    where = {} if index is None else {"output_index": index}
    return {"type": f"response.{kind}", **where, **fields}


def response(status: str = "completed", *output: JsonObject, **fields: Json) -> JsonObject:
    usage = {"input_tokens": 3, "output_tokens": 5}
    return {"id": "resp_1", "model": "m", "status": status, "output": list(output), "usage": usage, **fields}


def last(status: str = "completed", *output: JsonObject, **fields: Json) -> JsonObject:
    return event(status, response=response(status, *output, **fields))


def message(text: str = "Hi.", **fields: Json) -> JsonObject:
    return {"type": "message", "content": [{"type": "output_text", "text": text}], **fields}


def call(arguments: Json = '{"a":1}', **fields: Json) -> JsonObject:
    return {"type": "function_call", "call_id": "c", "name": "ls", "arguments": arguments, **fields}


def added(index: int, item: JsonObject) -> JsonObject:
    return event("output_item.added", index, item=item)


def done(index: int, item: JsonObject) -> JsonObject:
    return event("output_item.done", index, item=item)


def arguments(index: int, piece: str) -> JsonObject:
    return event("function_call_arguments.delta", index, delta=piece)


HI = Outcome((TextContent("Hi."),), "stop", Usage(3, 5), "resp_1", "m")
CALLED = Outcome((ToolCall("c", "ls", '{"a":1}'),), "tool_use", Usage(3, 5), "resp_1", "m")

REASONING: JsonObject = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Two files."}, {"type": "summary_text", "text": "Läuft."}],
    "encrypted_content": "done-bytes+/==",
}
ALL_OF_IT = Outcome(
    (
        ThinkingContent("Two files.\n\nLäuft.", {"item": REASONING}),
        TextContent("I will read both.", {"id": "msg_1", "phase": "commentary"}),
        ToolCall("call_a", "read", '{"path":"ä.txt"}', {"id": "fc_a"}),
        ToolCall("call_b", "ls", "{}", {"id": "fc_b"}),
    ),
    "tool_use",
    Usage(input_tokens=15, output_tokens=30, cache_read_tokens=100, cache_write_tokens=5),
    "resp_1",
    "gpt-test",
)


# A stream with everything in it, cut and split


def test_every_kind_of_item_becomes_a_part() -> None:
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


STREAMS = recorded_streams("openai-responses")


def as_block(part: AssistantContent) -> JsonObject:
    replay = part.replay or {}
    match part:
        case TextContent():
            phase = {"phase": replay["phase"]} if "phase" in replay else {}
            return {"type": "text", "text": part.text, "item_id": replay["id"], **phase}
        case ThinkingContent():
            return {"type": "thinking", "text": part.text, "item_id": replay["item"]["id"]}
        case ToolCall():
            said = {"name": part.name, "arguments": json.loads(part.arguments_json)}
            return {"type": "tool_call", "id": part.id, "item_id": replay["id"], **said}


def opaque_of(outcome: Outcome) -> list[JsonObject]:
    items = [part.replay["item"] for part in outcome.content if part.replay and "item" in part.replay]
    secrets = [item["encrypted_content"] for item in items if item.get("encrypted_content")]
    return [
        {"kind": "reasoning.encrypted_content", "length": len(text), "sha256": sha256(text.encode()).hexdigest()}
        for text in secrets
    ]


@pytest.mark.parametrize("record", STREAMS)
def test_a_recorded_stream_gives_its_message(record: JsonObject) -> None:
    expected, outcome = record["expected"], read(body_of(record))
    assert [as_block(part) for part in outcome.content] == expected["blocks"]
    assert opaque_of(outcome) == expected["opaque"]
    assert replace(outcome, content=()) == Outcome(
        (),
        "tool_use",
        usage_of(expected),
        expected["response_id"],
        expected["model"],
    )


@pytest.mark.parametrize("record", STREAMS)
def test_a_recorded_stream_may_be_split_anywhere(record: JsonObject) -> None:
    assert_splits_change_nothing(read_chunks, body_of(record))
    assert_line_ends_change_nothing(read_chunks, body_of(record))


@pytest.mark.slow
@pytest.mark.parametrize("record", STREAMS)
def test_a_recorded_stream_cut_at_any_byte_never_gives_another_message(record: JsonObject) -> None:
    assert_cuts_are_failures(read_chunks, body_of(record))


@pytest.mark.parametrize("record", recorded_answers("openai-responses", failed=True))
def test_a_recorded_error_is_final(record: JsonObject) -> None:
    error = error_of(record)
    assert (error.kind, error.retryable, error.status) == ("request", False, 400)
    assert record["response"]["json"]["error"]["message"] in error.message


# How a response ends


def test_done_ends_a_response_whose_items_are_all_done() -> None:
    outcome = read(stream(added(0, message()), done(0, message())) + b"data: [DONE]\n\n")
    assert outcome == Outcome((TextContent("Hi."),), "stop", None)


def test_done_after_the_last_event_is_not_needed() -> None:
    assert read(stream(done(0, message()), last()) + b"data: [DONE]\n\n") == HI


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"data: [DONE]\n\n",
        stream(done(0, message())),
        stream(added(0, message()), event("output_text.delta", 0, delta="Hi.")) + b"data: [DONE]\n\n",
        stream(done(0, message()), added(1, call()), arguments(1, '{"a":1}')) + b"data: [DONE]\n\n",
    ],
)
def test_a_stream_without_its_end_may_be_retried(data: bytes) -> None:
    outcome = read(data)
    assert (outcome.error, outcome.retryable) == ("truncated", True)


def test_a_response_that_ran_into_its_limit_is_cut_off() -> None:
    limit = last("incomplete", incomplete_details={"reason": "max_output_tokens"})
    outcome = read(stream(added(0, call("")), arguments(0, '{"a'), limit))
    assert (outcome.stop_reason, outcome.content) == ("length", (ToolCall("c", "ls", '{"a'),))


@pytest.mark.parametrize(
    ("ending", "kind", "retryable"),
    [
        (last("incomplete", incomplete_details={"reason": "content_filter"}), "refused", False),
        (last("incomplete", incomplete_details={"reason": "brand_new"}), "malformed", False),
        (last("failed", error={"code": "server_error", "message": "Oops"}), "server", True),
        (last("failed", error={"code": "insufficient_quota", "message": "No money"}), "quota", False),
        (last("failed"), "server", True),
        (last("cancelled"), "server", True),
        (event("completed", response=response("failed", error={"code": "server_error"})), "server", True),
        ({"type": "error", "code": "insufficient_quota", "message": "No money"}, "quota", False),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow down"}}, "rate_limit", True),
        ({"error": {"code": "context_length_exceeded", "message": "Too long"}}, "overflow", False),
    ],
)
def test_a_failure_is_told_once_and_keeps_what_had_arrived(
    ending: JsonObject, kind: FailureKind, retryable: bool
) -> None:
    outcome = read(stream(done(0, message()), ending, last("failed", error={"message": "again"})))
    assert (outcome.error, outcome.retryable) == (kind, retryable)
    assert outcome.content == (TextContent("Hi."),)


def test_a_refusal_is_final_and_says_what_the_model_said() -> None:
    refused: JsonObject = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    outcome = read(stream(added(0, message("")), event("refusal.delta", 0, delta="I will"), done(0, refused), last()))
    assert (outcome.error, outcome.retryable) == ("refused", False)
    assert outcome.problem == "the model declined to answer: I will not."


def test_a_response_that_says_nothing_is_no_answer() -> None:
    outcome = read(stream(last()))
    assert (outcome.error, outcome.retryable) == ("empty", True)


# Where the texts are


@pytest.mark.parametrize(
    "events",
    [
        (added(0, message("")), event("output_text.delta", 0, delta="Hi."), last()),
        (added(0, message("")), event("output_text.delta", 0, delta="H"), done(0, message()), last()),
        (added(0, message("")), event("output_text.done", 0, text="Hi."), last()),
        (done(0, message()), done(0, message()), last()),
        (last("completed", message()),),
        (added(0, message("")), last("completed", message())),
        (done(0, message()), last("completed", {"type": "reasoning"}, message())),
        (event("output_text.delta", 0, delta="Hi."), last("completed", message())),
        (event("brand_new", 0, delta="x"), {"type": 3}, done(0, message()), last()),
    ],
)
def test_a_text_is_taken_once_wherever_it_stands(events: tuple[JsonObject, ...]) -> None:
    assert read(stream(*events)) == HI


@pytest.mark.parametrize(
    "events",
    [
        (added(0, call("")), arguments(0, '{"a"'), arguments(0, ":1}"), done(0, call())),
        (added(0, call("")), event("function_call_arguments.done", 0, arguments='{"a":1}')),
        (added(0, call("")), done(0, call())),
        (added(0, call("", call_id="")), done(0, call())),
        (added(0, call("", name="")), done(0, call())),
        (done(0, call({"a": 1})),),
        (added(0, call("")), arguments(0, '{"a":1}'), done(0, call(""))),
        (added(0, call("")), arguments(0, '{"a":1}'), done(0, call('{"a": 1}'))),
        (done(0, call()), done(0, call())),
    ],
)
def test_a_call_is_made_once_with_the_arguments_of_the_last_word(events: tuple[JsonObject, ...]) -> None:
    outcome = read(stream(*events, last("completed", call())))
    assert outcome.content in (CALLED.content, (ToolCall("c", "ls", '{"a": 1}'),))
    assert outcome.stop_reason == "tool_use"


def test_two_parts_of_one_message_are_one_text() -> None:
    parts = [{"type": "output_text", "text": text} for text in ("Hi", ".")]
    assert read(stream(done(0, message(content=parts)), last())) == HI


def test_of_two_accounts_of_the_same_thinking_the_first_counts() -> None:
    both = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "S"}]}
    events = (event("reasoning_text.delta", 0, delta="T"), done(0, both), done(1, message()), last())
    assert read(stream(added(0, {"type": "reasoning"}), *events)).content[0].replay == {"item": both}
    assert read(stream(*events)).content[0] == ThinkingContent("T", {"item": both})


def test_items_that_are_not_known_are_kept_whole() -> None:
    search: JsonObject = {"type": "web_search_call", "id": "ws_1"}
    outcome = read(stream(done(0, search), done(1, message()), last()))
    assert outcome.content == (ThinkingContent("", {"item": search}), TextContent("Hi."))


# Streams that contradict themselves


@pytest.mark.parametrize(
    "events",
    [
        (added(0, call("")), arguments(0, '{"a":1}'), done(0, call('{"a":2}')), last()),
        (added(0, call("")), last()),
        (added(0, call("")), arguments(0, '{"a":'), last()),
        (added(0, call("")), added(0, call("", call_id="other")), last()),
        (added(0, call("")), done(0, call("{}", name="rm")), last()),
        (added(0, call("")), added(0, message()), last()),
        (arguments(0, "{}"), last()),
        (event("output_item.done", item=call()), last()),
    ],
)
def test_a_contradiction_is_a_failure_that_may_be_retried(events: tuple[JsonObject, ...]) -> None:
    outcome = read(stream(*events))
    assert (outcome.error, outcome.retryable) == ("malformed", True)


# Answers and other formats


def test_an_answer_in_one_piece_is_read_as_the_end_of_a_stream() -> None:
    assert read_whole(response("completed", call())) == CALLED
    assert read_whole(response("incomplete", message(), incomplete_details=None)) == replace(HI, stop_reason="length")


@pytest.mark.parametrize("body", [None, [], "text", {}, {"id": "resp_1", "output": None}])
def test_an_answer_that_is_no_response_is_a_final_failure(body: Json) -> None:
    outcome = read_whole(body)
    assert (outcome.error, outcome.retryable) == ("malformed", False)
    assert outcome.problem is not None
    assert "/responses" in outcome.problem


def test_an_error_in_place_of_an_answer_is_the_failure_that_it_names() -> None:
    outcome = read_whole({"error": {"code": "insufficient_quota", "message": "No money"}})
    assert (outcome.error, outcome.retryable) == ("quota", False)


def test_the_format_of_chat_completions_is_named() -> None:
    chunk: JsonObject = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "Hi."}}]}
    for outcome in (read(stream(chunk)), read_whole(chunk)):
        assert (outcome.error, outcome.retryable, outcome.content) == ("malformed", False, ())
        assert outcome.problem is not None
        assert "openai-chat" in outcome.problem


def test_the_cache_is_not_counted_twice_and_nothing_is_negative() -> None:
    details = {"cached_tokens": 9, "cache_write_tokens": None}
    usage = {"input_tokens": 3, "input_tokens_details": details, "output_tokens": 5}
    outcome = read(stream(done(0, message()), last(usage=usage)))
    assert outcome.usage == Usage(0, 5, cache_read_tokens=9)


# Anything at all

WORDS = [
    *(
        "type",
        "item",
        "output_index",
        "content_index",
        "delta",
        "text",
        "arguments",
        "response",
        "output",
        "status",
    ),
    *("message", "reasoning", "function_call", "call_id", "id", "name", "content", "summary", "encrypted_content"),
    *(
        "output_text",
        "summary_text",
        "refusal",
        "usage",
        "input_tokens",
        "error",
        "code",
        "completed",
        "incomplete",
    ),
    *("response.output_item.added", "response.output_item.done", "response.output_text.delta", "\ud800", "{}"),
    *("response.function_call_arguments.delta", "response.function_call_arguments.done", "response.completed"),
    *("response.reasoning_summary_text.delta", "response.failed", "choices", "phase", "response", "incomplete", ""),
]
VALUES = json_of(WORDS)
WORD = st.sampled_from(WORDS)
ITEMS = st.fixed_dictionaries({"type": WORD}, optional={"content": VALUES, "summary": VALUES, "arguments": VALUES})
EVENTS = st.fixed_dictionaries(
    {"type": WORD, "output_index": st.integers(0, 2) | VALUES},
    optional={"item": ITEMS | VALUES, "delta": VALUES, "text": VALUES, "arguments": VALUES, "response": VALUES},
)


@given(st.lists(EVENTS | st.dictionaries(WORD, VALUES, max_size=4), max_size=8))
def test_no_events_make_it_raise_anything_else(events: list[JsonObject]) -> None:
    read(stream(*events, last()))


@given(VALUES | st.fixed_dictionaries({"output": st.lists(ITEMS | VALUES, max_size=3)}, optional={"status": VALUES}))
def test_no_answer_makes_it_raise_anything_else(body: Json) -> None:
    read_whole(body)


def test_a_key_goes_into_the_header_that_the_server_wants() -> None:
    assert create_openai_responses_api().authentication("k") == {"authorization": "Bearer k"}
    assert create_openai_responses_api(ResponsesTraits(key_header="api-key")).authentication("k") == {"api-key": "k"}
