"""One message put together from the pieces of a stream, whatever the API: two rules for all of them.

The first says which call a piece belongs to, where servers leave out or repeat index, id and name. The second says how
a turn ended, where they leave out or contradict the reason. Every piece costs the same: texts are joined at the end.
"""

import json
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import AssistantContent, StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta, ContentEnd, ContentEvent, ContentStart, PartKind
from ci_agent.providers.wire.argument_text import Nesting, arguments_text, is_json
from ci_agent.providers.wire.failures import ApiError

_HIGH_SURROGATE = re.compile("[\ud800-\udbff]")

MAX_CALLS = 2_000
"""In one message. Each is recorded and answered, also when the run is cancelled and has to end within seconds."""

MAX_CHARS = 4 << 20
"""Of one message: several times what any model can say at once. Every answer stays in memory, in the record and in each
request that follows."""

_NO_ID = ("", "null", None)
"""What servers write where there is no id."""


@dataclass(slots=True)
class _Part:
    kind: PartKind
    pieces: list[str] = field(default_factory=list)
    replay: JsonObject = field(default_factory=dict)
    index: int | None = None
    """Position among the parts that were announced; None: not announced yet."""
    ended: bool = False
    id: str = ""
    name: str = ""
    _nesting: Nesting = field(default_factory=Nesting)
    _read: int = 0

    @property
    def text(self) -> str:
        """Joined, with the halves of a character that came in two pieces put together."""
        text = "".join(self.pieces)
        if _HIGH_SURROGATE.search(text) is None:
            return text
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def is_complete_call(self) -> bool:
        """Whether the arguments so far are a whole JSON text. Each piece is looked at once, however often this asks."""
        for piece in self.pieces[self._read :]:
            self._nesting.read(piece)
        self._read = len(self.pieces)
        return self._nesting.is_complete


Events: TypeAlias = Iterator[ContentEvent]


class Assembly:
    """Takes pieces, gives back content events, holds the message so far. For one attempt at one message."""

    def __init__(self, *, max_output_tokens: int | None = None) -> None:
        self.response_id: str | None = None
        self.model: str | None = None
        """The name by which the server calls the model."""
        self.usage: Usage | None = None
        """None: the server has said nothing. Its cost is for others to fill in."""
        self.stop_reason: StopReason | None = None
        """What the server's reason means, as far as it has given one."""
        self._max_output_tokens = max_output_tokens
        self._parts: list[_Part] = []
        self._by_key: dict[tuple[PartKind, Hashable], _Part] = {}
        self._calls_by_id: dict[str, _Part] = {}
        self._last_call: _Part | None = None
        self._calls_begun = 0
        self._chars = 0
        self._announced = 0

    def identify(self, *, response_id: str | None = None, model: str | None = None) -> None:
        """Keep the first that is not empty of each."""
        self.response_id = self.response_id or response_id or None
        self.model = self.model or model or None

    # Content

    def text(self, piece: str, key: Hashable = None) -> Events:
        """More text of the part that `key` names; a part without any text is never announced."""
        return self._add("text", key, piece)

    def thinking(self, piece: str, key: Hashable = None) -> Events:
        return self._add("thinking", key, piece)

    def tool_call(
        self,
        *,
        key: Hashable = None,
        id: str | None = None,  # noqa: A002  the field's name on every wire
        name: str | None = None,
        arguments: Json = None,
        replay: JsonObject | None = None,
    ) -> Events:
        """A piece of a call. `key` is its index on the wire, None where there is none; `arguments` is a piece of the
        raw text, or a whole object; `replay` is as in `keep`.

        A call is found by its key, else (only without a key) by its id, else it is the latest. Another one begins when
        nothing was found, and when the found one has a name, this piece brings a name, and their ids differ, or their
        names differ after complete arguments, or nothing but the name can tell them apart.

        Raises ApiError when one call is given two names, and for more than MAX_CALLS calls or MAX_CHARS characters.
        """
        id_ = None if id in _NO_ID else id
        call = self._find_call(key, id_)
        if call is None or self._begins_another(call, key, id_, name):
            call = self._open_call(key)
        if id_ and not call.id:
            call.id = id_
            self._calls_by_id[id_] = call
        if name and name != call.name:
            self._add_name(call, name)
        call.replay.update(replay or {})
        self._last_call = call
        piece = _argument_piece(arguments)
        if piece:
            self._append(call, piece)
        yield from self._announce_call(call, piece)

    def keep(self, kind: PartKind, replay: JsonObject, key: Hashable = None) -> Events:
        """Opaque data that the API wants back with a part; the part is made when there is none yet. Later values of the
        same name win."""
        part = self._by_key.get((kind, key)) or self._open(kind, key)
        part.replay.update(replay)
        return iter(())

    def end_part(self, kind: PartKind, key: Hashable = None) -> Events:
        """The part will get no more pieces; for APIs that say so. A later piece with the same key begins another."""
        part = self._by_key.pop((kind, key), None)
        if part is not None:
            yield from self._end(part)

    def end_content(self) -> Events:
        """End all parts that are still open."""
        for part in self._parts:
            yield from self._end(part)

    @property
    def content(self) -> tuple[AssistantContent, ...]:
        """The parts so far in the order in which they began, empty ones left out."""
        return tuple(_content_of(part) for part in self._parts if _says_something(part))

    # The end of the turn

    def end_turn(self, *, terminated: bool) -> StopReason:
        """How the turn ended. `terminated`: the stream came to its proper end, or told its usage where that comes last.

        Raises ApiError when it was cut, when a call has no name, and when it says nothing at all.
        """
        calls = [part for part in self._parts if part.kind == "toolcall" and _says_something(part)]
        if self.stop_reason is None and not terminated:
            raise ApiError("truncated", "the stream ended before the message did", retryable=True)
        if self.stop_reason == "length" or self._was_cut(calls):
            return "length"
        if any(not call.name for call in calls):
            raise ApiError("malformed", "the stream holds a tool call without a name", retryable=True)
        if calls:
            return "tool_use"
        if not any(part.kind == "text" and part.text.strip() for part in self._parts):
            raise ApiError("empty", self._emptiness(), retryable=True)
        return "stop"

    def _was_cut(self, calls: list[_Part]) -> bool:
        """Some servers report a message as complete that ran into its limit in the middle of a call."""
        limit, usage = self._max_output_tokens, self.usage
        if limit is None or usage is None or usage.output_tokens < limit:
            return False
        return any(not is_json(arguments_text(call.text)) for call in calls)

    def _emptiness(self) -> str:
        thought = "".join(part.text for part in self._parts if part.kind == "thinking").strip()
        if thought:
            return f"the model thought and then said nothing; its thinking ends: {thought[-200:]!r}"
        return "the model's answer is empty"

    # Parts

    def _add(self, kind: PartKind, key: Hashable, piece: str) -> Events:
        if not piece:
            return
        part = self._by_key.get((kind, key)) or self._open(kind, key)
        self._append(part, piece)
        if part.index is None:
            yield self._announce(part)
        yield ContentDelta(kind, _index(part), piece)

    def _append(self, part: _Part, piece: str) -> None:
        self._chars += len(piece)
        if self._chars > MAX_CHARS:
            raise ApiError("malformed", f"the answer has more than {MAX_CHARS:,} characters", retryable=False)
        part.pieces.append(piece)

    def _open(self, kind: PartKind, key: Hashable) -> _Part:
        part = _Part(kind)
        self._parts.append(part)
        self._by_key[kind, key] = part
        return part

    def _announce(self, part: _Part) -> ContentStart:
        part.index = self._announced
        self._announced += 1
        return ContentStart(part.kind, part.index)

    def _end(self, part: _Part) -> Events:
        if part.index is not None and not part.ended:
            part.ended = True
            yield ContentEnd(part.kind, part.index)

    def _find_call(self, key: Hashable, id_: str | None) -> _Part | None:
        if key is not None:
            return self._by_key.get(("toolcall", key))
        last = self._last_call
        if id_ is not None:
            return self._calls_by_id.get(id_) or (last if last is not None and not last.id else None)
        return last

    @staticmethod
    def _begins_another(call: _Part, key: Hashable, id_: str | None, name: str | None) -> bool:
        if not (call.name and name):
            return False
        if id_ is not None and call.id and id_ != call.id:
            return True
        if name == call.name:
            return key is None and call.is_complete_call()
        return (key is None and id_ is None) or call.is_complete_call()

    @staticmethod
    def _add_name(call: _Part, name: str) -> None:
        """Some servers repeat the name, some cut it in pieces; those come before the arguments."""
        if call.name and call.pieces:
            raise ApiError("malformed", f"the stream calls one tool call {call.name!r} and {name!r}", retryable=True)
        call.name += name

    def _open_call(self, key: Hashable) -> _Part:
        self._calls_begun += 1
        if self._calls_begun > MAX_CALLS:
            raise ApiError("malformed", f"the answer holds more than {MAX_CALLS:,} tool calls", retryable=False)
        call = _Part("toolcall")
        self._parts.append(call)
        if key is not None:
            self._by_key["toolcall", key] = call
        return call

    def _announce_call(self, call: _Part, piece: str) -> Events:
        """A call is announced once its name is known, with all of its arguments that came before."""
        if not call.name:
            return
        if call.index is None:
            yield self._announce(call)
            piece = call.text
        if piece:
            yield ContentDelta("toolcall", _index(call), piece)


def _index(part: _Part) -> int:
    assert part.index is not None, "announced before its first delta"  # noqa: S101  an invariant, for the type checker
    return part.index


def _argument_piece(arguments: Json) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    except RecursionError as error:
        raise ApiError("malformed", "the arguments of a tool call are nested too deep", retryable=True) from error


def _says_something(part: _Part) -> bool:
    return bool(part.pieces or part.replay or part.name or part.id)


def _content_of(part: _Part) -> AssistantContent:
    replay = part.replay or None
    if part.kind == "text":
        return TextContent(part.text, replay)
    if part.kind == "thinking":
        return ThinkingContent(part.text, replay)
    return ToolCall(part.id, part.name, arguments_text(part.text), replay)
