"""What every provider promises to the loop, each one asked as a run asks it; servers over real connections."""

import base64
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from no_records import no_records

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamFn,
    StreamOptions,
    StreamStart,
)
from ci_agent.providers.outside import Outside
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.table import PROVIDERS, open_models
from ci_agent.tool import Tool, ToolResult

if TYPE_CHECKING:
    from tests.conftest import Answer, Faults

KEY = "sk-test-0123456789abcdef"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
ENVIRONMENT = {"GOOGLE_CLOUD_PROJECT": "p"}
ASKED = UserMessage((TextContent("What is here?"),), NOW)
ARGUMENTS = '{"path":"ä","n":1.0}'
"""What a round through a parser might change: a letter that is not ASCII, a number's form."""
PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc\xf8\x0f\0\x01\x01\x01\0"
    b"\x1b\xb6\xeeV\0\0\0\0IEND\xaeB`\x82"
).decode()


def _nothing(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: object) -> ToolResult:
    return ToolResult(())


LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"path": {"type": "string"}}}, _nothing)


# What each API says in the same three cases


@dataclass(frozen=True)
class Wire:
    """The bodies of one API: `text` says "Hello, wörld.", `call` calls `look` as `c1`; both used 7 and 3 tokens."""

    api: str
    content_type: str
    text: Sequence[bytes]
    """In pieces after each of which a stream may stall."""
    call: Sequence[bytes]
    keeps_arguments: bool = True
    """Whether arguments travel as text rather than as JSON values."""


def sse(data: Json, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chat(*deltas: JsonObject, finish: str) -> list[bytes]:
    chunks: list[Json] = [{"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({"id": "r1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    return [*map(sse, chunks), b"data: [DONE]\n\n"]


def chat_call(**call: Json) -> JsonObject:
    return {"tool_calls": [{"index": 0, **call}]}


CHAT = Wire(
    "openai-chat",
    "text/event-stream",
    chat({"role": "assistant", "content": "Hello, "}, {"content": "wörld."}, finish="stop"),
    chat(
        chat_call(id="c1", type="function", function={"name": "look", "arguments": ""}),
        chat_call(function={"arguments": ARGUMENTS[:9]}),
        chat_call(function={"arguments": ARGUMENTS[9:]}),
        finish="tool_calls",
    ),
)


def claude(block: JsonObject, *deltas: JsonObject, stop: str) -> list[bytes]:
    usage: JsonObject = {"input_tokens": 7, "output_tokens": 1}
    events: list[JsonObject] = [
        {"type": "message_start", "message": {"id": "r1", "model": "m", "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return [sse(event, str(event["type"])) for event in events]


ANTHROPIC = Wire(
    "anthropic-messages",
    "text/event-stream; charset=utf-8",
    claude(
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Hello, "},
        {"type": "text_delta", "text": "wörld."},
        stop="end_turn",
    ),
    claude(
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
        {"type": "input_json_delta", "partial_json": ARGUMENTS[:9]},
        {"type": "input_json_delta", "partial_json": ARGUMENTS[9:]},
        stop="tool_use",
    ),
)


def responses(item: JsonObject, whole: JsonObject, kind: str, *deltas: str) -> list[bytes]:
    where: JsonObject = {"output_index": 0, "item_id": "i1"}
    last = {"id": "r1", "status": "completed", "output": [whole], "usage": {"input_tokens": 7, "output_tokens": 3}}
    events: list[JsonObject] = [
        {"type": "response.created", "response": {"id": "r1", "model": "m", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", **where, "item": item},
        *({"type": f"response.{kind}.delta", **where, "content_index": 0, "delta": delta} for delta in deltas),
        {"type": "response.output_item.done", **where, "item": whole},
        {"type": "response.completed", "response": last},
    ]
    return [sse(event, str(event["type"])) for event in events]


_SAID: JsonObject = {"type": "message", "id": "i1", "role": "assistant"}
_CALLED: JsonObject = {"type": "function_call", "id": "i1", "call_id": "c1", "name": "look"}
RESPONSES = Wire(
    "openai-responses",
    "text/event-stream",
    responses(
        {**_SAID, "content": []},
        {**_SAID, "content": [{"type": "output_text", "text": "Hello, wörld.", "annotations": []}]},
        "output_text",
        "Hello, ",
        "wörld.",
    ),
    responses(
        {**_CALLED, "arguments": ""},
        {**_CALLED, "arguments": ARGUMENTS},
        "function_call_arguments",
        ARGUMENTS[:9],
        ARGUMENTS[9:],
    ),
)


def google(*parts: JsonObject) -> list[bytes]:
    chunks: list[JsonObject] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "responseId": "r1"}
        for part in parts
    ]
    counts: JsonObject = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    chunks.append({"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": counts})
    return [sse(chunk) for chunk in chunks]


GEMINI = Wire(
    "gemini",
    "text/event-stream",
    google({"text": "Hello, "}, {"text": "wörld."}),
    google({"functionCall": {"id": "c1", "name": "look", "args": json.loads(ARGUMENTS)}}),
    keeps_arguments=False,
)


def frame(kind: str, payload: JsonObject) -> bytes:
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in named.items()
    )
    data = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))


def converse(start: JsonObject | None, *deltas: JsonObject, stop: str) -> list[bytes]:
    begin = [] if start is None else [frame("contentBlockStart", {"contentBlockIndex": 0, "start": start})]
    return [
        frame("messageStart", {"role": "assistant"}),
        *begin,
        *(frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}) for delta in deltas),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("messageStop", {"stopReason": stop}),
        frame("metadata", {"usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}}),
    ]


BEDROCK = Wire(
    "bedrock-converse",
    "application/vnd.amazon.eventstream",
    converse(None, {"text": "Hello, "}, {"text": "wörld."}, stop="end_turn"),
    converse(
        {"toolUse": {"toolUseId": "c1", "name": "look"}},
        {"toolUse": {"input": ARGUMENTS[:9]}},
        {"toolUse": {"input": ARGUMENTS[9:]}},
        stop="tool_use",
    ),
)
SCRIPTED = "scripted"
OTHER_WIRES: Mapping[str, Wire] = {
    "openai": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "vertex": GEMINI,
    "bedrock": BEDROCK,
}
REPLAY = "replay"
SERVED = [word for word in PROVIDERS if word not in (SCRIPTED, REPLAY)]


def wire_of(word: str) -> Wire:
    return OTHER_WIRES.get(word, CHAT)


# Asking


@pytest.fixture
def open_stream() -> Iterator[Callable[[str, str, str | None], StreamFn]]:
    closers: list[Callable[[], None]] = []

    def call(word: str, name: str, base_url: str | None) -> StreamFn:
        key = None if word == SCRIPTED else KEY
        settings = ModelSettings(base_url=base_url, api_key=key, attempts=1)
        opened = open_models([Model(word, name)], settings, Outside(ENVIRONMENT, lambda: NOW, lambda: 0.0, no_records))
        closers.append(opened.close)
        return opened.stream_fn

    yield call
    for close in closers:
        close()


def asked(
    stream: StreamFn, word: str, name: str, *messages: Message, cancel: CancelToken | None = None
) -> list[StreamEvent]:
    """The events of one request, held to the protocol."""
    context = Context("Be brief.", (ASKED, *messages), (LOOK,))
    found = list(stream(Model(word, name), context, StreamOptions(), cancel or CancelToken()))
    assert_protocol(found)
    message = message_of(found)
    assert (message.provider, message.model) == (word, name)
    return found


def assert_protocol(events: Sequence[StreamEvent]) -> None:
    assert isinstance(events[0], StreamStart)
    assert [type(event) for event in events].count(StreamStart) == 1
    ends = [isinstance(event, StreamDone | StreamFailed) for event in events]
    assert ends == [False] * (len(events) - 1) + [True]
    begun: dict[int, str] = {}
    ended: set[int] = set()
    for event in events:
        match event:
            case ContentStart():
                assert event.index == len(begun)
                begun[event.index] = event.kind
            case ContentDelta() | ContentEnd():
                assert (begun[event.index], event.index in ended) == (event.kind, False)
                if isinstance(event, ContentEnd):
                    ended.add(event.index)
    assert not isinstance(events[-1], StreamDone) or ended == set(begun)


def message_of(events: Sequence[StreamEvent]) -> AssistantMessage:
    last = events[-1]
    assert isinstance(last, StreamDone | StreamFailed)
    return last.message


def deltas(events: Sequence[StreamEvent], kind: str) -> str:
    return "".join(event.delta for event in events if isinstance(event, ContentDelta) and event.kind == kind)


class Loopback:
    """Every provider at a server on this machine; the scripted one plays what the server would have said."""

    def __init__(self, faults: "Faults", open_stream: Callable[[str, str, str | None], StreamFn]) -> None:
        self.faults = faults
        self._open = open_stream

    def ask(self, word: str, *answers: "Answer", cancel: CancelToken | None = None) -> list[StreamEvent]:
        server = self.faults.serve(*answers)
        return asked(self._open(word, "m", server.url), word, "m", cancel=cancel)

    def play(
        self, folder: Path, script: JsonObject, *messages: Message, cancel: CancelToken | None = None
    ) -> list[StreamEvent]:
        file = folder / "script.yaml"
        file.write_text(json.dumps(script))
        return asked(self._open(SCRIPTED, str(file), None), SCRIPTED, str(file), *messages, cancel=cancel)

    def round(self, word: str, *answers: "Answer", result: ToolResultMessage) -> tuple[AssistantMessage, bytes]:
        """Ask, put the message and the result of its call into the conversation, ask again: the second request."""
        server = self.faults.serve(*answers)
        stream = self._open(word, "m", server.url)
        message = message_of(asked(stream, word, "m"))
        asked(stream, word, "m", message, result)
        return message, server.requests[-1].body

    def whole(self, wire: Wire, body: Sequence[bytes]) -> "Answer":
        return self.faults.reply(200, b"".join(body), content_type=wire.content_type)

    def in_single_bytes(self, wire: Wire, body: Sequence[bytes]) -> "Answer":
        head = self.faults.head(200, content_type=wire.content_type, transfer_encoding="chunked")
        return [head, b"".join(b"1\r\n%c\r\n" % byte for byte in b"".join(body)) + b"0\r\n\r\n"]


@pytest.fixture
def loopback(faults: "Faults", open_stream: Callable[[str, str, str | None], StreamFn]) -> Loopback:
    return Loopback(faults, open_stream)


USAGE: JsonObject = {"input_tokens": 7, "output_tokens": 3}


# Messages


@pytest.mark.parametrize("word", SERVED)
def test_a_text_arrives_in_pieces_and_whole(loopback: Loopback, word: str) -> None:
    wire = wire_of(word)
    events = loopback.ask(word, loopback.whole(wire, wire.text))
    message = message_of(events)
    assert (message.text, message.stop_reason, message.api) == ("Hello, wörld.", "stop", wire.api)
    assert (message.error_message, message.error_retryable) == (None, None)
    assert deltas(events, "text") == "Hello, wörld."
    assert (message.usage.input_tokens, message.usage.output_tokens, message.usage.estimated) == (7, 3, False)


def test_a_text_of_a_script(loopback: Loopback, tmp_path: Path) -> None:
    events = loopback.play(tmp_path, {"turns": [{"text": "Hello, wörld.", "usage": USAGE}]})
    message = message_of(events)
    assert (message.text, message.stop_reason, message.api) == ("Hello, wörld.", "stop", "scripted")
    assert deltas(events, "text") == "Hello, wörld."
    assert message.usage == Usage(7, 3)


@pytest.mark.parametrize("word", SERVED)
def test_the_same_bytes_are_the_same_message_however_they_are_cut(loopback: Loopback, word: str) -> None:
    wire = wire_of(word)
    for body in (wire.text, wire.call):
        whole = loopback.ask(word, loopback.whole(wire, body))
        assert loopback.ask(word, loopback.in_single_bytes(wire, body)) == whole


@pytest.mark.parametrize("word", SERVED)
def test_a_call_its_result_and_an_image_make_the_round(loopback: Loopback, word: str) -> None:
    wire = wire_of(word)
    result = ToolResultMessage(
        "c1", "look", (TextContent("seen: ß"), ImageContent("image/png", PIXEL)), is_error=False, timestamp=NOW
    )
    answers = (loopback.whole(wire, wire.call), loopback.whole(wire, wire.text))
    message, body = loopback.round(word, *answers, result=result)
    (call,) = message.tool_calls
    assert (call.id, call.name, message.stop_reason) == ("c1", "look", "tool_use")
    if wire.keeps_arguments:
        assert call.arguments_json == ARGUMENTS
    assert json.loads(call.arguments_json) == json.loads(ARGUMENTS)
    texts = texts_in(json.loads(body))
    assert any("seen: ß" in text for text in texts)
    assert any(PIXEL in text for text in texts)


def texts_in(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in texts_in(item)]


def test_a_call_of_a_script_and_its_result(loopback: Loopback, tmp_path: Path) -> None:
    call: JsonObject = {"id": "c1", "name": "look", "arguments_json": ARGUMENTS}
    script: JsonObject = {"turns": [{"tool_calls": [call]}, {"expect": {"c1": "seen"}, "text": "{{ result.c1 }}"}]}
    events = loopback.play(tmp_path, script)
    assert message_of(events).content == (ToolCall("c1", "look", ARGUMENTS),)
    assert message_of(events).stop_reason == "tool_use"
    assert deltas(events, "toolcall") == ARGUMENTS


def test_a_text_and_a_call_of_a_record() -> None:
    said = [
        {"type": "text", "text": "Hello, wörld."},
        {"type": "tool_call", "id": "c", "name": "look", "arguments": {}},
    ]
    turn = {"role": "assistant", "content": said, "stop_reason": "tool_use", "error_message": None}
    rest = {"error_retryable": None, "usage": {"input_tokens": 3, "output_tokens": 5, "cost_usd": 0.5}}
    document: JsonObject = {"messages": [turn | rest], "redactions": {"count": 0}}
    outside = Outside({}, lambda: NOW, lambda: 0.0, lambda path: {"run.json": document}[str(path)])
    opened = open_models([Model(REPLAY, "run.json")], ModelSettings(), outside)
    message = message_of(asked(opened.stream_fn, REPLAY, "run.json"))
    assert message.content == (TextContent("Hello, wörld."), ToolCall("c", "look", "{}"))
    assert message.usage == Usage(3, 5, cost_usd=0.5)
    assert isinstance(asked(opened.stream_fn, REPLAY, "run.json")[-1], StreamFailed)
    assert opened.without_price == ()


# Failures


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (401, False), (404, False), (429, True), (500, True)])
@pytest.mark.parametrize("word", SERVED)
def test_a_status_that_is_an_error_says_whether_trying_again_helps(
    loopback: Loopback, word: str, status: int, retryable: bool
) -> None:
    events = loopback.ask(word, loopback.faults.error(status, f"No, {KEY}."))
    message = message_of(events)
    assert isinstance(events[-1], StreamFailed)
    assert (message.stop_reason, message.error_retryable, message.api) == ("error", retryable, wire_of(word).api)
    assert f"HTTP {status}" in (message.error_message or "")
    assert KEY not in (message.error_message or "")


@pytest.mark.parametrize("retryable", [False, True])
def test_an_error_of_a_script(loopback: Loopback, tmp_path: Path, retryable: bool) -> None:
    events = loopback.play(tmp_path, {"turns": [{"error": {"message": "No.", "retryable": retryable}}]})
    message = message_of(events)
    assert isinstance(events[-1], StreamFailed)
    assert (message.stop_reason, message.error_message, message.error_retryable) == ("error", "No.", retryable)


def test_a_script_that_is_over_fails(loopback: Loopback, tmp_path: Path) -> None:
    call: JsonObject = {"name": "look", "arguments": {}}
    file = tmp_path / "script.yaml"
    file.write_text(json.dumps({"turns": [{"tool_calls": [call]}]}))
    opened = open_models(
        [Model(SCRIPTED, str(file))], ModelSettings(), Outside({}, lambda: NOW, lambda: 0.0, no_records)
    )
    asked(opened.stream_fn, SCRIPTED, str(file))
    assert isinstance(asked(opened.stream_fn, SCRIPTED, str(file))[-1], StreamFailed)


@pytest.mark.parametrize("word", SERVED)
def test_a_stream_that_ends_anywhere_before_its_end_holds_no_call_to_run(loopback: Loopback, word: str) -> None:
    wire = wire_of(word)
    whole = message_of(loopback.ask(word, loopback.whole(wire, wire.call)))
    for pieces in range(len(wire.call)):
        events = loopback.ask(word, loopback.whole(wire, wire.call[:pieces]))
        if isinstance(events[-1], StreamFailed):
            assert message_of(events).error_retryable
        else:
            assert message_of(events).content == whole.content


NO_ANSWERS = [
    b"",
    b"\0\xff" * 50,
    b"null",
    b"[]",
    b'"text"',
    b"{}",
    b"[" * 100_000,
    b"data: " + b"[" * 100_000 + b"\n\n",
    b"data: null\n\n",
    b"data: 1\n\n",
    b"data: {}\n\n",
    b'data: {"type":[],"choices":1,"candidates":{"a":1},"usage":"x","index":{}}\n\n',
    b"data: [DONE]\n\n",
    b"<html><title>Sign in</title></html>",
]


@pytest.mark.parametrize(
    "content_type", ["text/event-stream", "application/json", "application/vnd.amazon.eventstream"]
)
@pytest.mark.parametrize("word", [word for word in SERVED if word in OTHER_WIRES or word == "openai-chat"])
def test_what_is_no_answer_is_a_failure_and_never_raises(loopback: Loopback, word: str, content_type: str) -> None:
    for body in NO_ANSWERS:
        events = loopback.ask(word, loopback.faults.reply(200, body, content_type=content_type))
        assert isinstance(events[-1], StreamFailed), body[:60]
        assert message_of(events).error_message


@pytest.mark.parametrize("word", ["openai", "anthropic", "bedrock"])
def test_a_stream_that_goes_over_into_another_holds_no_half_call(loopback: Loopback, word: str) -> None:
    """At every event: the calls of what is whole, or nothing that may run."""
    wire = wire_of(word)
    for pieces in range(1, len(wire.call)):
        events = loopback.ask(word, loopback.whole(wire, [*wire.call[:pieces], *wire.text]))
        calls = message_of(events).tool_calls if isinstance(events[-1], StreamDone) else ()
        assert [call.arguments_json for call in calls] in ([], [ARGUMENTS])


def test_a_converse_stream_without_the_beginning_of_its_second_message_holds_no_half_call(loopback: Loopback) -> None:
    for pieces in range(2, len(BEDROCK.call)):
        for rest in (1, 2):  # pieces of text
            body = [*BEDROCK.call[:pieces], *BEDROCK.text[rest:]]
            events = loopback.ask("bedrock", loopback.whole(BEDROCK, body))
            calls = message_of(events).tool_calls if isinstance(events[-1], StreamDone) else ()
            assert all(call.arguments_json == ARGUMENTS for call in calls)


@pytest.mark.parametrize("word", ["anthropic", "bedrock"])
def test_what_was_cut_off_stays_so_whatever_is_said_after_it(loopback: Loopback, word: str) -> None:
    wire = wire_of(word)
    end = next(piece for piece in wire.call if b"stopReason" in piece or b"stop_reason" in piece)
    at = wire.call.index(end)
    if word == "bedrock":
        cut = frame("messageStop", {"stopReason": "max_tokens"})
    else:
        cut = end.replace(b'"tool_use"', b'"max_tokens"')
    message = message_of(loopback.ask(word, loopback.whole(wire, [*wire.call[:at], cut, *wire.call[at:]])))
    assert (message.stop_reason, len(message.tool_calls)) == ("length", 1)


def test_a_call_that_the_server_calls_incomplete_does_not_run(loopback: Loopback) -> None:
    body = [piece.replace(b'"name": "look"', b'"name": "look", "status": "incomplete"') for piece in RESPONSES.call]
    message = message_of(loopback.ask("openai", loopback.whole(RESPONSES, body)))
    assert (message.stop_reason, len(message.tool_calls)) == ("length", 1)


def test_a_second_choice_adds_nothing_to_the_first(loopback: Loopback) -> None:
    other = json.dumps({"choices": [{"index": 1, "delta": chat_call(function={"arguments": ',"force":true}'})}]})
    stop = json.dumps({"choices": [{"index": 1, "delta": {"content": "No."}, "finish_reason": "content_filter"}]})
    body = list(CHAT.call)
    body[2:2] = [f"data: {other}\n\n".encode(), f"data: {stop}\n\n".encode()]
    message = message_of(loopback.ask("openai-chat", loopback.whole(CHAT, body)))
    assert (message.content, message.stop_reason) == ((ToolCall("c1", "look", ARGUMENTS),), "tool_use")


@pytest.mark.parametrize("counts", [{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": -9}, {}])
def test_a_server_that_counts_nothing_gets_an_estimate(loopback: Loopback, counts: JsonObject) -> None:
    usage = sse({"choices": [], "usage": counts})
    events = loopback.ask("openai-chat", loopback.whole(CHAT, [*CHAT.text[:3], usage, b"data: [DONE]\n\n"]))
    usage_of_all = message_of(events).usage
    assert (usage_of_all.estimated, usage_of_all.input_tokens > 0, usage_of_all.output_tokens > 0) == (True, True, True)


# Leaving


@pytest.mark.parametrize("word", SERVED)
def test_cancelling_in_the_middle_of_an_answer_leaves_at_once(loopback: Loopback, word: str) -> None:
    wire = wire_of(word)
    cancel = CancelToken()
    head = loopback.faults.head(200, content_type=wire.content_type)
    events = loopback.ask(
        word, [head, *wire.text[:2], lambda: cancel.cancel("enough"), "hang"], cancel=cancel
    )  # a server that hangs would hold it for a minute
    message = message_of(events)
    assert isinstance(events[-1], StreamFailed)
    assert (message.stop_reason, message.api) == ("aborted", wire.api)
    assert "enough" in (message.error_message or "")


@pytest.mark.parametrize("word", SERVED)
def test_a_run_that_is_over_asks_nobody(loopback: Loopback, word: str) -> None:
    cancel = CancelToken()
    cancel.cancel("over")
    events = loopback.ask(word, ["hang"], cancel=cancel)
    assert message_of(events).stop_reason == "aborted"


def test_cancelling_a_script_leaves_at_once(loopback: Loopback, tmp_path: Path) -> None:
    cancel = CancelToken()
    thread = threading.Thread(target=cancel.cancel, args=("enough",))
    thread.start()
    events = loopback.play(tmp_path, {"turns": [{"text": "Late.", "delay_s": 50}]}, cancel=cancel)
    thread.join()
    message = message_of(events)
    assert isinstance(events[-1], StreamFailed)
    assert (message.stop_reason, message.content) == ("aborted", ())
