"""One message asked for at a server that fails in every way: what is tried again, what is told, what it costs."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest

from ci_agent.messages import AssistantMessage, TextContent, ToolCall, Usage
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
    StreamDone,
    StreamNotice,
    StreamOptions,
    StreamStart,
)
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts, Price
from ci_agent.providers.openai_chat.traits import ChatTraits
from ci_agent.providers.retry import RetryPolicy
from ci_agent.providers.stream import without_key

if TYPE_CHECKING:
    from tests.conftest import Answer, Faults
    from tests.providers.conftest import Client

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "sk-test-0123456789abcdef"


def test_an_answer_is_the_events_of_its_parts_and_then_the_message(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.answer("Hello."))
    outcome = client.ask(client.stream(server.url), options=StreamOptions(temperature=0.5, max_output_tokens=9))
    message = AssistantMessage(
        content=(TextContent("Hello."),),
        stop_reason="stop",
        provider="openai-chat",
        model="m",
        api="openai-chat",
        timestamp=NOW,
        usage=Usage(10, 2, cost_usd=14.0),
        response_id="r1",
    )
    assert outcome.events == [
        StreamStart(),
        ContentStart("text", 0),
        ContentDelta("text", 0, "Hello."),
        ContentEnd("text", 0),
        StreamDone(message),
    ]
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"].startswith("ci-agent/")
    assert (request.json["model"], request.json["temperature"], request.json["stream"]) == ("m", 0.5, True)


def test_without_a_key_no_header_claims_one(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.answer())
    client.ask(client.stream(server.url, key=None))
    assert "authorization" not in server.requests[0].headers


def test_half_a_character_is_sent_as_its_replacement(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.answer())
    assert client.ask(client.stream(server.url), system="a\ud800b").text == "Hello."
    assert server.requests[0].json["messages"][0]["content"] == "a\ufffdb"


def retry_info(delay: str) -> str:
    return json.dumps({"error": {"code": 429, "message": "slow", "details": [{"retryDelay": delay}]}})


SHORT_WAITS: "dict[str, Callable[[Faults], Answer]]" = {
    "retry-after-ms": lambda f: f.reply(429, "slow", retry_after_ms="20", retry_after="50"),
    "seconds": lambda f: f.reply(429, "slow", retry_after="0.02"),
    "date": lambda f: f.reply(429, "slow", retry_after=format_datetime(NOW + timedelta(seconds=0))),
    "RetryInfo": lambda f: f.reply(429, retry_info("0.020000000s")),
    "text": lambda f: f.error(429, "Please retry after 20 ms."),
}


@pytest.mark.parametrize("form", SHORT_WAITS)
def test_a_wait_that_the_server_asks_for_is_waited(faults: "Faults", client: "Client", form: str) -> None:
    server = faults.serve(SHORT_WAITS[form](faults), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, len(server.requests)) == ("Hello.", 2)
    assert [notice.about for notice in outcome.notices] == ["retry"]
    assert outcome.notices[0].text.startswith("attempt 2 of 5 in 0.0 s: HTTP 429")


LONG_WAITS: "dict[str, Callable[[Faults], Answer]]" = {
    "retry-after-ms": lambda f: f.reply(429, "slow", retry_after_ms="90000", retry_after="1"),
    "seconds": lambda f: f.reply(429, "slow", retry_after="90"),
    "date": lambda f: f.reply(429, "slow", retry_after=format_datetime(NOW + timedelta(seconds=90))),
    "RetryInfo": lambda f: f.reply(429, retry_info("90.000000000s")),
    "text": lambda f: f.error(429, "Try again in 90 seconds."),
}


@pytest.mark.parametrize("form", LONG_WAITS)
def test_a_wait_that_is_too_long_is_not_waited_but_told(faults: "Faults", client: "Client", form: str) -> None:
    server = faults.serve(LONG_WAITS[form](faults), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert "(the server asks to wait 90 s, and the longest wait is 60 s)" in outcome.error
    assert (outcome.message.error_retryable, len(server.requests), outcome.notices) == (True, 1, [])


@pytest.mark.parametrize("status", [408, 409, 424, 429, 500, 502, 503, 504, 529])
def test_a_status_that_may_pass_is_tried_again(faults: "Faults", client: "Client", status: int) -> None:
    server = faults.serve(faults.error(status, "not now"), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, len(server.requests)) == ("Hello.", 2)
    assert outcome.notices == [StreamNotice("retry", f"attempt 2 of 5 in 0.0 s: HTTP {status}: not now")]
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.parametrize(
    ("status", "code", "headers"),
    [
        (429, "insufficient_quota", {}),
        (429, "insufficient_quota", {"x_should_retry": "true"}),
        (401, "invalid_api_key", {}),
        (402, None, {}),
        (403, None, {}),
        (404, None, {}),
        (400, None, {}),
        (500, None, {"x_should_retry": "false"}),
        (429, None, {"x_should_retry": "false"}),
    ],
)
def test_what_waiting_cannot_help_is_asked_once(
    faults: "Faults", client: "Client", status: int, code: str | None, headers: dict[str, str]
) -> None:
    server = faults.serve(faults.error(status, "No.", code=code, **headers))
    outcome = client.ask(client.stream(server.url))
    assert outcome.error == f"HTTP {status}{f' {code}' if code else ''}: No."
    assert (len(server.requests), outcome.message.error_retryable, outcome.notices) == (1, False, [])


def test_a_server_that_says_so_is_tried_again(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.error(400, "Odd.", x_should_retry="true"), faults.answer())
    assert client.ask(client.stream(server.url)).text == "Hello."


def test_attempts_are_counted_and_then_given_up(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.error(500, "broken"))
    outcome = client.ask(client.stream(server.url, policy=RetryPolicy(attempts=3)))
    assert outcome.error == "HTTP 500: broken (gave up after 3 attempts)"
    assert (len(server.requests), len(outcome.notices), outcome.message.error_retryable) == (3, 2, True)
    assert outcome.message.usage == Usage(cost_usd=0.0)


def chunk(content: str, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": content}}], **more}


def test_a_stream_that_is_cut_begins_anew_and_its_cost_is_added(faults: "Faults", client: "Client") -> None:
    told = {"usage": {"prompt_tokens": 100, "completion_tokens": 7}}
    cut = faults.stream(faults.events(chunk("Hel", **told), done=False), "reset")
    server = faults.serve(cut, faults.answer("Hello."))
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, len(server.requests)) == ("Hello.", 2)
    assert outcome.message.usage == Usage(110, 9, cost_usd=128.0)


def test_a_cut_stream_that_told_no_cost_is_estimated(faults: "Faults", client: "Client") -> None:
    cut = faults.stream(faults.events(chunk("Hello, it is"), done=False))
    server = faults.serve(cut, faults.answer("Hello."))
    usage = client.ask(client.stream(server.url)).message.usage
    assert (usage.estimated, usage.input_tokens > 10, usage.output_tokens) == (True, True, 2 + 3)


def test_what_had_arrived_is_in_the_failure(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.stream(faults.events(chunk("Hel"), done=False)))
    outcome = client.ask(client.stream(server.url, policy=RetryPolicy(attempts=1)))
    assert (outcome.text, outcome.message.stop_reason, outcome.message.error_retryable) == ("Hel", "error", True)
    assert "ended before the message did" in outcome.error


def test_a_reset_before_the_head_is_tried_again(faults: "Faults", client: "Client") -> None:
    server = faults.serve(["reset"], ["close"], [b"HTTP/1.1 200 OK\r\ncontent-ty", "close"], faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, len(server.requests), len(outcome.notices)) == ("Hello.", 4, 3)
    assert all("the connection to 127.0.0.1:" in notice.text for notice in outcome.notices)


PAGE = "<html><head><title>Bad\n gateway</title></head><body>SECRET</body></html>"


def test_a_page_of_html_is_named_and_not_shown(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(502, PAGE, content_type="text/html"), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert outcome.text == "Hello."
    assert outcome.notices[0].text == "attempt 2 of 5 in 0.0 s: HTTP 502: a page called 'Bad\\n gateway'"


def test_a_page_in_place_of_an_answer_asks_for_the_base_url(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200, PAGE, content_type="text/html; charset=utf-8"))
    outcome = client.ask(client.stream(server.url))
    assert "is the base URL right?" in outcome.error
    assert "SECRET" not in outcome.error
    assert (len(server.requests), outcome.message.error_retryable) == (1, False)


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/octet-stream"])
def test_an_empty_answer_is_tried_again(faults: "Faults", client: "Client", content_type: str) -> None:
    server = faults.serve(faults.reply(200, content_type=content_type), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, len(server.requests)) == ("Hello.", 2)


COMPLETION = {
    "choices": [{"message": {"role": "assistant", "content": "Whole."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}


def test_one_json_value_is_an_answer_as_well(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.reply(200, json.dumps(COMPLETION), content_type="Application/JSON; charset=utf-8"))
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, outcome.message.usage.input_tokens) == ("Whole.", 3)


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", ""])
def test_one_json_value_is_an_answer_whatever_it_is_called(
    faults: "Faults", client: "Client", content_type: str
) -> None:
    body = "\n " + json.dumps(COMPLETION)
    server = faults.serve(faults.reply(200, body, content_type=content_type))
    assert client.ask(client.stream(server.url)).text == "Whole."


@pytest.mark.parametrize("content_type", ["text/plain", "", "text/event-stream", "Text/Event-Stream; charset=utf-8"])
def test_events_are_an_answer_whatever_they_are_called(faults: "Faults", client: "Client", content_type: str) -> None:
    server = faults.serve(faults.reply(200, b"\n\n: hi\n\n" + faults.chat("Hello."), content_type=content_type))
    assert client.ask(client.stream(server.url)).text == "Hello."


@pytest.mark.parametrize("body", ["", "{", '{"choices": ['])
def test_json_that_is_cut_is_tried_again(faults: "Faults", client: "Client", body: str) -> None:
    server = faults.serve(faults.reply(200, body, content_type="application/json"), faults.answer())
    assert client.ask(client.stream(server.url)).text == "Hello."


def test_an_error_that_comes_as_success_is_one(faults: "Faults", client: "Client") -> None:
    body = json.dumps({"error": {"message": "Upstream died.", "code": 502}})
    server = faults.serve(faults.reply(200, body, content_type="application/json"), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert (outcome.text, len(server.requests)) == ("Hello.", 2)
    assert "Upstream died." in outcome.notices[0].text


@pytest.mark.parametrize(("code", "requests"), [("server_error", 2), ("insufficient_quota", 1)])
def test_an_error_within_a_stream_counts_by_what_it_is(
    faults: "Faults", client: "Client", code: str, requests: int
) -> None:
    bad = {"error": {"message": "Enough.", "code": code}}
    server = faults.serve(faults.stream(faults.events(chunk("Hel"), bad, done=False)), faults.answer())
    outcome = client.ask(client.stream(server.url))
    assert len(server.requests) == requests
    assert (outcome.text == "Hello.") == (requests == 2)


def test_what_a_server_does_not_take_is_left_out_now_and_from_then_on(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.error(400, "Unsupported parameter: 'temperature'"), faults.answer())
    stream = client.stream(server.url, policy=RetryPolicy(attempts=1))
    outcome = client.ask(stream, options=StreamOptions(temperature=0.5))
    assert outcome.text == "Hello."
    assert outcome.notices == [
        StreamNotice("retry", "asked again with less, because of HTTP 400: Unsupported parameter: 'temperature'")
    ]
    assert client.ask(stream, options=StreamOptions(temperature=0.5)).notices == []
    assert ["temperature" in request.json for request in server.requests] == [True, False, False]


def test_several_complaints_are_met_one_after_the_other_and_end(faults: "Faults", client: "Client") -> None:
    server = faults.serve(
        faults.error(400, "temperature?"), faults.error(400, "stream_options?"), faults.error(400, "temperature!")
    )
    outcome = client.ask(client.stream(server.url, traits=ChatTraits()), options=StreamOptions(temperature=0.5))
    assert (outcome.error, len(server.requests)) == ("HTTP 400: temperature!", 3)
    assert "stream_options" not in server.requests[2].json


def test_a_request_that_is_too_long_is_told_as_that(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.error(400, "too long", code="context_length_exceeded"))
    last = client.ask(client.stream(server.url)).events[-1]
    assert (getattr(last, "is_overflow", None), len(server.requests)) == (True, 1)


def test_calls_get_their_tools_own_names(faults: "Faults", client: "Client") -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    server = faults.serve(faults.answer("", finish="tool_calls", tool_calls=[call]))
    message = client.ask(client.stream(server.url)).message
    assert (message.content, message.stop_reason) == ((ToolCall("c1", "read", '{"path": "a"}'),), "tool_use")


ECHOES: "dict[str, Callable[[Faults], Answer]]" = {
    "error": lambda f: f.error(401, f"Your key {KEY} is wrong."),
    "cut": lambda f: f.error(500, "x" * 350 + f" {KEY} " + "y" * 300),
    "page": lambda f: f.reply(403, f"<title>{KEY}</title>", content_type="text/html"),
    "text": lambda f: f.reply(500, f"Bearer {KEY}"),
    "stream": lambda f: f.stream(f.events({"error": {"message": KEY}})),
    "no JSON": lambda f: f.stream(f.events(f"Bearer {KEY}")),
    "JSON": lambda f: f.reply(200, f"Bearer {KEY}", content_type="application/json"),
    "redirect": lambda f: f.reply(302, location=f"https://{KEY}.example/{KEY}"),
    "encoding": lambda f: f.reply(200, "x", content_encoding=KEY),
    "status line": lambda _: [f"HTTP/1.1 {KEY}\r\n\r\n".encode(), "close"],
    "header": lambda _: [f"HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n".encode(), "close"],
    "refusal": lambda f: f.answer("", refusal=f"no\n{KEY}"),
    "reason": lambda f: f.answer("x", finish=KEY),
}


@pytest.mark.parametrize("where", ECHOES)
def test_a_key_that_a_server_sends_back_is_never_shown(faults: "Faults", client: "Client", where: str) -> None:
    server = faults.serve(ECHOES[where](faults))
    stream = client.stream(server.url, policy=RetryPolicy(attempts=2))
    outcome = client.ask(stream)
    assert outcome.error
    told = [outcome.error, *(notice.text for notice in outcome.notices)]
    assert "0123456789" not in repr((stream, told))
    assert all(text.isprintable() for text in told)


def test_a_key_that_cannot_stand_in_a_header_is_never_shown(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.answer())
    outcome = client.ask(client.stream(server.url, key="sk-0123456789\r\nx: y", policy=RetryPolicy(attempts=1)))
    assert "0123456789" not in repr(outcome)
    assert server.requests == []


@pytest.mark.parametrize(
    ("text", "key", "shown"),
    [
        ("no key", None, "no key"),
        ("no key", "", "no key"),
        ("a short, a word", "short", "a [the key], a word"),
        ("Bearer x in text x-y", "x", "Bearer [the key] in text [the key]-y"),
        ('"$a.b*"', "$a.b*", '"[the key]"'),
        ('"sk-test-0123456789abcdef" and sk-test-…', KEY, '"[the key]" and [the key]'),
        ("sk-test sk", KEY, "sk-test sk"),
    ],
)
def test_a_key_is_left_out_of_a_text_also_where_it_was_cut(text: str, key: str | None, shown: str) -> None:
    assert without_key(text, key) == shown


@pytest.mark.parametrize(
    ("facts", "cost"), [(ModelFacts(price=Price(input=1e6, output=2e6)), 14.0), (UNKNOWN_MODEL, 0.25)]
)
def test_what_a_server_says_of_the_cost_counts_only_where_no_price_is_known(
    faults: "Faults", client: "Client", facts: ModelFacts, cost: float
) -> None:
    said = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.25}}
    server = faults.serve(faults.stream(faults.events(said, usage)))
    assert client.ask(client.stream(server.url, facts=facts)).message.usage == Usage(10, 2, cost_usd=cost)
