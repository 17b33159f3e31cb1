"""Requests to Gemini and Vertex."""

from typing import Any

import pytest
from conversations import IMAGE, LS, NOW, offered, request_of, result, user

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from ci_agent.provider import Model, StreamOptions, ThinkingLevel
from ci_agent.providers.gemini.api import VERTEX, create_gemini_api
from ci_agent.providers.gemini.relaxations import relax
from ci_agent.providers.gemini.request import GeminiTraits
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.tool import Tool

INLINE = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
THIRD = "gemini-3-flash-preview"
SECOND = "gemini-2.5-pro"
SENTINEL = "skip_thought_signature_validator"


NOW_TOOL = offered("9 lives/now", "", {"type": "object", "properties": {}})


def answer(
    *content: AssistantContent, model: str = THIRD, provider: str = "gemini", stop: StopReason = "tool_use"
) -> AssistantMessage:
    return AssistantMessage(content, stop, provider, model, "gemini", NOW)


def ask(*messages: Message, model: str = THIRD, traits: GeminiTraits | None = None, **more: Any) -> ApiRequest:
    return request_of(create_gemini_api(traits), Model("gemini", model), *messages, **more)


def contents(*messages: Message, model: str = THIRD) -> list[Json]:
    found: list[Json] = ask(*messages, model=model).body["contents"]
    return found


def part(part: JsonObject, role: str = "user") -> JsonObject:
    return {"role": role, "parts": [part]}


CONVERSATION = (
    user("Look \ud800here", IMAGE),
    answer(
        ThinkingContent("a summary"),
        ThinkingContent("half \ud83d", {"thoughtSignature": "aGFsZg=="}),
        ThinkingContent("kept", {"thoughtSignature": "dGg="}),
        TextContent("I list", {"thoughtSignature": "dHg="}),
        ToolCall("fc-1", "ls", '{"path": "a"}', {"thoughtSignature": "c2ln/+=="}),
        ToolCall("fc-2", "9 lives/now", ""),
        TextContent("", {"thoughtSignature": "dGFpbA=="}),
    ),
    result("fc-1", TextContent("a.py"), TextContent("b.py"), IMAGE),
    result("fc-2", TextContent("no time"), name="9 lives/now", is_error=True),
    user("go on"),
    user("please"),
)


def test_a_whole_conversation_of_the_same_model_goes_back_as_it_came() -> None:
    schema: JsonObject = {"type": "object", "properties": {"ok": {"const": "yes"}}, "required": ["ok"]}
    options = StreamOptions(0.2, 900, "high", schema)
    request = ask(*CONVERSATION, system="Be brief.", tools=(LS, NOW_TOOL), options=options)
    assert request.path == "/models/gemini-3-flash-preview:streamGenerateContent?alt=sse"
    assert request.tool_names == {"ls": "ls", "_9_lives_now": "9 lives/now"}
    assert request.headers == {}
    assert request.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look \ufffdhere"}, INLINE]},
            {
                "role": "model",
                "parts": [
                    {"text": "kept", "thought": True, "thoughtSignature": "dGg="},
                    {"text": "I list", "thoughtSignature": "dHg="},
                    {
                        "functionCall": {"id": "fc-1", "name": "ls", "args": {"path": "a"}},
                        "thoughtSignature": "c2ln/+==",
                    },
                    {"functionCall": {"id": "fc-2", "name": "_9_lives_now", "args": {}}},
                    {"text": "", "thoughtSignature": "dGFpbA=="},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "fc-1",
                            "name": "ls",
                            "response": {"output": "a.py\nb.py"},
                            "parts": [INLINE],
                        }
                    },
                    {"functionResponse": {"id": "fc-2", "name": "_9_lives_now", "response": {"error": "no time"}}},
                ],
            },
            {"role": "user", "parts": [{"text": "go on"}, {"text": "please"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "ls",
                        "description": "Lists files.",
                        "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
                    },
                    {
                        "name": "_9_lives_now",
                        "description": "",
                        "parametersJsonSchema": {"type": "object", "properties": {}},
                    },
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 900,
            "temperature": 0.2,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object", "properties": {"ok": {"enum": ["yes"]}}, "required": ["ok"]},
        },
    }


def test_what_another_model_made_loses_its_data_and_the_first_call_says_so() -> None:
    assert contents(*CONVERSATION, model="gemini-3.1-pro-preview")[1:3] == [
        {
            "role": "model",
            "parts": [
                {"text": "a summary"},
                {"text": "half \ufffd"},
                {"text": "kept"},
                {"text": "I list"},
                {"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": SENTINEL},
                {"functionCall": {"name": "_9_lives_now", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": "a.py\nb.py"}, "parts": [INLINE]}},
                {"functionResponse": {"name": "_9_lives_now", "response": {"error": "no time"}}},
            ],
        },
    ]


def test_older_models_get_no_word_for_a_missing_signature_and_images_by_themselves() -> None:
    assert contents(*CONVERSATION, model=SECOND)[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "a summary"},
                {"text": "half \ufffd"},
                {"text": "kept"},
                {"text": "I list"},
                {"functionCall": {"name": "ls", "args": {"path": "a"}}},
                {"functionCall": {"name": "_9_lives_now", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": "a.py\nb.py"}}},
                {"functionResponse": {"name": "_9_lives_now", "response": {"error": "no time"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "Images of the tool results above:"}, INLINE]},
        {"role": "user", "parts": [{"text": "go on"}, {"text": "please"}]},
    ]


def test_no_id_is_invented_where_none_came() -> None:
    calls = answer(ToolCall("", "ls", '{"path": "a"}', {"thoughtSignature": "cw=="}), ToolCall("", "ls", "{}"))
    assert contents(user("hi"), calls, result("", TextContent("1")), result("", TextContent("2")))[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": "cw=="},
                {"functionCall": {"name": "ls", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": "1"}}},
                {"functionResponse": {"name": "ls", "response": {"output": "2"}}},
            ],
        },
    ]


def test_an_id_that_came_twice_stays_with_the_first_call_and_the_second_gets_its_own() -> None:
    calls = answer(ToolCall("x", "ls", "{}"), ToolCall("x", "ls", "{}"))
    sent = contents(user("hi"), calls, result("x", TextContent("1")), result("x", TextContent("2")))[1:]
    called = [each["functionCall"]["id"] for each in sent[0]["parts"]]
    answered = [(each["functionResponse"]["id"], each["functionResponse"]["response"]) for each in sent[1]["parts"]]
    assert called[0] == "x"
    assert called[1] not in ("", "x")
    assert answered == [(called[0], {"output": "1"}), (called[1], {"output": "2"})]


def test_every_call_has_a_result_and_failed_turns_are_gone() -> None:
    failed = answer(ToolCall("f", "ls", "{}"), stop="error")
    missing = answer(ToolCall("a", "ls", '{"path": "half'))
    assert contents(user("hi"), failed, missing)[1:] == [
        part({"functionCall": {"id": "a", "name": "ls", "args": {"invalid_json": '{"path": "half'}}}, "model"),
        part(
            {
                "functionResponse": {
                    "id": "a",
                    "name": "ls",
                    "response": {"error": "No result: the call was not executed."},
                }
            }
        ),
    ]


def test_a_model_never_speaks_twice_in_a_row_and_never_says_nothing() -> None:
    thought = answer(ThinkingContent("hm"), stop="length")
    assert contents(user("hi"), answer(TextContent("a")), answer(TextContent("b")), thought, user("more")) == [
        part({"text": "hi"}),
        {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]},
        part({"text": "more"}),
    ]
    assert contents(user("hi"), thought) == [part({"text": "hi"})]


def test_a_plain_request_holds_nothing_that_nobody_asked_for() -> None:
    assert ask().body == {"contents": [part({"text": "hi"})]}


# Thinking


@pytest.mark.parametrize(
    ("model", "level", "config"),
    [
        ("gemini-2.5-flash", "off", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-flash", "minimal", {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-2.5-flash", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-2.5-pro", "off", {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-2.5-pro", "medium", {"includeThoughts": True, "thinkingBudget": 8_192}),
        ("gemini-3-flash-preview", "off", {"includeThoughts": False, "thinkingLevel": "MINIMAL"}),
        ("gemini-3-flash-preview", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        ("gemini-3.1-pro-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-4-argon", "off", {"includeThoughts": False, "thinkingLevel": "LOW"}),
        ("gemini-flash-latest", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-2.0-flash", "high", None),
        ("gemini-1.5-pro", "off", None),
    ],
)
def test_each_generation_is_told_to_think_in_its_own_way(
    model: str, level: ThinkingLevel, config: JsonObject | None
) -> None:
    body = ask(model=model, options=StreamOptions(thinking=level)).body
    assert body.get("generationConfig", {}).get("thinkingConfig") == config


def test_thinking_leaves_half_of_what_may_be_said_to_the_answer() -> None:
    options = StreamOptions(max_output_tokens=2_000, thinking="high")
    assert ask(model=SECOND, options=options).body["generationConfig"] == {
        "maxOutputTokens": 2_000,
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1_000},
    }


def test_a_model_that_is_known_not_to_think_is_not_told_to() -> None:
    facts = ModelFacts(thinks=False, takes_temperature=False)
    assert "generationConfig" not in ask(options=StreamOptions(0.5, None, "high"), facts=facts).body


# The schema of the answer


@pytest.mark.parametrize(
    ("model", "tools", "facts", "is_sent"),
    [
        (SECOND, (), ModelFacts(), True),
        (SECOND, (LS,), ModelFacts(), False),
        (THIRD, (LS,), ModelFacts(), True),
        (THIRD, (), ModelFacts(enforces_schema=False), False),
    ],
)
def test_the_schema_of_the_answer_goes_along_with_tools_only_to_newer_models(
    model: str, tools: tuple[Tool, ...], facts: ModelFacts, is_sent: bool
) -> None:
    options = StreamOptions(output_schema={"type": "object"})
    config = ask(model=model, tools=tools, options=options, facts=facts).body.get("generationConfig", {})
    assert ("responseJsonSchema" in config, "responseMimeType" in config) == (is_sent, is_sent)


# Servers and names


def test_a_server_that_knows_no_json_schema_gets_the_subset_of_openapi() -> None:
    exact = offered("ls", "Lists.", {"type": "object", "properties": {"a": {"const": "x"}}})
    request = ask(tools=(exact, NOW_TOOL), traits=GeminiTraits(takes_json_schema=False))
    assert request.body["tools"][0]["functionDeclarations"] == [
        {
            "name": "ls",
            "description": "Lists.",
            "parameters": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}},
        },
        {"name": "_9_lives_now", "description": ""},
    ]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-3-pro", "/models/gemini-3-pro"),
        ("models/gemini-3-pro", "/models/gemini-3-pro"),
        ("tunedModels/my one", "/tunedModels/my%20one"),
        ("../../evil?x=1#", "/models/..%2F..%2Fevil%3Fx%3D1%23"),
        ("a:b", "/models/a%3Ab"),
    ],
)
def test_the_path_is_made_of_the_model_and_of_nothing_else(model: str, path: str) -> None:
    assert ask(model=model).path == f"{path}:streamGenerateContent?alt=sse"


def test_names_that_the_api_takes_stay_as_they_are() -> None:
    tool = offered("fs.read:v2-x", "", {"type": "object"})
    assert ask(tools=(tool,)).tool_names == {"fs.read:v2-x": "fs.read:v2-x"}


@pytest.mark.parametrize(
    ("traits", "key", "headers"),
    [
        (None, "AIzaSy", {"x-goog-api-key": "AIzaSy"}),
        (VERTEX, "ya29.token", {"authorization": "Bearer ya29.token"}),
        (VERTEX, "AIzaSy", {"x-goog-api-key": "AIzaSy"}),
        (VERTEX, "AQ.key", {"x-goog-api-key": "AQ.key"}),
    ],
)
def test_a_key_travels_in_the_header_of_its_kind(
    traits: GeminiTraits | None, key: str, headers: dict[str, str]
) -> None:
    assert create_gemini_api(traits).authentication(key) == headers


# What a server complains of


def refused(text: str, status: int = 400) -> ApiError:
    return ApiError("request", f"HTTP {status} INVALID_ARGUMENT: {text}", retryable=False, status=status)


def relaxed(request: ApiRequest, text: str) -> JsonObject:
    lesser = relax(request, refused(text))
    assert lesser is not None
    return lesser.body


def test_a_missing_signature_is_replaced_by_the_word_for_it_and_then_all_are() -> None:
    unsigned = answer(ToolCall("", "ls", "{}"), ToolCall("", "ls", "{}"))
    signed = answer(
        TextContent("so", {"thoughtSignature": "dA=="}), ToolCall("", "ls", "{}", {"thoughtSignature": "cw"})
    )
    request = ask(user("hi"), unsigned, user("more"), signed)
    once = relax(request, refused("Function call is missing a thought_signature in functionCall parts"))
    assert once is not None
    assert [content["parts"] for content in once.body["contents"] if content["role"] == "model"] == [
        [
            {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": SENTINEL},
            {"functionCall": {"name": "ls", "args": {}}},
        ],
        [
            {"text": "so", "thoughtSignature": "dA=="},
            {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "cw"},
        ],
    ]
    assert [
        content["parts"]
        for content in relaxed(once, "Thought signature is not valid")["contents"]
        if content["role"] == "model"
    ][1] == [{"text": "so"}, {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": SENTINEL}]


def test_refused_schemas_become_the_subset_of_openapi() -> None:
    request = ask(tools=(LS, NOW_TOOL))
    assert relaxed(request, 'Unknown name "parametersJsonSchema" at tools[0].function_declarations[0]')["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "ls",
                    "description": "Lists files.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
                {"name": "_9_lives_now", "description": ""},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("Function calling with a response mime type: 'application/json' is unsupported", "responseJsonSchema"),
        ("response_schema is too complex", "responseMimeType"),
        ("temperature must not be set", "temperature"),
    ],
)
def test_what_can_be_done_without_is_left_out(text: str, left_out: str) -> None:
    request = ask(options=StreamOptions(0.5, 10, "high", {"type": "object"}))
    assert left_out in request.body["generationConfig"]
    assert left_out not in relaxed(request, text)["generationConfig"]


def test_a_refused_level_becomes_one_that_all_know_and_then_none() -> None:
    request = ask(options=StreamOptions(thinking="medium"))
    text = "Thinking level MEDIUM is not supported for this model"
    once = relax(request, refused(text))
    assert once is not None
    assert once.body["generationConfig"] == {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}}
    assert "generationConfig" not in relaxed(once, text)


def test_a_model_without_a_system_prompt_reads_it_first() -> None:
    assert relaxed(ask(system="Be brief."), "Developer instruction is not enabled for models/gemma") == {
        "contents": [{"role": "user", "parts": [{"text": "Be brief."}, {"text": "hi"}]}]
    }


@pytest.mark.parametrize(("text", "status"), [("no such thing", 400), ("temperature", 401), ("thinking", 400)])
def test_what_cannot_be_mended_stays_refused(text: str, status: int) -> None:
    assert relax(ask(), refused(text, status)) is None


def test_asking_for_less_and_less_comes_to_an_end() -> None:
    options = StreamOptions(0.5, 10, "medium", {"type": "object"})
    request: ApiRequest | None = ask(*CONVERSATION, system="Be brief.", tools=(LS,), options=options)
    everything = "thought_signature response_schema function_declarations thinking temperature system instruction"
    for _ in range(20):
        assert request is not None
        request = relax(request, refused(everything))
        if request is None:
            return
    raise AssertionError("it never ends")
