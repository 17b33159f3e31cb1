"""Requests to servers that speak Chat Completions."""

from dataclasses import replace
from typing import Any

import pytest
from conversations import CLOSED, IMAGE, NOW, besides, offered, refused, request_of, result, user

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from ci_agent.provider import Model, StreamOptions, ThinkingLevel
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.openai_chat.api import create_openai_chat_api
from ci_agent.providers.openai_chat.relaxations import relax
from ci_agent.providers.openai_chat.traits import ChatTraits, ThinkingStyle
from ci_agent.providers.servers import SERVERS
from ci_agent.providers.wire.api import Api, ApiRequest

IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
SCHEMA: JsonObject = {"type": "object", "properties": {"path": {"type": "string", "minLength": 1}}}
TOOL = offered("list.files", "Lists files.", SCHEMA)


def answer(*content: AssistantContent, provider: str = "openai-chat") -> AssistantMessage:
    return AssistantMessage(content, "tool_use", provider, "m", "openai-chat", NOW)


def ask(
    *messages: Message, api: Api | None = None, provider: str = "openai-chat", model: str = "m", **more: Any
) -> ApiRequest:
    return request_of(api or SERVERS[provider].api(), Model(provider, model), *messages, **more)


def sent(*messages: Message, **more: Any) -> list[Json]:
    found: list[Json] = ask(*messages, **more).body["messages"]
    return found


def extra(request: ApiRequest) -> JsonObject:
    """What a request says besides the conversation."""
    return besides(request, "model", "messages", "stream", "stream_options", "tools")


def test_a_plain_question() -> None:
    assert ask(user("hi"), system="Be brief.") == ApiRequest(
        "/chat/completions",
        {
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    )


def test_tools_are_offered_under_names_that_every_server_takes() -> None:
    request = ask(tools=(TOOL,))
    assert request.body["tools"] == [
        {
            "type": "function",
            "function": {"name": "list_files", "description": "Lists files.", "parameters": SCHEMA},
        }
    ]
    assert request.tool_names == {"list_files": "list.files"}


def test_a_turn_with_tools_goes_back_as_it_came() -> None:
    assert sent(
        user("hi"),
        answer(
            TextContent("Looking."), ToolCall("c.1", "list.files", '{ "path": "a" }'), ToolCall("c2", "list.files", "")
        ),
        result("c.1", TextContent("x"), TextContent("y")),
        result("c2", TextContent("not there"), is_error=True),
        tools=(TOOL,),
    )[1:] == [
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "c.1", "type": "function", "function": {"name": "list_files", "arguments": '{ "path": "a" }'}},
                {"id": "c2", "type": "function", "function": {"name": "list_files", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c.1", "content": "x\ny"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: not there"},
    ]


def test_calls_without_text_have_null_content_and_results_without_text_say_so() -> None:
    messages = sent(answer(ToolCall("a", "list.files", "{}")), result("a"))
    assert [message["content"] for message in messages] == [None, "(no output)"]


def test_images_of_results_follow_in_a_message_of_the_user() -> None:
    assert sent(
        answer(ToolCall("a", "list.files", "{}"), ToolCall("b", "list.files", "{}")),
        result("a", IMAGE),
        result("b", TextContent("ok")),
        user("and?"),
    )[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "(images, in the next message of the user)"},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "From the result of list.files (a):"},
                IMAGE_PART,
                {"type": "text", "text": "and?"},
            ],
        },
    ]


def test_mistral_takes_images_in_results_with_the_name_of_the_tool_and_ids_of_nine_characters() -> None:
    messages = sent(answer(ToolCall("call_123", "list.files", "{}")), result("call_123", IMAGE), provider="mistral")
    id_ = messages[0]["tool_calls"][0]["id"]
    assert len(id_) == 9
    assert messages[1:] == [
        {
            "role": "tool",
            "tool_call_id": id_,
            "name": "list_files",
            "content": [{"type": "text", "text": "(no output)"}, IMAGE_PART],
        }
    ]


def test_a_user_never_speaks_twice_in_a_row() -> None:
    assert sent(user("a", "b"), user("c"), user(IMAGE, "d")) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a\n\nb\n\nc"}, IMAGE_PART, {"type": "text", "text": "d"}],
        }
    ]


# Thinking that goes back


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_thinking_goes_back_in_the_field_it_came_in(field: str) -> None:
    assert sent(answer(ThinkingContent("hm", {"field": field}), TextContent("so"))) == [
        {"role": "assistant", "content": "so", field: "hm"}
    ]


def test_details_and_additions_go_back_verbatim() -> None:
    details = [{"type": "reasoning.encrypted", "data": "QUJD", "index": 0}]
    message = answer(
        ThinkingContent("", {"reasoning_details": details, "extra_content": {"a": 1}}),
        ToolCall("a", "list.files", "{}", {"extra_content": {"google": {"thought_signature": "c2ln"}}}),
    )
    wire = sent(message)[0]
    assert (wire["reasoning_details"], wire["extra_content"]) == (details, {"a": 1})
    assert wire["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}


def test_thinking_among_the_items_of_the_content_goes_back_there() -> None:
    assert sent(
        answer(ThinkingContent("hm", {"field": "content"}), TextContent("so"), provider="mistral"), provider="mistral"
    ) == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "so"},
            ],
        }
    ]


def test_thinking_of_another_model_is_text() -> None:
    foreign = answer(ThinkingContent("hm", {"field": "reasoning"}), TextContent("so"), provider="anthropic")
    assert sent(foreign) == [{"role": "assistant", "content": "hm\n\nso"}]


def test_deepseek_wants_thinking_in_every_message_once_it_is_in_one() -> None:
    plain = answer(TextContent("a"), provider="deepseek")
    thought = answer(ThinkingContent("hm", {"field": "reasoning_content"}), TextContent("b"), provider="deepseek")
    both = sent(plain, user("?"), thought, provider="deepseek")
    assert [message.get("reasoning_content") for message in both] == ["", None, "hm"]
    assert "reasoning_content" not in sent(plain, provider="deepseek")[0]
    asked = StreamOptions(thinking="high")
    assert sent(plain, provider="deepseek", options=asked)[0]["reasoning_content"] == ""


# Options


@pytest.mark.parametrize(
    ("style", "level", "fields"),
    [
        ("effort", None, {}),
        ("effort", "off", {"reasoning_effort": "none"}),
        ("effort", "high", {"reasoning_effort": "high"}),
        ("reasoning_object", "off", {"reasoning": {"effort": "none"}}),
        ("reasoning_object", "low", {"reasoning": {"effort": "low"}}),
        ("switch", "off", {"thinking": {"type": "disabled"}}),
        ("switch", "minimal", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("chat_template", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
        (
            "chat_template",
            "medium",
            {
                "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "medium"},
                "reasoning_effort": "medium",
            },
        ),
        ("groq", "off", {"reasoning_effort": "none"}),
        ("groq", "high", {"reasoning_effort": "default", "reasoning_format": "parsed"}),
        ("none", "high", {}),
    ],
)
def test_thinking_is_asked_for_in_the_words_of_the_server(
    style: ThinkingStyle, level: ThinkingLevel | None, fields: JsonObject
) -> None:
    api = create_openai_chat_api(ChatTraits(thinking=style))
    assert extra(ask(api=api, options=StreamOptions(thinking=level))) == fields


def test_gpt_oss_at_groq_takes_an_effort() -> None:
    options = StreamOptions(thinking="high")
    assert extra(ask(provider="groq", model="openai/gpt-oss-120b", options=options)) == {"reasoning_effort": "high"}


def test_a_model_that_never_thinks_is_not_told_to_stop() -> None:
    assert extra(ask(facts=ModelFacts(thinks=False), options=StreamOptions(thinking="off"))) == {}


@pytest.mark.parametrize(
    ("provider", "model", "field"),
    [
        ("openai-chat", "qwen3", "max_tokens"),
        ("openai-chat", "gpt-4o", "max_tokens"),
        ("github", "openai/gpt-5-mini", "max_completion_tokens"),
        ("github", "openai/o3", "max_completion_tokens"),
        ("litellm", "gpt-10", "max_completion_tokens"),
        ("azure", "my-deployment", "max_completion_tokens"),
        ("ollama", "gpt-5-like", "max_tokens"),
    ],
)
def test_the_limit_of_the_answer_has_the_name_that_the_server_takes(provider: str, model: str, field: str) -> None:
    options = StreamOptions(max_output_tokens=50)
    assert extra(ask(provider=provider, model=model, options=options))[field] == 50


def test_a_temperature_is_sent_unless_the_model_takes_none() -> None:
    options = StreamOptions(temperature=0.0)
    assert extra(ask(options=options)) == {"temperature": 0.0}
    assert extra(ask(options=options, facts=ModelFacts(takes_temperature=False))) == {}


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), (SCHEMA, False)])
def test_an_answer_is_held_to_a_schema_strictly_where_the_schema_allows_it(schema: JsonObject, strict: bool) -> None:
    options = StreamOptions(output_schema=schema)
    assert extra(ask(options=options))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": strict},
    }


def test_a_schema_is_not_sent_where_it_would_keep_the_model_from_calling_tools() -> None:
    options = StreamOptions(output_schema=CLOSED)
    held = {name for name in SERVERS if name != "openai" and "response_format" in _request(name, options).body}
    assert held == {"azure", "github", "openrouter", "xai"}
    assert extra(ask(options=options, facts=ModelFacts(enforces_schema=False))) == {}


def _request(name: str, options: StreamOptions) -> ApiRequest:
    api = SERVERS[name].api()
    if api.name != "openai-chat":
        return ApiRequest("", {})
    return ask(provider=name, tools=(TOOL,), options=options)


# Caches


def test_requests_of_one_conversation_find_their_cache() -> None:
    options = StreamOptions(conversation_id="run-1")
    assert ask(provider="mistral", options=options).headers == {"x-affinity": "run-1"}
    assert ask(provider="xai", options=options).headers == {"x-grok-conv-id": "run-1"}
    assert ask(provider="azure", options=options).body["prompt_cache_key"] == "run-1"
    assert (extra(ask(options=options)), ask(options=options).headers) == ({}, {})


def test_claude_behind_openrouter_gets_three_marks() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    history = (user("hi"), answer(TextContent("Looking."), ToolCall("a", "list.files", "{}")), result("a"))
    body = ask(*history, provider="openrouter", model="anthropic/claude-x", system="Brief.", tools=(TOOL,)).body
    assert body["tools"][0]["cache_control"] == mark["cache_control"]
    assert body["messages"][0]["content"] == [{"type": "text", "text": "Brief.", **mark}]
    assert body["messages"][2]["content"] == [{"type": "text", "text": "Looking.", **mark}]
    assert str(body).count("ephemeral") == 3
    assert "ephemeral" not in str(ask(*history, provider="openrouter", model="qwen/qwen3", tools=(TOOL,)).body)


# Servers that want it otherwise


def test_mistral_is_not_asked_for_usage_which_it_tells_anyway() -> None:
    assert "stream_options" not in ask(provider="mistral").body


def test_a_litellm_proxy_gets_empty_tools_with_a_history_of_calls() -> None:
    history = (answer(ToolCall("a", "list.files", "{}")), result("a"))
    assert ask(*history, provider="litellm").body["tools"] == []
    assert "tools" not in ask(provider="litellm").body
    assert "tools" not in ask(*history).body


def test_keys_travel_in_the_header_that_the_server_reads() -> None:
    assert SERVERS["groq"].api().authentication("k") == {"authorization": "Bearer k"}
    assert SERVERS["azure"].api().authentication("k") == {"api-key": "k"}


def test_half_a_surrogate_pair_is_sent_nowhere() -> None:
    tool = replace(TOOL, description="x\ud83d", parameters={"type": "object", "description": "\ud83d"})
    options = StreamOptions(output_schema={"type": "object", "title": "\ud83d"})
    messages = (user("\ud83d"), answer(TextContent("\ud83d"), ToolCall("a", "\ud83d", '{"a": "\ud83d"}')), result("a"))
    body = ask(*messages, system="\ud83d", tools=(tool,), provider="xai", options=options).body
    assert str(body).encode().count("�".encode()) == 7


# What was refused


@pytest.mark.parametrize(
    ("complaint", "field"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("Unsupported value: 'temperature' does not support 0.5", "temperature"),
        ("extra_forbidden: reasoning_effort", "reasoning_effort"),
        ("response_format json_schema is not supported", "response_format"),
        ("Unknown parameter: prompt_cache_key", "prompt_cache_key"),
    ],
)
def test_a_field_that_the_server_does_not_know_is_left_out(complaint: str, field: str) -> None:
    options = StreamOptions(temperature=0.5, thinking="high", output_schema=CLOSED, conversation_id="r")
    request = ask(provider="azure", options=options)
    relaxed = relax(request, refused(complaint))
    assert relaxed is not None
    assert set(request.body) - set(relaxed.body) == {field}


def test_the_limit_of_the_answer_is_renamed_and_never_left_out() -> None:
    request = ask(options=StreamOptions(max_output_tokens=9))
    complaint = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    relaxed = relax(request, refused(complaint))
    assert relaxed is not None
    assert extra(relaxed) == {"max_completion_tokens": 9}
    assert relax(relaxed, refused(complaint)) is None


def test_less_effort_is_tried_step_by_step() -> None:
    request: ApiRequest | None = ask(options=StreamOptions(thinking="off"))
    efforts = []
    while request is not None:
        efforts.append(request.body.get("reasoning_effort"))
        request = relax(request, refused("Unsupported value: 'reasoning_effort'"))
    assert efforts == ["none", "minimal", "low", None]


def test_thinking_that_must_go_back_is_not_left_out() -> None:
    request = ask(answer(ThinkingContent("hm", {"field": "reasoning_content"}), TextContent("so")))
    assert relax(request, refused("The reasoning_content must be passed back to the API")) is None
    relaxed = relax(request, refused("messages.0.reasoning_content: extra fields not permitted"))
    assert relaxed is not None
    assert relaxed.body["messages"] == [{"role": "assistant", "content": "so"}]
