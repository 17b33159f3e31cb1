"""What the tests of all wire APIs share: recorded exchanges, and a stream read, split and cut."""

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantContent, StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta, ContentEnd, ContentEvent, ContentStart
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.errors_on_wire import error_from_response
from ci_agent.providers.wire.failures import ApiError, FailureKind

_RECORDED = Path(__file__).parents[3] / "shared" / "fixtures" / "providers"
_OWN = Path(__file__).parents[1] / "providers" / "fixtures"

_Source = TypeVar("_Source")


@dataclass(frozen=True)
class Outcome:
    """What was read of a stream or an answer: the message, or what had come before the failure."""

    content: tuple[AssistantContent, ...]
    stop_reason: StopReason | None
    usage: Usage | None = None
    response_id: str | None = None
    model: str | None = None
    error: FailureKind | None = None
    retryable: bool | None = None
    problem: str | None = field(default=None, compare=False)


def outcome_of(
    read: Callable[[_Source, Assembly], Iterator[ContentEvent]], source: _Source, *, limit: int | None = None
) -> Outcome:
    """The source read to its end; on the way its events are held to the stream protocol."""
    assembly = Assembly(max_output_tokens=limit)
    failure: ApiError | None = None
    seen: list[ContentEvent] = []
    try:
        seen.extend(read(source, assembly))
    except ApiError as error:
        failure = error
    _assert_well_formed(seen, is_whole=failure is None)
    return Outcome(
        assembly.content,
        "error" if failure else assembly.stop_reason,
        assembly.usage,
        assembly.response_id,
        assembly.model,
        failure.kind if failure else None,
        failure.retryable if failure else None,
        failure.message if failure else None,
    )


def _assert_well_formed(events: Sequence[ContentEvent], *, is_whole: bool) -> None:
    begun: set[int] = set()
    ended: set[int] = set()
    for event in events:
        if isinstance(event, ContentStart):
            assert event.index == len(begun)
            begun.add(event.index)
        else:
            assert event.index in begun - ended
        if isinstance(event, ContentEnd):
            ended.add(event.index)
    assert not is_whole or ended == begun
    assert all(event.delta for event in events if isinstance(event, ContentDelta))


def recorded_streams(api: str) -> list[Any]:
    return _recorded(api, streamed=True, failed=False)


def recorded_answers(api: str, *, failed: bool = False) -> list[Any]:
    return _recorded(api, streamed=False, failed=failed)


def _recorded(api: str, *, streamed: bool, failed: bool) -> list[Any]:
    if not _RECORDED.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the recordings in shared/fixtures are not here"))]
    exchanges = [json.loads(path.read_text()) for path in sorted(_RECORDED.glob("*.json"))]
    chosen = [
        exchange
        for exchange in exchanges
        if exchange["api"] == api
        and ("json" not in exchange["response"]) == streamed
        and (exchange["response"]["status"] != 200) == failed
    ]
    assert chosen
    return [pytest.param(exchange, id=exchange["name"]) for exchange in chosen]


def own_streams(api: str) -> list[Any]:
    """The streams written for these tests, in the shape of the recorded ones."""
    paths = sorted((_OWN / api).glob("*.sse"))
    assert paths
    return [pytest.param({"response": {"sse": path.read_text()}}, id=path.stem) for path in paths]


def own_stream(api: str, name: str) -> bytes:
    return (_OWN / api / name).read_bytes()


def body_of(exchange: JsonObject) -> bytes:
    response = exchange["response"]
    return base64.b64decode(response["body_base64"]) if "body_base64" in response else response["sse"].encode()


def usage_of(expected: JsonObject) -> Usage:
    """The counts that a recording says were used."""
    counts = expected["usage"]
    return Usage(counts["input"], counts["output"], counts["cache_read"], counts["cache_write"])


def error_of(exchange: JsonObject) -> ApiError:
    """What a recorded answer with a status of failure is read as."""
    response = exchange["response"]
    body = json.dumps(response["json"]).encode()
    return error_from_response(response["status"], response["headers"], body, datetime(2026, 11, 1, tzinfo=UTC))


def assert_says(outcome: Outcome, expected: JsonObject) -> None:
    """The texts, thoughts, whole calls and the reason that a recording says it holds."""
    texts = [part.text for part in outcome.content if isinstance(part, TextContent)]
    thoughts = [part.text for part in outcome.content if isinstance(part, ThinkingContent) and part.text]
    calls = [part for part in outcome.content if isinstance(part, ToolCall)]
    assert "".join(texts) == expected["text"]
    assert ("\n\n".join(thoughts) or None) == (expected["thinking"] or None)
    assert outcome.stop_reason == expected["stop_reason"].replace("toolUse", "tool_use")
    if outcome.error is None:  # a failed message keeps its half call, which nobody will run
        assert [(part.id or None, part.name, json.loads(part.arguments_json)) for part in calls] == [
            (part["id"], part["name"], part["arguments"]) for part in expected["tool_calls"]
        ]


def assert_cuts_are_failures(read: Callable[[Sequence[bytes]], Outcome], data: bytes) -> None:
    """Cut at any byte, a stream is a failure that may be retried, or the same message."""
    whole = read([data])
    for end in range(len(data)):
        cut = read([data[:end]])
        assert cut == whole or (cut.error in ("truncated", "malformed") and cut.retryable), (end, cut)


def assert_splits_change_nothing(read: Callable[[Sequence[bytes]], Outcome], data: bytes) -> None:
    """Wherever the network cuts the bytes: at each byte, at random places, into two."""
    whole = read([data])
    cuts = sorted(random.Random(7).sample(range(1, len(data)), k=min(200, len(data) // 2)))
    assert read([data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]) == whole
    assert read([data[at : at + 1] for at in range(len(data))]) == whole
    assert all(read([data[:at], data[at:]]) == whole for at in range(0, len(data), max(1, len(data) // 300)))


def assert_line_ends_change_nothing(read: Callable[[Sequence[bytes]], Outcome], data: bytes) -> None:
    whole = read([data])
    with_lf = data.replace(b"\r\n", b"\n")
    with_crlf = with_lf.replace(b"\n", b"\r\n")
    assert read([with_lf]) == whole
    assert read([with_crlf]) == whole
    assert read([with_crlf[at : at + 1] for at in range(len(with_crlf))]) == whole
    assert read([b"\xef\xbb\xbf" + data]) == whole
