"""`scripted:FILE`: a model that plays a file of assistant turns. No key, no network; the tools really run."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
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
    UserMessage,
)
from ci_agent.provider import Context, Model, StreamDone, StreamEvent, StreamFn, StreamOptions, StreamStart
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts, cost_usd
from ci_agent.providers.played import PlayedFailure, content_events
from ci_agent.providers.script import REFERENCE, Script, ScriptedTurn, call_id
from ci_agent.spelling import counted
from ci_agent.strict_yaml import YamlDocument
from ci_agent.terminal import one_line

API = "scripted"

_MAX_SHOWN_CHARS = 500


def create_scripted_stream(
    script: Script, document: YamlDocument, now: Callable[[], datetime], facts: ModelFacts = UNKNOWN_MODEL
) -> StreamFn:
    """A stream function that plays the script's turns one after another, once.

    `document`: what the script was read from; failures name its places. `facts`: the price that a person gave it.
    """
    turns = iter(enumerate(script.turns))

    def stream(model: Model, context: Context, _options: StreamOptions, cancel: CancelToken) -> Iterator[StreamEvent]:
        yield StreamStart()
        failed = PlayedFailure(model, API, now)
        number, turn = next(turns, (len(script.turns), None))
        if turn is None:
            problem = f"the script {document.file} has {counted(number, 'turn')}, and {_why_one_more(context)}"
            yield failed("error", problem, retryable=False)
            return
        if cancel.wait(turn.delay_s):
            yield failed("aborted", cancel.reason or "cancelled", retryable=None)
            return
        results = _result_texts(context)
        unmet = next((name for name, text in turn.expect.items() if text not in results.get(name, "")), None)
        if unmet is not None:
            place = document.key_place(("turns", number, "expect", unmet))
            problem = _unmet(number, unmet, turn.expect[unmet], results)
            yield failed("error", f"{document.file}:{place.line}: {problem}", retryable=False)
            return
        if turn.error is not None:
            yield failed("error", turn.error.message, retryable=turn.error.retryable)
            return
        message = _priced(_message(turn, number, results, model, now()), facts)
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


def _why_one_more(context: Context) -> str:
    last = context.messages[-1] if context.messages else None
    if not isinstance(last, UserMessage):
        return "the loop asked for one more: end it with a turn that has no tool_calls"
    said = "\n".join(part.text for part in last.content if isinstance(part, TextContent))
    complaint = one_line(said.rpartition("\n")[0] or said, _MAX_SHOWN_CHARS)
    return f"the answer of the last was not taken ({complaint}): mend it, or add a turn that answers again"


def _unmet(number: int, name: str, expected: str, results: Mapping[str, str]) -> str:
    lead = f"the script's expectation failed in turn {number + 1}: the result of {name!r} should contain {expected!r}"
    return f"{lead}, and is {results[name][:_MAX_SHOWN_CHARS]!r}" if name in results else f"{lead}, and never came"


def _priced(message: AssistantMessage, facts: ModelFacts) -> AssistantMessage:
    return replace(message, usage=replace(message.usage, cost_usd=cost_usd(facts, message.usage)))


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
