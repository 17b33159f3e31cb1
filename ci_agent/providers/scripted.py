"""`scripted:FILE`: a model that plays a file of assistant turns. No key, no network; the tools really run."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import Json
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
)
from ci_agent.provider import Context, Model, StreamDone, StreamEvent, StreamFn, StreamOptions, StreamStart
from ci_agent.providers.played import PlayedFailure, content_events
from ci_agent.providers.script import REFERENCE, Script, ScriptedTurn, call_id
from ci_agent.spelling import counted

API = "scripted"


def create_scripted_stream(script: Script, file: str, now: Callable[[], datetime]) -> StreamFn:
    """A stream function that plays the script's turns one after another, once."""
    turns = iter(enumerate(script.turns))

    def stream(model: Model, context: Context, _options: StreamOptions, cancel: CancelToken) -> Iterator[StreamEvent]:
        yield StreamStart()
        failed = PlayedFailure(model, API, now)
        number, turn = next(turns, (len(script.turns), None))
        if turn is None:
            problem = f"the script {file} has {counted(number, 'turn')}, and the loop asked for one more"
            yield failed("error", f"{problem}: end it with a turn that has no tool_calls", retryable=False)
            return
        if cancel.wait(turn.delay_s):
            yield failed("aborted", cancel.reason or "cancelled", retryable=None)
            return
        results = _result_texts(context)
        unmet = _unmet_expectation(turn, results)
        if unmet is not None:
            yield failed("error", f"turn {number + 1} of the script {file}: {unmet}", retryable=False)
            return
        if turn.error is not None:
            yield failed("error", turn.error.message, retryable=turn.error.retryable)
            return
        message = _message(turn, number, results, model, now())
        yield from content_events(message)
        yield StreamDone(message)

    return stream


def _result_texts(context: Context) -> dict[str, str]:
    """Text of the latest result for each call id."""
    return {
        message.tool_call_id: "\n".join(part.text for part in message.content if isinstance(part, TextContent))
        for message in context.messages
        if isinstance(message, ToolResultMessage)
    }


def _unmet_expectation(turn: ScriptedTurn, results: dict[str, str]) -> str | None:
    for name, expected in turn.expect.items():
        if expected not in results.get(name, ""):
            return f"the result of {name!r} does not contain {expected!r}; it is {results.get(name, '')[:500]!r}"
    return None


def _message(
    turn: ScriptedTurn, number: int, results: dict[str, str], model: Model, timestamp: datetime
) -> AssistantMessage:
    content: list[AssistantContent] = []
    if turn.thinking is not None:
        content.append(ThinkingContent(_filled(turn.thinking, results)))
    if turn.text is not None:
        content.append(TextContent(_filled(turn.text, results)))
    for index, call in enumerate(turn.tool_calls):
        raw = call.arguments_json
        text = json.dumps(_filled(call.arguments, results)) if raw is None else _filled(raw, results)
        content.append(ToolCall(call_id(call, number, index), call.name, text))
    return AssistantMessage(
        content=tuple(content),
        stop_reason=turn.stop_reason or ("tool_use" if turn.tool_calls else "stop"),
        provider=model.provider,
        model=model.id,
        api=API,
        timestamp=timestamp,
        usage=Usage(**turn.usage.model_dump()),
    )


def _filled(value: Json, results: dict[str, str]) -> Json:
    """The value with each `{{ result.ID }}` in its strings replaced, once: what a result says is not a template."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda match: results.get(match["id"], ""), value)
    if isinstance(value, list):
        return [_filled(item, results) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, results) for key, item in value.items()}
    return value
