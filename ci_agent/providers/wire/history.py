"""The conversation as it can be sent to one target: complete pairs of calls and results, nothing foreign or broken."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from ci_agent.providers.wire.api import Target

NO_RESULT = "No result: the call was not executed."
INVALID_ARGUMENTS_KEY = "invalid_json"
"""Holds the text of arguments that are no JSON object; APIs and chat templates parse what is sent."""
_NO_SIGHT = "[an image that this model cannot see]"


@dataclass(frozen=True, slots=True)
class IdRule:
    """Which ids of calls an API takes from elsewhere."""

    pattern: re.Pattern[str]
    """Matches one allowed character."""
    max_length: int
    replace: str = "_"
    """What stands for a character that is not allowed."""
    min_length: int = 1


def sendable_history(messages: Sequence[Message], target: Target, ids: IdRule | None = None) -> tuple[Message, ...]:
    """The messages in a form that the target takes; `alternating` merges those of one role.

    Failed turns and results without a call are left out. Every call is followed by exactly one result, in the order of
    the calls, and its arguments are the text of a JSON object. What another target made keeps no `replay`, its
    thinking is text. Texts hold no lone surrogates, but for `replay` and thinking that is signed there. Blank texts and
    messages without content are left out. Ids are rewritten by the rule where another target made them, and where they
    are empty or repeated in one message.
    """
    kept = tuple(_turns(messages))
    naming = _Naming(ids, {call.id for turn in kept if _is_own(turn.message, target) for call in turn.calls})
    return tuple(message for turn in kept for message in _sendable_turn(turn, target, naming))


def alternating(history: Sequence[Message], blocks: Callable[[Message], Sequence[JsonObject]]) -> list[JsonObject]:
    """The history as messages whose roles alternate: all results of a turn in one, before what a user says next."""
    messages: list[JsonObject] = []
    for message in history:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        content = list(blocks(message))
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(content)
        elif content:
            messages.append({"role": role, "content": content})
    return messages


def is_made_by(message: AssistantMessage, target: Target) -> bool:
    made_by = (message.provider, message.api, message.model)
    return made_by == (target.model.provider, target.api, target.model.id)


def without_lone_surrogates(text: str) -> str:
    """The text in which pairs of surrogates are joined and lone ones replaced: strict parsers refuse them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cleaned(value: Json) -> Json:
    """A JSON value in which no text and no key has lone surrogates. Nested no deeper than what parse_json reads."""
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {without_lone_surrogates(key): cleaned(item) for key, item in value.items()}
    return value


def arguments_object(arguments_json: str) -> JsonObject:
    """The arguments of a call as an object to send; with a text that is none, an object that holds it."""
    try:
        value = parse_json(arguments_json or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        value = {INVALID_ARGUMENTS_KEY: arguments_json}
    arguments: JsonObject = cleaned(value)
    return arguments


# Turns: what belongs together


@dataclass(slots=True)
class _Turn:
    """A message of the user or the model, and the results of its calls."""

    message: UserMessage | AssistantMessage
    results: list[ToolResultMessage] = field(default_factory=list)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls if isinstance(self.message, AssistantMessage) else ()


def _turns(messages: Sequence[Message]) -> Iterator[_Turn]:
    """Results go to the last assistant message before them, whatever a user said in between."""
    turns: list[_Turn] = []
    latest: _Turn | None = None
    for message in messages:
        if isinstance(message, ToolResultMessage):
            if latest is not None:
                latest.results.append(message)
            continue
        turn = _Turn(message)
        turns.append(turn)
        if isinstance(message, AssistantMessage):
            latest = turn
    return (turn for turn in turns if not _failed(turn.message))


def _failed(message: UserMessage | AssistantMessage) -> bool:
    return isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted")


def _is_own(message: UserMessage | AssistantMessage, target: Target) -> bool:
    return isinstance(message, AssistantMessage) and is_made_by(message, target)


def _sendable_turn(turn: _Turn, target: Target, naming: "_Naming") -> Iterator[Message]:
    if isinstance(turn.message, UserMessage):
        content = tuple(_seen(turn.message.content, target))
        if content:
            yield replace(turn.message, content=content)
        return
    own = is_made_by(turn.message, target)
    ids = naming.of_calls(turn.calls, own=own)
    parts = tuple(_sendable_parts(turn.message.content, ids, own=own))
    if parts:
        yield replace(turn.message, content=parts)
    results = _paired(turn)
    for call, id_ in zip(turn.calls, ids, strict=True):
        result = results.pop(0)
        content = tuple(_seen(result.content, target))
        yield replace(result, tool_call_id=id_, tool_name=without_lone_surrogates(call.name), content=content)


def _paired(turn: _Turn) -> list[ToolResultMessage]:
    """One result for each call; with equal ids the order pairs them."""
    waiting: dict[str, list[ToolResultMessage]] = {}
    for result in reversed(turn.results):
        waiting.setdefault(result.tool_call_id, []).append(result)
    return [waiting[call.id].pop() if waiting.get(call.id) else _missing(call, turn) for call in turn.calls]


def _missing(call: ToolCall, turn: _Turn) -> ToolResultMessage:
    return ToolResultMessage(
        call.id, call.name, (TextContent(NO_RESULT),), is_error=True, timestamp=turn.message.timestamp
    )


# Parts


def _seen(content: tuple[TextContent | ImageContent, ...], target: Target) -> Iterator[TextContent | ImageContent]:
    for part in content:
        if isinstance(part, TextContent):
            if part.text.strip():
                yield TextContent(without_lone_surrogates(part.text))
        else:
            yield TextContent(_NO_SIGHT) if target.facts.sees_images is False else part


def _sendable_parts(content: tuple[AssistantContent, ...], ids: list[str], *, own: bool) -> Iterator[AssistantContent]:
    waiting = iter(ids)
    for part in content:
        if isinstance(part, ToolCall):
            yield _sendable_call(part, next(waiting), own=own)
        elif own and part.replay is not None:
            yield part if isinstance(part, ThinkingContent) else replace(part, text=without_lone_surrogates(part.text))
        elif part.text.strip():
            text = without_lone_surrogates(part.text)
            yield ThinkingContent(text) if own and isinstance(part, ThinkingContent) else TextContent(text)


def _sendable_call(call: ToolCall, id_: str, *, own: bool) -> ToolCall:
    return ToolCall(
        id=id_,
        name=without_lone_surrogates(call.name),
        arguments_json=_sendable_arguments(call.arguments_json),
        replay=call.replay if own else None,
    )


def _sendable_arguments(arguments_json: str) -> str:
    """As the model wrote them where that can be sent: prompt caches compare bytes."""
    try:
        value = parse_json(arguments_json)
    except ValueError:
        value = None
    if isinstance(value, dict) and cleaned(value) == value:
        return arguments_json
    return json.dumps(arguments_object(arguments_json), ensure_ascii=False)


# Ids


class _Naming:
    """Ids for the calls of a conversation, one after another. Those of the target itself are never touched."""

    def __init__(self, rule: IdRule | None, own: set[str]) -> None:
        self._rule = rule
        self._taken = {*own, ""}

    def of_calls(self, calls: tuple[ToolCall, ...], *, own: bool) -> list[str]:
        seen: set[str] = set()
        ids: list[str] = []
        for call in calls:
            verbatim = own and call.id not in seen and without_lone_surrogates(call.id) == call.id != ""
            id_ = call.id if verbatim else self._fresh(call.id)
            seen.add(call.id)
            ids.append(id_)
        return ids

    def _fresh(self, id_: str) -> str:
        candidate = _fitted(without_lone_surrogates(id_), self._rule)
        attempt = 0
        while candidate is None or candidate in self._taken:
            candidate = _digest(f"{id_}\0{attempt}", self._rule)
            attempt += 1
        self._taken.add(candidate)
        return candidate


def _fitted(id_: str, rule: IdRule | None) -> str | None:
    """The id by the rule; None when it cannot be had by replacing characters alone."""
    if rule is None:
        return id_
    fitted = "".join(char if rule.pattern.fullmatch(char) else rule.replace for char in id_)
    return fitted if rule.min_length <= len(fitted) <= rule.max_length else None


def _digest(text: str, rule: IdRule | None) -> str:
    """Of letters and digits, which every API takes."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:24] if rule is None else digest[: max(rule.min_length, min(rule.max_length, 24))]
