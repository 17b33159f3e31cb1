"""Requests to Bedrock's Converse API."""

import json
from typing import Any

import pytest
from conversations import IMAGE, LS, NOW, offered, request_of, result, user

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from ci_agent.provider import Model, StreamOptions, ThinkingLevel
from ci_agent.providers.bedrock.api import bedrock_base_url, create_bedrock_api
from ci_agent.providers.bedrock.relaxations import relax
from ci_agent.providers.bedrock.request import BedrockTraits
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-micro-v1:0"
HIDDEN = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2"
POINT = {"cachePoint": {"type": "default"}}
IMAGE_BLOCK = {"image": {"format": "png", "source": {"bytes": "QUJD"}}}


DOTTED = offered("fs.now", " ", {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})


def answer(*content: AssistantContent, model: str = CLAUDE, stop: StopReason = "tool_use") -> AssistantMessage:
    return AssistantMessage(content, stop, "bedrock", model, "bedrock-converse", NOW)


def ask(*messages: Message, model: str = CLAUDE, traits: BedrockTraits | None = None, **more: Any) -> ApiRequest:
    return request_of(create_bedrock_api(traits), Model("bedrock", model), *messages, **more)


def sent(*messages: Message, model: str = NOVA) -> list[Json]:
    found: list[Json] = ask(*messages, model=model).body["messages"]
    return found


def conversation(model: str = CLAUDE) -> tuple[Message, ...]:
    return (
        user("Look \udc00here", IMAGE),
        answer(
            ThinkingContent("signed 😀", {"signature": "c2ln/+=="}),
            ThinkingContent("", {"redactedContent": "c2VhbGVk"}),
            TextContent("I list"),
            ToolCall("tooluse_a.b:c", "ls", '{"path": "a"}'),
            ToolCall("tooluse_d", "fs.now", ""),
            model=model,
        ),
        result("tooluse_a.b:c", TextContent("a.py"), IMAGE),
        result("tooluse_d", name="fs.now", is_error=True),
        user("go on", ImageContent("image/tiff", "AAAA")),
    )


def test_a_whole_conversation_of_the_same_claude_goes_back_as_it_came() -> None:
    options = StreamOptions(None, 9_000, "medium", {"type": "object", "properties": {}, "additionalProperties": False})
    request = ask(*conversation(), system="Be brief.", tools=(LS, DOTTED), options=options)
    assert request.path == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    assert request.tool_names == {"ls": "ls", "fs_now": "fs.now"}
    assert request.headers == {}
    assert request.body == {
        "messages": [
            {"role": "user", "content": [{"text": "Look \ufffdhere"}, IMAGE_BLOCK]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "signed 😀", "signature": "c2ln/+=="}}},
                    {"reasoningContent": {"redactedContent": "c2VhbGVk"}},
                    {"text": "I list"},
                    {"toolUse": {"toolUseId": "tooluse_a.b:c", "name": "ls", "input": {"path": "a"}}},
                    {"toolUse": {"toolUseId": "tooluse_d", "name": "fs_now", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "tooluse_a.b:c",
                            "content": [{"text": "a.py"}, IMAGE_BLOCK],
                            "status": "success",
                        }
                    },
                    {
                        "toolResult": {
                            "toolUseId": "tooluse_d",
                            "content": [{"text": "(no output)"}],
                            "status": "error",
                        }
                    },
                    {"text": "go on"},
                    {"text": "[an image of the type image/tiff, which cannot be sent]"},
                    POINT,
                ],
            },
        ],
        "system": [{"text": "Be brief."}, POINT],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "ls",
                        "description": "Lists files.",
                        "inputSchema": {"json": {"type": "object", "properties": {"path": {"type": "string"}}}},
                    }
                },
                {
                    "toolSpec": {
                        "name": "fs_now",
                        "inputSchema": {
                            "json": {
                                "type": "object",
                                "properties": {"b": {}, "a": {}},
                                "description": "Must also satisfy this JSON Schema: "
                                '{"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}',
                            }
                        },
                    }
                },
                POINT,
            ]
        },
        "inferenceConfig": {"maxTokens": 9_000},
        "additionalModelRequestFields": {
            "thinking": {"type": "enabled", "budget_tokens": 4_500},
            "anthropic_beta": ["interleaved-thinking-2025-05-14"],
        },
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {
                    "jsonSchema": {
                        "name": "answer",
                        "schema": '{"type": "object", "properties": {}, "additionalProperties": false}',
                    }
                },
            }
        },
    }


def test_what_another_model_made_loses_its_data_and_gets_ids_that_all_take() -> None:
    request = ask(*conversation(CLAUDE), model=NOVA, tools=(LS, DOTTED), options=StreamOptions(0.5, 100, "high"))
    messages = request.body["messages"]
    assert messages[1]["content"] == [
        {"text": "signed 😀"},
        {"text": "I list"},
        {"toolUse": {"toolUseId": "tooluse_a_b_c", "name": "ls", "input": {"path": "a"}}},
        {"toolUse": {"toolUseId": "tooluse_d", "name": "fs_now", "input": {}}},
    ]
    assert [block["toolResult"]["toolUseId"] for block in messages[2]["content"][:2]] == ["tooluse_a_b_c", "tooluse_d"]
    assert "cachePoint" not in json.dumps(request.body)
    assert {name: request.body.get(name) for name in ("inferenceConfig", "additionalModelRequestFields")} == {
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.5},
        "additionalModelRequestFields": None,
    }


def test_only_models_that_sign_get_their_signature_back() -> None:
    thought = ThinkingContent("hm", {"signature": "c2ln"})
    signed = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
    bare = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    for model, block in ((CLAUDE, signed), (HIDDEN, signed), (NOVA, bare), ("openai.gpt-oss-120b-1:0", bare)):
        own = answer(thought, TextContent("hi"), model=model, stop="stop")
        assert sent(user("a"), own, user("b"), model=model)[1]["content"][:2] == [block, {"text": "hi"}]


def test_thinking_that_claude_did_not_sign_is_text_and_thinking_at_the_end_is_gone() -> None:
    unsigned = answer(
        ThinkingContent("hm"), TextContent("hi"), ThinkingContent("x", {"signature": "cw"}), stop="length"
    )
    assert sent(user("a"), unsigned, model=CLAUDE)[1] == {
        "role": "assistant",
        "content": [{"text": "hm"}, {"text": "hi"}],
    }


def test_signed_thinking_that_is_no_text_at_all_goes_back_unsigned() -> None:
    broken = answer(ThinkingContent("half \ud83d", {"signature": "cw"}), TextContent("hi"), stop="stop")
    assert sent(user("a"), broken, user("b"), model=CLAUDE)[1]["content"] == [{"text": "half \ufffd"}, {"text": "hi"}]


def test_blank_blocks_and_empty_messages_are_skipped_and_roles_alternate() -> None:
    blank = answer(TextContent(" \n"), stop="stop", model=NOVA)
    thought = answer(ThinkingContent("x", {"signature": "cw"}), stop="length", model=NOVA)
    assert sent(user("a", "\t"), blank, thought, user("b"), user(" ")) == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]}
    ]


def test_a_history_with_calls_brings_its_tools_along_when_there_are_no_others() -> None:
    calls = answer(ToolCall("x", "ls", "{}"), ToolCall("y", "ls", "{}"), ToolCall("z", "a b", "{}"), model=NOVA)
    old = [
        {
            "toolSpec": {
                "name": name,
                "description": "No longer offered. Must not be called.",
                "inputSchema": {"json": {"type": "object"}},
            }
        }
        for name in ("ls", "a_b")
    ]
    assert ask(user("hi"), calls, model=NOVA).body["toolConfig"] == {"tools": old}
    offered = ask(user("hi"), calls, model=NOVA, tools=(LS,)).body["toolConfig"]["tools"]
    assert [tool["toolSpec"]["name"] for tool in offered] == ["ls"]
    assert "toolConfig" not in ask(model=NOVA).body


def test_every_call_has_a_result_and_failed_turns_are_gone() -> None:
    failed = answer(ToolCall("f", "ls", "{}"), model=NOVA, stop="error")
    missing = answer(ToolCall("a", "ls", "{}"), model=NOVA)
    assert sent(user("hi"), failed, missing)[1:] == [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "ls", "input": {}}}]},
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "a",
                        "content": [{"text": "No result: the call was not executed."}],
                        "status": "error",
                    }
                }
            ],
        },
    ]


def test_a_plain_request_holds_nothing_that_nobody_asked_for() -> None:
    assert ask(model=NOVA).body == {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("model", "traits", "marked"),
    [
        (CLAUDE, None, True),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", None, True),
        ("anthropic.claude-3-haiku-20240307-v1:0", None, False),
        (CLAUDE, BedrockTraits(takes_cache_points=False), False),
        (NOVA, None, False),
        (HIDDEN, None, False),
    ],
)
def test_only_models_that_take_marks_for_the_cache_get_them(
    model: str, traits: BedrockTraits | None, marked: bool
) -> None:
    assert ("cachePoint" in json.dumps(ask(model=model, traits=traits, system="s").body)) == marked


# Thinking


@pytest.mark.parametrize(
    ("model", "level", "fields"),
    [
        (
            "anthropic.claude-opus-4-6-v1",
            "high",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
        ),
        ("anthropic.claude-opus-4-6-v1", "off", {"thinking": {"type": "disabled"}}),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", "low", {"thinking": {"type": "enabled", "budget_tokens": 2_048}}),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", "off", None),
        ("openai.gpt-oss-120b-1:0", "minimal", {"reasoning_effort": "low"}),
        ("openai.gpt-oss-120b-1:0", "high", {"reasoning_effort": "high"}),
        (
            "us.amazon.nova-2-lite-v1:0",
            "medium",
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}},
        ),
        ("us.amazon.nova-2-lite-v1:0", "off", {"reasoningConfig": {"type": "disabled"}}),
        (NOVA, "high", None),
        (HIDDEN, "high", None),
    ],
)
def test_each_maker_is_told_to_think_in_its_own_way(
    model: str, level: ThinkingLevel, fields: JsonObject | None
) -> None:
    body = ask(model=model, options=StreamOptions(thinking=level)).body
    assert body.get("additionalModelRequestFields") == fields


def test_a_budget_names_what_may_be_said_and_allows_no_temperature() -> None:
    facts = ModelFacts(max_output_tokens=64_000)
    options = StreamOptions(temperature=0.5, thinking="high")
    assert ask(options=options, facts=facts).body["inferenceConfig"] == {"maxTokens": 32_000}
    assert ask(options=StreamOptions(temperature=0.5)).body["inferenceConfig"] == {"temperature": 0.5}


def test_claude_does_not_begin_to_think_in_the_middle_of_a_turn() -> None:
    calls = answer(ToolCall("x", "ls", "{}"))
    options = StreamOptions(thinking="high")
    assert "additionalModelRequestFields" not in ask(user("hi"), calls, result("x"), options=options).body
    thought = answer(ThinkingContent("hm", {"signature": "cw"}), ToolCall("x", "ls", "{}"))
    assert "additionalModelRequestFields" in ask(user("hi"), thought, result("x"), options=options).body


@pytest.mark.parametrize(
    ("model", "schema"),
    [
        (CLAUDE, {"type": "string", "pattern": "^a"}),
        (NOVA, {"type": "null"}),
        ("anthropic.claude-3-haiku", {"type": "null"}),
    ],
)
def test_no_schema_is_sent_that_the_model_cannot_be_held_to(model: str, schema: JsonObject) -> None:
    assert "outputConfig" not in ask(model=model, options=StreamOptions(output_schema=schema)).body


# Addresses


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (HIDDEN, "arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2"),
        ("../x?y#z ä", "..%2Fx%3Fy%23z%20%C3%A4"),
    ],
)
def test_the_path_is_made_of_the_model_and_of_nothing_else(model: str, path: str) -> None:
    assert ask(model=model).path == f"/model/{path}/converse-stream"


@pytest.mark.parametrize(
    ("environment", "model", "url"),
    [
        (
            {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "x"},
            NOVA,
            "https://bedrock-runtime.us-east-1.amazonaws.com",
        ),
        (
            {"AWS_REGION": " ", "AWS_DEFAULT_REGION": "us-gov-west-1"},
            "",
            "https://bedrock-runtime.us-gov-west-1.amazonaws.com",
        ),
        ({"AWS_REGION": "us-east-1"}, HIDDEN, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ({"AWS_REGION": "cn-north-1"}, "", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
        ({"AWS_REGION": "eu-west-3"}, "arn:aws:bedrock::1:a/b", "https://bedrock-runtime.eu-west-3.amazonaws.com"),
    ],
)
def test_the_address_is_that_of_the_region(environment: dict[str, str], model: str, url: str) -> None:
    assert bedrock_base_url(environment, model) == url


@pytest.mark.parametrize(
    ("environment", "model"),
    [({}, ""), ({"AWS_REGION": "evil.example/"}, ""), ({"AWS_REGION": "us-east-1"}, "arn:aws:bedrock:x.evil/:1:a/b")],
)
def test_a_region_that_is_missing_or_none_is_named(environment: dict[str, str], model: str) -> None:
    with pytest.raises(ConfigurationError, match="region"):
        bedrock_base_url(environment, model)


def test_the_key_is_a_bearer_token() -> None:
    assert create_bedrock_api().authentication("ABSK") == {"authorization": "Bearer ABSK"}


# What a server complains of


def refused(text: str, status: int = 400) -> ApiError:
    return ApiError("request", f"HTTP {status} ValidationException: {text}", retryable=False, status=status)


def relaxed(request: ApiRequest, text: str) -> ApiRequest:
    lesser = relax(request, refused(text))
    assert lesser is not None
    return lesser


def test_a_model_that_does_not_stream_is_asked_for_the_whole() -> None:
    lesser = relaxed(ask(model=NOVA), "This model doesn't support tool use in streaming mode.")
    assert lesser.path == "/model/us.amazon.nova-micro-v1%3A0/converse"
    assert lesser.body == ask(model=NOVA).body


def test_refused_marks_for_the_cache_are_left_out_everywhere() -> None:
    marked = ask(*conversation(), system="s", tools=(LS,))
    plain = ask(*conversation(), system="s", tools=(LS,), traits=BedrockTraits(takes_cache_points=False))
    assert relaxed(marked, "extraneous key [cachePoint] is not permitted") == plain


def test_refused_thinking_of_the_history_is_left_out_and_the_model_thinks_no_more() -> None:
    request = ask(*conversation(), tools=(LS,), options=StreamOptions(thinking="high"))
    lesser = relaxed(request, "messages.1.content.0: Invalid `signature` in `thinking` block").body
    assert "reasoningContent" not in json.dumps(lesser)
    assert "additionalModelRequestFields" not in lesser
    assert [message["role"] for message in lesser["messages"]] == ["user", "assistant", "user"]


def test_a_refused_status_is_said_in_words() -> None:
    calls = answer(ToolCall("x", "ls", "{}"), model=NOVA)
    request = ask(user("hi"), calls, result("x", TextContent("no"), is_error=True), model=NOVA, tools=(LS,))
    lesser = relaxed(request, "The model does not take the field status in toolResult")
    assert lesser.body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "x", "content": [{"text": "The tool failed:"}, {"text": "no"}]}}
    ]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("temperature is deprecated for this model", "temperature"),
        ("outputConfig is not supported", "outputConfig"),
        ("invalid beta flag", "anthropic_beta"),
        ("adaptive thinking is not supported", "thinking"),
    ],
)
def test_what_can_be_done_without_is_left_out(text: str, left_out: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
    options = StreamOptions(0.5, None, None if left_out == "temperature" else "high", schema)
    request = ask(options=options)
    assert left_out in json.dumps(request.body)
    assert left_out not in json.dumps(relaxed(request, text).body)


@pytest.mark.parametrize(("text", "status"), [("no such thing", 400), ("temperature", 403), ("thinking", 400)])
def test_what_cannot_be_mended_stays_refused(text: str, status: int) -> None:
    assert relax(ask(model=NOVA), refused(text, status)) is None


def test_asking_for_less_and_less_comes_to_an_end() -> None:
    request: ApiRequest | None = ask(
        *conversation(), tools=(LS,), options=StreamOptions(0.5, None, "high", {"type": "null"})
    )
    everything = (
        "streaming is not supported, cachePoint outputConfig temperature status anthropic_beta effort signature"
    )
    for _ in range(20):
        assert request is not None
        request = relax(request, refused(everything))
        if request is None:
            return
    raise AssertionError("it never ends")
