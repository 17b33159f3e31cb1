"""Requests to the Responses API."""

from dataclasses import replace
from typing import Any

import pytest
from conversations import CLOSED, NOW, besides, offered, refused, request_of, result, user

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from ci_agent.provider import Model, ThinkingLevel
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.openai_responses.api import create_openai_responses_api
from ci_agent.providers.openai_responses.relaxations import relax
from ci_agent.providers.openai_responses.request import ResponsesTraits
from ci_agent.providers.wire.api import ApiRequest

OPEN: JsonObject = {"type": "object", "properties": {"path": {"type": "string", "minLength": 1}}}
REASONING: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vj+/=="}


TOOL = offered("list.files", "Lists files.", OPEN)


def answer(*content: AssistantContent, model: str = "m") -> AssistantMessage:
    return AssistantMessage(content, "tool_use", "openai", model, "openai-responses", NOW)


def ask(*messages: Message, traits: ResponsesTraits | None = None, **more: Any) -> ApiRequest:
    return request_of(create_openai_responses_api(traits), Model("openai", "m"), *messages, **more)


def sent(*messages: Message, **more: Any) -> list[Json]:
    found: list[Json] = ask(*messages, **more).body["input"]
    return found


def extra(request: ApiRequest) -> JsonObject:
    """What a request says besides the conversation."""
    return besides(request, "model", "input", "stream", "store", "include")


def test_a_conversation_with_everything_in_it() -> None:
    request = ask(
        user("Compare ", ImageContent("image/png", "QUJD")),
        answer(
            ThinkingContent("Two files.", {"item": REASONING}),
            TextContent("Both.", {"id": "msg_1", "phase": "commentary"}),
            ToolCall("call_a", "list.files", '{"path": "a"}', {"id": "fc_a"}),
            ToolCall("call_b", "gone", "not json", {"id": "fc_b"}),
        ),
        result("call_b", TextContent("It broke."), is_error=True),
        result("call_a", TextContent("A"), ImageContent("image/png", "QUJD")),
        user("Go on."),
        system="Be brief.",
        tools=(TOOL,),
        thinking="high",
        max_output_tokens=900,
        output_schema=CLOSED,
        conversation_id="run-1",
    )
    picture = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"}
    assert request == ApiRequest(
        path="/responses",
        tool_names={"list_files": "list.files"},
        body={
            "model": "m",
            "stream": True,
            "store": False,
            "instructions": "Be brief.",
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "high", "summary": "auto"},
            "max_output_tokens": 900,
            "prompt_cache_key": "run-1",
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": CLOSED, "strict": True}},
            "tools": [
                {
                    "type": "function",
                    "name": "list_files",
                    "description": "Lists files.",
                    "parameters": OPEN,
                    "strict": False,
                }
            ],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Compare "}, picture]},
                REASONING,
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "msg_1",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "Both.", "annotations": []}],
                    "phase": "commentary",
                },
                {
                    "type": "function_call",
                    "call_id": "call_a",
                    "name": "list_files",
                    "arguments": '{"path": "a"}',
                    "id": "fc_a",
                },
                {
                    "type": "function_call",
                    "call_id": "call_b",
                    "name": "gone",
                    "arguments": '{"invalid_json": "not json"}',
                    "id": "fc_b",
                },
                {
                    "type": "function_call_output",
                    "call_id": "call_a",
                    "output": [{"type": "input_text", "text": "A"}, picture],
                },
                {"type": "function_call_output", "call_id": "call_b", "output": "Error: It broke."},
                {"role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
            ],
        },
    )


def test_what_another_model_made_goes_without_ids_and_reasoning() -> None:
    other = answer(
        ThinkingContent("Hm.", {"item": REASONING}),
        ThinkingContent("", {"item": REASONING}),
        ToolCall("toolu:" + "x" * 80, "ls", "{}", {"id": "fc_1"}),
        TextContent("Then.", {"id": "msg_1", "phase": "commentary"}),
        model="other",
    )
    _, thought, text, call, output = sent(user("hi"), other, result("toolu:" + "x" * 80))
    assert thought == {"role": "assistant", "content": "Hm."}
    assert text == {"role": "assistant", "content": "Then."}
    assert call == {"type": "function_call", "call_id": call["call_id"], "name": "ls", "arguments": "{}"}
    assert output == {"type": "function_call_output", "call_id": call["call_id"], "output": ""}
    assert call["call_id"].replace("_", "").isalnum()
    assert len(call["call_id"]) <= 64


@pytest.mark.parametrize(
    "parts",
    [
        (ThinkingContent("Hm.", {"item": {"type": "reasoning", "id": "rs_1", "summary": []}}),),
        (ThinkingContent("Hm."),),
        (ThinkingContent("", {"item": REASONING}), TextContent("No id.")),
    ],
)
def test_a_message_goes_back_all_in_items_or_all_without(parts: tuple[AssistantContent, ...]) -> None:
    said = answer(*parts, TextContent("A", {"id": "msg_1", "phase": "final_answer"}), ToolCall("c", "ls", "{}"))
    items = sent(user("hi"), said, result("c"))
    assert [item for item in items if "id" in item or item.get("type") == "reasoning"] == []
    assert {"role": "assistant", "content": "A", "phase": "final_answer"} in items


def test_reasoning_that_nothing_follows_is_left_out() -> None:
    thought = ThinkingContent("", {"item": REASONING})
    said = answer(thought, TextContent("A", {"id": "msg_1"}), thought)
    assert [item.get("type") for item in sent(user("hi"), said, user("go"))] == [None, "reasoning", "message", None]
    assert [item.get("role") for item in sent(user("hi"), answer(thought), user("go"))] == ["user", "user"]


def test_items_that_are_not_known_go_back_in_their_place() -> None:
    search = {"type": "web_search_call", "id": "ws_1"}
    said = answer(ThinkingContent("", {"item": search}), TextContent("A", {"id": "msg_1"}))
    assert sent(user("hi"), said, user("go"))[1] == search


def test_items_keep_their_order_unless_the_server_wants_the_calls_last() -> None:
    said = answer(
        ToolCall("a", "ls", "{}", {"id": "fc_a"}),
        TextContent("and", {"id": "msg_1"}),
        ToolCall("b", "ls", "{}", {"id": "fc_b"}),
    )
    conversation = (user("hi"), said, result("a"), result("b"))
    strict = ResponsesTraits(takes_text_between_calls=False)
    assert [item.get("id") for item in sent(*conversation)[1:4]] == ["fc_a", "msg_1", "fc_b"]
    assert [item.get("id") for item in sent(*conversation, traits=strict)[1:4]] == ["msg_1", "fc_a", "fc_b"]


def test_a_call_without_a_result_gets_one_and_failed_turns_are_left_out() -> None:
    failed = replace(answer(TextContent("half")), stop_reason="error")
    items = sent(user("hi"), failed, answer(ToolCall("c", "ls", "{}")))
    assert [item.get("type") for item in items] == [None, "function_call", "function_call_output"]
    assert items[2]["output"].startswith("Error: ")


def test_an_error_with_an_image_says_so_first() -> None:
    failed = result("c", ImageContent("image/png", "QUJD"), is_error=True)
    output = sent(user("hi"), answer(ToolCall("c", "ls", "{}")), failed)[2]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    assert output[0]["text"] == "Error:"


def test_lone_surrogates_are_replaced_in_everything_that_is_sent() -> None:
    tool = replace(TOOL, description="\ud800")
    text = str(ask(user("\ud800"), system="\ud800", tools=(tool,), output_schema={**CLOSED, "title": "\ud800"}).body)
    text.encode()


@pytest.mark.parametrize(
    ("level", "fields"),
    [
        (None, {}),
        ("off", {"reasoning": {"effort": "none"}}),
        ("minimal", {"reasoning": {"effort": "minimal", "summary": "auto"}}),
        ("low", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("medium", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("high", {"reasoning": {"effort": "high", "summary": "auto"}}),
    ],
)
def test_each_level_of_thinking_is_an_effort(level: ThinkingLevel | None, fields: JsonObject) -> None:
    assert extra(ask(thinking=level)) == fields


def test_a_model_that_does_not_think_is_not_asked_for_its_thoughts() -> None:
    body = ask(thinking="high", facts=ModelFacts(thinks=False)).body
    assert "reasoning" not in body
    assert "include" not in body


def test_a_temperature_is_sent_only_where_it_is_taken() -> None:
    assert extra(ask(temperature=0.0)) == {"temperature": 0.0}
    assert extra(ask(temperature=0.0, facts=ModelFacts(takes_temperature=False))) == {}


def test_a_schema_is_a_hint_where_it_cannot_be_enforced() -> None:
    hint = {"type": "json_schema", "name": "answer", "schema": OPEN, "strict": False}
    assert extra(ask(output_schema=OPEN)) == {"text": {"format": hint}}
    assert extra(ask(output_schema={"type": "array"})) == {}
    assert extra(ask(output_schema=CLOSED, facts=ModelFacts(enforces_schema=False))) == {}


def test_the_key_of_the_cache_is_short_and_only_sent_where_it_is_taken() -> None:
    assert extra(ask(conversation_id="x" * 100)) == {"prompt_cache_key": "x" * 64}
    assert extra(ask(conversation_id="x", traits=ResponsesTraits(takes_cache_key=False))) == {}


# What can be left out

THOUGHT = (
    user("hi"),
    answer(
        ThinkingContent("", {"item": REASONING}),
        TextContent("A", {"id": "msg_1", "phase": "commentary"}),
        ToolCall("c", "ls", "{}", {"id": "fc_1"}),
    ),
    result("c", TextContent("B")),
)


@pytest.mark.parametrize(
    "message",
    [
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "The encrypted content for item rs_1 could not be verified.",
    ],
)
def test_after_a_complaint_about_replayed_reasoning_it_is_left_out_with_all_ids(message: str) -> None:
    request = ask(*THOUGHT, thinking="low")
    lesser = relax(request, refused(message))
    assert lesser == replace(
        request,
        body={
            **request.body,
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"role": "assistant", "content": "A", "phase": "commentary"},
                {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "B"},
            ],
        },
    )


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("Encrypted content is not supported with this model.", {"include"}),
        ("Your organization must be verified to generate reasoning summaries.", {"summary"}),
        ("Unsupported parameter: 'reasoning.effort'", {"effort"}),
        ("Unsupported parameter: 'temperature'", {"temperature"}),
        ("Invalid schema for response_format 'answer'", {"text"}),
        ("Unknown parameter: 'prompt_cache_key'", {"prompt_cache_key"}),
        ("Unrecognized request argument: store", {"store"}),
        ("tools[0].strict: extra fields not permitted", {"strict"}),
    ],
)
def test_what_the_server_names_is_left_out(message: str, gone: set[str]) -> None:
    request = ask(thinking="low", temperature=1.0, output_schema={"type": "object"}, conversation_id="c", tools=(TOOL,))
    lesser = relax(request, refused(message))
    assert lesser is not None
    assert (parts_of(request) - parts_of(lesser), parts_of(lesser) - parts_of(request)) == (gone, set())


def parts_of(request: ApiRequest) -> set[str]:
    return {*request.body, *request.body.get("reasoning", {}), *request.body["tools"][0]}


def test_a_model_that_cannot_but_think_thinks_as_little_as_it_can() -> None:
    request: ApiRequest | None = ask(thinking="off")
    efforts: list[str | None] = []
    while request is not None:
        efforts.append(request.body.get("reasoning", {}).get("effort"))
        request = relax(request, refused("Unsupported value: 'reasoning.effort'"))
    assert efforts == ["none", "minimal", "low", None]


def test_other_failures_change_nothing() -> None:
    request = ask(*THOUGHT)
    assert relax(request, refused("The encrypted content could not be verified.", status=500)) is None
    assert relax(request, refused("You did something else.")) is None
