"""Requests to the Messages API."""

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
from ci_agent.providers.anthropic.api import create_anthropic_api
from ci_agent.providers.anthropic.models import can_enforce, claude_version
from ci_agent.providers.anthropic.relaxations import relax
from ci_agent.providers.anthropic.request import AnthropicTraits
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.wire.api import ApiRequest, Target

OLD, NEW = "claude-sonnet-4-5", "claude-opus-4-6"
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
MARK = {"cache_control": {"type": "ephemeral"}}
READ = offered("read", "Reads a file.", CLOSED)
DOTTED = offered("list.files", "Lists files.", {"type": "object", "anyOf": [{"required": ["a"]}]})


def answer(*content: AssistantContent, model: str = OLD) -> AssistantMessage:
    return AssistantMessage(content, "tool_use", "anthropic", model, "anthropic-messages", NOW)


def ask(*messages: Message, model: str = OLD, traits: AnthropicTraits | None = None, **more: Any) -> ApiRequest:
    api = create_anthropic_api(traits or AnthropicTraits(takes_cache_control=False))
    return request_of(api, Model("anthropic", model), *messages, **more)


def sent(*messages: Message, **more: Any) -> list[Json]:
    found: list[Json] = ask(*messages, **more).body["messages"]
    return found


def extra(request: ApiRequest) -> JsonObject:
    """What a request says besides the conversation and its limit."""
    return besides(request, "model", "messages", "stream", "max_tokens", "tools")


def test_a_conversation_with_everything_in_it() -> None:
    request = ask(
        user("Compare ", ImageContent("image/png", "QUJD")),
        answer(
            ThinkingContent("Two \ud800 files.", {"signature": "c2ln+/=="}),
            ThinkingContent("", {"block": {"type": "redacted_thinking", "data": "b3Bh"}}),
            TextContent("Both."),
            ToolCall("toolu_a", "read", '{"path": "a"}'),
            ToolCall("toolu_b", "list.files", "not json"),
        ),
        result("toolu_b", is_error=True),
        result("toolu_a", TextContent("A"), ImageContent("image/png", "QUJD")),
        user("Go on."),
        system="Be brief.",
        tools=(READ, DOTTED),
        traits=AnthropicTraits(),
        thinking="high",
        temperature=0.5,
    )
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    no_output = [{"type": "text", "text": "(no output)"}]
    assert request == ApiRequest(
        path="/v1/messages",
        headers={"anthropic-version": "2023-06-01", "anthropic-beta": "interleaved-thinking-2025-05-14"},
        tool_names={"read": "read", "list_files": "list.files"},
        body={
            "model": OLD,
            "max_tokens": 16_384,
            "stream": True,
            "thinking": {"type": "enabled", "budget_tokens": 8_192},
            "system": [{"type": "text", "text": "Be brief.", **MARK}],
            "tools": [
                {"name": "read", "description": "Reads a file.", "input_schema": CLOSED},
                request.body["tools"][1],
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Compare "}, picture]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Two \ud800 files.", "signature": "c2ln+/=="},
                        {"type": "redacted_thinking", "data": "b3Bh"},
                        {"type": "text", "text": "Both."},
                        {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {"path": "a"}},
                        {
                            "type": "tool_use",
                            "id": "toolu_b",
                            "name": "list_files",
                            "input": {"invalid_json": "not json"},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_a",
                            "content": [{"type": "text", "text": "A"}, picture],
                        },
                        {"type": "tool_result", "tool_use_id": "toolu_b", "content": no_output, "is_error": True},
                        {"type": "text", "text": "Go on.", **MARK},
                    ],
                },
            ],
        },
    )
    dotted = request.body["tools"][1]
    assert (dotted["name"], dotted["cache_control"]) == ("list_files", {"type": "ephemeral"})
    assert dotted["input_schema"]["type"] == "object"
    assert "anyOf" not in dotted["input_schema"]


def test_what_another_model_made_is_text_with_ids_that_the_api_takes() -> None:
    foreign = AssistantMessage(
        (
            ThinkingContent("Hm.", {"item": {"type": "reasoning", "encrypted_content": "x"}}),
            ThinkingContent("", {"item": {}}),
            ToolCall("call|1:" + "x" * 80, "read", "{}", {"id": "fc_1"}),
        ),
        "tool_use",
        "openai",
        "gpt",
        "openai-responses",
        NOW,
    )
    _, said, results = sent(user("hi"), foreign, result("call|1:" + "x" * 80, TextContent("A")))
    id_ = said["content"][1]["id"]
    assert said["content"] == [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": id_, "name": "read", "input": {}},
    ]
    assert results["content"][0]["tool_use_id"] == id_
    assert id_.replace("_", "").isalnum()
    assert len(id_) <= 64


def test_a_call_without_a_result_gets_one_and_failed_turns_are_left_out() -> None:
    failed = replace(answer(TextContent("half")), stop_reason="error")
    messages = sent(user("hi"), failed, user("again"), answer(ToolCall("t", "read", "{}")))
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["text"] for block in messages[0]["content"]] == ["hi", "again"]
    assert messages[2]["content"][0]["is_error"] is True


# Thinking in the history


def test_unsigned_thinking_is_text_unless_the_server_signs_nothing() -> None:
    said = answer(ThinkingContent("Hm."), TextContent("A"))
    bare = AnthropicTraits(takes_cache_control=False, signs_thinking=False)
    assert sent(user("hi"), said)[1]["content"][0] == {"type": "text", "text": "Hm."}
    assert sent(user("hi"), said, traits=bare)[1]["content"][0] == {"type": "thinking", "thinking": "Hm."}


def test_thinking_that_nothing_follows_is_left_out() -> None:
    signed = ThinkingContent("Hm.", {"signature": "s"})
    assert sent(user("hi"), answer(TextContent("A"), signed), user("go"))[1]["content"] == [
        {"type": "text", "text": "A"}
    ]
    assert sent(user("hi"), answer(signed), user("go")) == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "go"}]}
    ]


def test_the_servers_own_calls_go_back_with_their_results_or_not_at_all() -> None:
    used = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    answered = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    both = answer(ThinkingContent("", {"block": used}), ThinkingContent("", {"block": answered}), TextContent("A"))
    assert sent(user("hi"), both)[1]["content"] == [used, answered, {"type": "text", "text": "A"}]
    for half in (used, answered):
        alone = answer(ThinkingContent("", {"block": half}), TextContent("A"))
        assert sent(user("hi"), alone)[1]["content"] == [{"type": "text", "text": "A"}]


def test_a_model_with_a_budget_does_not_think_on_after_calls_without_thinking() -> None:
    went_on = (user("hi"), answer(ToolCall("t", "read", "{}")), result("t", TextContent("A")))
    assert "thinking" not in ask(*went_on, thinking="low").body
    assert ask(*went_on, model=NEW, thinking="low").body["thinking"]["type"] == "adaptive"
    assert "thinking" in ask(*went_on, user("more"), answer(TextContent("B")), user("go"), thinking="low").body


def test_citations_go_back_with_their_text() -> None:
    cited = answer(TextContent("A", {"citations": [{"url": "u"}]}))
    assert sent(user("hi"), cited)[1]["content"] == [{"type": "text", "text": "A", "citations": [{"url": "u"}]}]


# Thinking, temperature, limits


@pytest.mark.parametrize(
    ("model", "level", "fields"),
    [
        (OLD, None, {}),
        (OLD, "off", {}),
        (OLD, "minimal", {"thinking": {"type": "enabled", "budget_tokens": 1_024}}),
        (OLD, "low", {"thinking": {"type": "enabled", "budget_tokens": 2_048}}),
        ("deepseek-chat", "medium", {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
        (NEW, None, {}),
        (NEW, "off", {"thinking": {"type": "disabled"}}),
        *(
            (model, level, {"thinking": ADAPTIVE, "output_config": {"effort": word}})
            for model in (NEW, "claude-fable-5", "claude-mythos-preview")
            for level, word in (("minimal", "low"), ("low", "low"), ("medium", "medium"), ("high", "high"))
        ),
    ],
)
def test_each_level_of_thinking_in_the_words_of_each_model(
    model: str, level: ThinkingLevel | None, fields: JsonObject
) -> None:
    assert extra(ask(model=model, thinking=level)) == fields


def test_the_catalogue_knows_better_than_the_name() -> None:
    assert extra(ask(model=NEW, thinking="high", facts=ModelFacts(thinks=False))) == {}
    adaptive = ask(model="renamed", thinking="high", facts=ModelFacts(adaptive_thinking=True))
    assert adaptive.body["thinking"]["type"] == "adaptive"


@pytest.mark.parametrize(
    ("limit", "budget"), [(1_024, None), (1_025, 1_024), (3_000, 1_500), (20_000, 10_000), (64_000, 16_384)]
)
def test_the_budget_leaves_room_for_the_answer(limit: int, budget: int | None) -> None:
    body = ask(thinking="high", max_output_tokens=limit).body
    assert body["max_tokens"] == limit
    assert body.get("thinking", {}).get("budget_tokens") == budget


@pytest.mark.parametrize(("known", "limit"), [(None, 16_384), (4_096, 4_096), (128_000, 32_000)])
def test_there_is_always_a_limit(known: int | None, limit: int) -> None:
    assert ask(facts=ModelFacts(max_output_tokens=known)).body["max_tokens"] == limit


def test_a_temperature_is_sent_only_where_it_is_taken() -> None:
    assert ask(temperature=0.0).body["temperature"] == 0.0
    assert "temperature" not in ask(temperature=0.0, thinking="low").body
    assert "temperature" not in ask(temperature=0.0, facts=ModelFacts(takes_temperature=False)).body


def test_a_server_that_knows_no_cache_marks_gets_none() -> None:
    assert "cache_control" not in str(ask(system="S", tools=(READ,)).body)
    assert str(ask(system="S", tools=(READ,), traits=AnthropicTraits()).body).count("cache_control") == 3


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("claude-3-haiku@20240307", (3, 0)),
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-opus-4-1-20250805", (4, 1)),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", (4, 5)),
        ("anthropic/claude-opus-4.6", (4, 6)),
        ("claude-fable-5-1@default", (5, 1)),
        ("claude-opus-5", (5, 0)),
        ("claude-mythos-preview", None),
        ("deepseek-chat", None),
    ],
)
def test_a_version_is_read_out_of_any_spelling(model: str, version: tuple[int, int] | None) -> None:
    assert claude_version(model) == version


# Structured output


def test_a_schema_is_sent_when_the_api_can_hold_the_model_to_all_of_it() -> None:
    enforced = {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}
    assert extra(ask(output_schema=CLOSED)) == enforced
    assert extra(ask(model="claude-3-haiku", output_schema=CLOSED)) == {}
    assert extra(ask(model="claude-3-haiku", output_schema=CLOSED, facts=ModelFacts(enforces_schema=True))) == enforced
    assert extra(ask(output_schema=CLOSED, facts=ModelFacts(enforces_schema=False))) == {}
    both = ask(model=NEW, output_schema=CLOSED, thinking="low").body["output_config"]
    assert both == {"effort": "low", **enforced["output_config"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"properties": {"a": {"type": "string"}}},
        {**CLOSED, "minProperties": 1},
        {**CLOSED, "properties": {"a": {"type": "integer", "minimum": 1}}},
        {**CLOSED, "properties": {"a": {"type": "array", "items": {"type": "object"}}}},
        {**CLOSED, "properties": {"a": {"anyOf": [{"type": "string", "maxLength": 3}]}}},
        {**CLOSED, "properties": {"a": {"type": "string", "format": ["x"]}}},
        {**CLOSED, "properties": {"a": True}},
        {**CLOSED, "$defs": {"a": {"type": ["object", "null"]}}},
        {**CLOSED, "not": {}},
    ],
)
def test_a_schema_that_says_more_is_left_to_the_check_afterwards(schema: JsonObject) -> None:
    assert not can_enforce(schema, Target(Model("anthropic", OLD), "anthropic-messages"))


# What can be left out


def thought(model: str = OLD) -> tuple[Message, ...]:
    said = answer(ThinkingContent("Hm.", {"signature": "s"}), ToolCall("t", "read", "{}"), model=model)
    return (user("hi"), said, result("t", TextContent("A")))


def test_after_a_complaint_about_replayed_thinking_it_is_left_out() -> None:
    request = ask(*thought(), thinking="low", system="S")
    lesser = relax(request, refused("messages.1.content.0: Invalid `signature` in `thinking` block"))
    assert lesser is not None
    assert lesser.body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "t", "name": "read", "input": {}},
    ]
    assert "thinking" not in lesser.body
    assert {key: lesser.body[key] for key in ("system", "max_tokens")} == {
        key: request.body[key] for key in ("system", "max_tokens")
    }
    assert relax(lesser, refused("Invalid `signature` in `thinking` block")) is None


def test_a_model_that_decides_itself_thinks_on_without_its_earlier_thinking() -> None:
    changed = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
    lesser = relax(ask(*thought(NEW), model=NEW, thinking="low"), refused(changed))
    assert lesser is not None
    assert lesser.body["thinking"]["type"] == "adaptive"
    assert [block["type"] for block in lesser.body["messages"][1]["content"]] == ["tool_use"]


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("temperature is not supported by this model", {"temperature"}),
        ("output_config.format: unsupported schema", {"format", "schema"}),
        ("output_config.effort: not supported", {"effort"}),
        ("thinking.type: adaptive is not supported on this model", {"thinking", "display", "effort"}),
        ("tools.0.cache_control: extra inputs are not permitted", {"cache_control"}),
    ],
)
def test_what_the_server_names_is_left_out(message: str, gone: set[str]) -> None:
    request = ask(model=NEW, traits=AnthropicTraits(), system="S", tools=(READ,), thinking="low", output_schema=CLOSED)
    request = replace(request, body={**request.body, "temperature": 1})
    lesser = relax(request, refused(message))
    assert lesser is not None
    assert keys_of(request.body) - keys_of(lesser.body) == gone


def keys_of(value: Json) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(keys_of(inner) for inner in value.values()))
    return set[str]().union(*(keys_of(inner) for inner in value)) if isinstance(value, list) else set()


def test_a_beta_that_a_proxy_does_not_know_is_left_out() -> None:
    lesser = relax(ask(thinking="low"), refused("Unexpected value(s) for the `anthropic-beta` header"))
    assert lesser is not None
    assert lesser.headers == {"anthropic-version": "2023-06-01"}


def test_other_failures_change_nothing() -> None:
    request = ask(*thought(), thinking="low")
    assert relax(request, refused("Invalid signature", status=500)) is None
    assert relax(request, refused("max_tokens: too many")) is None
