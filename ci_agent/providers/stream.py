"""A wire API, a server and a connection become a stream function: ask, read, and ask again while that can help.

A request is tried again also when its stream broke off in the middle. No tool of that turn has run by then, and nobody
has acted on its beginning.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.json_types import Json
from ci_agent.messages import AssistantContent, AssistantMessage, StopReason, ToolCall, Usage, add_usage
from ci_agent.provider import (
    ContentEvent,
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamFn,
    StreamNotice,
    StreamOptions,
    StreamStart,
)
from ci_agent.providers.model_facts import cost_usd
from ci_agent.providers.network.http import Response, Transport
from ci_agent.providers.request_size import estimate_tokens, output_tokens_of_parts
from ci_agent.providers.retry import GiveUp, RetryPolicy, next_wait_s
from ci_agent.providers.silent_overflow import raise_if_nothing_fits, sign_of_dropped_text
from ci_agent.providers.wire.api import Api, ApiRequest, Target
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.errors_on_wire import MAX_MESSAGE, error_from_object, error_from_response
from ci_agent.providers.wire.failures import ApiError
from ci_agent.terminal import one_line

_KEY = "[the key]"
_LONG_KEY = 16

_STARTS_WITHIN_S = 30.0
"""Of a server that was started a moment ago, until it listens."""
_LOADS_WITHIN_S = 300.0
"""Of a large model, from a slow disk."""
_UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class ServerAccess:
    base_url: str
    """Checked, without a slash at its end."""
    key: str | None = field(repr=False)
    """None: the server wants none."""
    about_key: str = ""
    """Whence the key is, or that there is none: for whoever reads that it was refused."""
    local_server: str | None = None
    """What runs on this machine and is asked; None: it is elsewhere."""


@dataclass(frozen=True, slots=True)
class SharedMeans:
    """What all models of a run share."""

    transport: Transport
    policy: RetryPolicy
    now: Callable[[], datetime]
    random: Callable[[], float]
    """From 0 to 1."""


def create_api_stream(api: Api, target: Target, access: ServerAccess, around: SharedMeans) -> StreamFn:
    """A stream function that asks this server. ConfigurationError when no connection to it can be set up."""
    around.transport.prepare(access.base_url)
    return _ApiStream(api, target, access, around)


@dataclass(slots=True)
class _ApiStream:
    api: Api
    target: Target
    access: ServerAccess
    around: SharedMeans
    complaints: list[ApiError] = field(default_factory=list)
    """What the server refused and did without; later requests leave it out from the start."""
    has_warned: bool = False

    def __call__(
        self, _model: Model, context: Context, options: StreamOptions, cancel: CancelToken, /
    ) -> Iterator[StreamEvent]:
        yield StreamStart()
        attempt = _Attempt(Assembly(max_output_tokens=options.max_output_tokens), context, {})
        try:
            yield from self._until_answered(attempt, context, options, cancel)
        except ApiError as failure:
            message = self._message(attempt, "error", failure)
            yield StreamFailed(message, is_overflow=failure.kind == "overflow")
        except Cancelled as cancelled:
            message = self._message(attempt, "aborted", None)
            yield StreamFailed(replace(message, error_message=f"Cancelled: {cancelled.reason}."))
        else:
            yield from self._warnings(attempt)
            yield StreamDone(self._message(attempt, attempt.assembly.stop_reason or "stop", None))

    def _until_answered(
        self, attempt: "_Attempt", context: Context, options: StreamOptions, cancel: CancelToken
    ) -> Iterator[StreamEvent]:
        """Attempts until one brings a whole message, which then is in `attempt`. Raises the failure of the last."""
        request = self._request(context, options)
        number, waited_s = 1, 0.0
        while True:
            attempt.begin(Assembly(max_output_tokens=options.max_output_tokens), request)
            try:
                yield from self._ask(request, attempt.assembly, cancel)
            except ApiError as error:
                failure = _in_place(_tellable(error, self.access.key), self.access)
                lesser = None if self.api.relax is None else self.api.relax(request, failure)
                if lesser is not None:
                    self.complaints.append(failure)
                    request = lesser
                    yield StreamNotice("retry", f"asked again with less, because of {failure.message}")
                    continue
                wait_s = next_wait_s(self.around.policy, failure, number, waited_s, self.around.random)
                if isinstance(wait_s, GiveUp):
                    raise _explained(failure, wait_s) from None
                number += 1
                attempts = f" of {self.around.policy.attempts}" if number <= self.around.policy.attempts else ""
                yield StreamNotice("retry", f"attempt {number}{attempts} in {wait_s:.1f} s: {failure.message}")
                cancel.wait(wait_s)
                cancel.raise_if_cancelled()
                waited_s += wait_s
            else:
                return

    def _warnings(self, attempt: "_Attempt") -> Iterator[StreamNotice]:
        """At most one in a run: what is dropped once is dropped from then on."""
        usage = attempt.assembly.usage
        if self.has_warned or usage is None:
            return
        sign = sign_of_dropped_text(attempt.context, usage, self.target.facts)
        if sign is not None:
            self.has_warned = True
            yield StreamNotice("warning", sign)

    def _request(self, context: Context, options: StreamOptions) -> ApiRequest:
        request = self.api.build_request(self.target, context, options)
        for complaint in self.complaints:
            request = (self.api.relax and self.api.relax(request, complaint)) or request
        return request

    def _ask(self, request: ApiRequest, assembly: Assembly, cancel: CancelToken) -> Iterator[ContentEvent]:
        key = self.access.key
        headers = {
            **request.headers,
            **({} if key is None else self.api.authentication(key)),
        }
        # What is no text at all has been replaced in messages; a prompt or a schema may still hold some.
        body = json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        with self.around.transport.post(self.access.base_url + request.path, headers, body, cancel) as response:
            yield from self._read(response, assembly)
        if assembly.stop_reason is None:
            raise ApiError("truncated", "the stream ended before the message did", retryable=True)
        if assembly.stop_reason == "length" and not assembly.content:
            raise_if_nothing_fits(self.target.facts, assembly.usage)

    def _read(self, response: Response, assembly: Assembly) -> Iterator[ContentEvent]:
        content_type = response.headers.get("content-type", "").lower()
        if response.status != 200 or "html" in content_type:
            raise error_from_response(response.status, response.headers, response.read_error(), self.around.now())
        beginning, chunks = _peeked(response.chunks())
        is_json = content_type.partition(";")[0].strip().endswith("json")
        if is_json or ("event" not in content_type and beginning.lstrip().startswith((b"{", b"["))):
            yield from self._read_whole(chunks, assembly)
        else:
            yield from self.api.read_stream(chunks, assembly)

    def _read_whole(self, chunks: Iterator[bytes], assembly: Assembly) -> Iterator[ContentEvent]:
        """One JSON value, from a server that does not stream or has only an error to tell."""
        body = b"".join(chunks)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ApiError("malformed", f"the answer is no JSON: {body[:200]!r}", retryable=True) from error
        if _is_error(answer):
            raise error_from_object(answer, status=None)
        yield from self.api.read_answer(answer, assembly)

    def _message(self, attempt: "_Attempt", stop_reason: StopReason, failure: ApiError | None) -> AssistantMessage:
        assembly = attempt.assembly
        usages = [self._priced(usage) for usage in attempt.usages()]
        return AssistantMessage(
            content=tuple(_with_own_name(part, attempt.tool_names) for part in assembly.content),
            stop_reason=stop_reason,
            provider=self.target.model.provider,
            model=self.target.model.id,
            api=self.api.name,
            timestamp=self.around.now(),
            usage=add_usage(usages),
            response_id=assembly.response_id,
            error_message=None if failure is None else failure.message,
            error_retryable=None if failure is None else failure.retryable,
        )

    def _priced(self, usage: Usage) -> Usage:
        """By the price that is known; what a server says of the cost counts only where none is."""
        known = cost_usd(self.target.facts, usage)
        return usage if known is None else replace(usage, cost_usd=known)


@dataclass(slots=True)
class _Attempt:
    """What the latest attempt has brought, and what those before it cost."""

    assembly: Assembly
    context: Context
    tool_names: Mapping[str, str]
    spent: list[Usage] = field(default_factory=list)

    def begin(self, assembly: Assembly, request: ApiRequest) -> None:
        if (usage := self._usage()) is not None:
            self.spent.append(usage)
        self.assembly = assembly
        self.tool_names = request.tool_names

    def usages(self) -> list[Usage]:
        """Of all attempts; for one that brought something and says of no token, an estimate."""
        return [*self.spent, self._usage() or Usage()]

    def _usage(self) -> Usage | None:
        told, content = self.assembly.usage, self.assembly.content
        if not content or (told is not None and told.total_tokens):  # something cannot have been made of no tokens
            return told
        return Usage(estimate_tokens(self.context), output_tokens_of_parts(content), estimated=True)


def _with_own_name(part: AssistantContent, names: Mapping[str, str]) -> AssistantContent:
    return replace(part, name=names.get(part.name, part.name)) if isinstance(part, ToolCall) else part


def _peeked(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes that are more than white space, and all bytes."""
    first = b""
    for chunk in chunks:
        first += chunk
        if first.strip():
            break
    return first, chain([first], chunks)


def _is_error(answer: Json) -> bool:
    if isinstance(answer, list):
        return any(_is_error(item) for item in answer[:1])
    return isinstance(answer, dict) and (bool(answer.get("error")) or answer.get("object") == "error")


def _tellable(failure: ApiError, key: str | None) -> ApiError:
    """In one line that is safe to print, and without the key: some servers send it back with their complaint."""
    return replace(failure, message=one_line(without_key(failure.message, key), MAX_MESSAGE))


def _in_place(failure: ApiError, access: ServerAccess) -> ApiError:
    """The failure with what one knows of it who knows whom was asked and with which key."""
    if failure.kind == "auth" and access.about_key:
        return replace(failure, message=f"{failure.message} ({access.about_key})")
    if access.local_server is None:
        return failure
    if failure.nobody_listens:
        message = f"{failure.message}: is {access.local_server} running?"
        return replace(failure, message=message, may_be_starting_s=_STARTS_WITHIN_S)
    if failure.status == _UNAVAILABLE and "loading" in failure.message.lower():
        return replace(failure, may_be_starting_s=_LOADS_WITHIN_S)
    return failure


def without_key(text: str, key: str | None) -> str:
    """The text with the key in it left out, also where the key was cut; the beginnings of short keys are just words."""
    if not key:
        return text
    if len(key) < _LONG_KEY:
        return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", _KEY, text)  # within a word it is none: `x` is a key of many
    return re.sub(re.escape(key[: _LONG_KEY // 2]) + r"[^\s\"']*", _KEY, text)


def _explained(failure: ApiError, why: GiveUp) -> ApiError:
    return replace(failure, message=f"{failure.message} ({why.reason})") if why.reason else failure
