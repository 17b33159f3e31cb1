"""Keep a conversation within the model's context: first results of tools are left out, then, if allowed, a summary of
the older turns takes their place.

Leaving results out takes no model and gives the same request for the same conversation. What was left out stays left
out, so that a server's prompt cache is lost once and not with every request.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.messages import AssistantMessage, TextContent, Usage, UserMessage, add_usage
from ci_agent.provider import (
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
from ci_agent.providers.omissions import NOTHING, first_answer, last_answer, leave_out_results, without
from ci_agent.providers.request_size import estimate_tokens
from ci_agent.spelling import counted
from ci_agent.terminal import one_line

ShrinkMode: TypeAlias = Literal["off", "results", "summary"]
"""What may be done to a conversation that grows too long: nothing, leave out results, also summarise."""

FULL = 0.85
"""A request longer than this share of the context is shrunk before it is sent: our count is an estimate."""
AFTERWARDS = 0.5
"""The share that is aimed for, so that the next turns need no shrinking."""
MAX_ATTEMPTS = 4
"""How often one message is asked for when the server finds the request too long."""
_MAX_SHOWN = 2_000
"""Characters of a summary in a line of the log."""

SUMMARY_REQUEST = (
    "Summarise the conversation so far for yourself: your summary will take its place. Keep the task, what was found "
    "(paths, names, numbers), what was changed, what failed and why, and what is still to do. Call no tool; answer "
    "with the summary alone."
)


def create_shrinking_stream(stream: StreamFn, context_tokens: int | None, mode: ShrinkMode) -> StreamFn:
    """A stream function that asks `stream` with as much of the conversation as fits.

    `context_tokens` None: nobody knows how much fits, so it shrinks only when the server has refused. For one
    conversation: it remembers what it left out.
    """
    return stream if mode == "off" else _Shrinking(stream, context_tokens, may_summarise=mode == "summary")


class _Shrinking:
    def __init__(self, stream: StreamFn, context_tokens: int | None, *, may_summarise: bool) -> None:
        self._stream = stream
        self._context_tokens = context_tokens
        self._may_summarise = may_summarise
        self._omissions = NOTHING
        self._scale = 1.0
        """What the server counts for each token that we estimate."""
        self._unreported: list[Usage] = []
        """What summaries cost, until a message carries it."""

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, cancel: CancelToken, /
    ) -> Iterator[StreamEvent]:
        yield StreamStart()
        goal = self._goal_before_asking(context)
        failure: StreamFailed | None = None
        for _ in range(MAX_ATTEMPTS):
            before = self._omissions
            if goal is not None:
                yield from self._shrink(goal, model, context, options, cancel)
            if failure is not None and self._omissions == before:
                break
            failure = yield from self._ask(model, context, options, cancel)
            if failure is None:
                return
            goal = self._tokens(context) // 2
        assert failure is not None  # noqa: S101  only a failure leaves the loop, for the type checker
        yield replace(failure, message=self._with_unreported(failure.message))

    def _goal_before_asking(self, context: Context) -> int | None:
        if self._context_tokens is None or self._tokens(context) <= FULL * self._context_tokens:
            return None
        return int(AFTERWARDS * self._context_tokens)

    def _tokens(self, context: Context) -> int:
        """Of the request as it would be sent now."""
        return int(estimate_tokens(self._request(context)) * self._scale)

    def _request(self, context: Context) -> Context:
        return replace(context, messages=without(context.messages, self._omissions))

    def _ask(
        self, model: Model, context: Context, options: StreamOptions, cancel: CancelToken
    ) -> Generator[StreamEvent, None, StreamFailed | None]:
        """One request; returns its failure when it was too long, None when anything else was the end of it."""
        request = self._request(context)
        for event in self._stream(model, request, options, cancel):
            match event:
                case StreamStart():
                    pass
                case StreamFailed() if event.is_overflow:
                    return event
                case StreamDone() | StreamFailed():
                    self._measure(request, event.message.usage)
                    yield replace(event, message=self._with_unreported(event.message))
                case _:
                    yield event
        return None

    def _measure(self, request: Context, usage: Usage) -> None:
        sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if sent and not usage.estimated:
            self._scale = sent / max(estimate_tokens(request), 1)

    def _with_unreported(self, message: AssistantMessage) -> AssistantMessage:
        unreported, self._unreported = self._unreported, []
        return replace(message, usage=add_usage([message.usage, *unreported])) if unreported else message

    def _shrink(
        self, goal_tokens: int, model: Model, context: Context, options: StreamOptions, cancel: CancelToken
    ) -> Iterator[StreamEvent]:
        before = self._omissions
        spare = int((self._tokens(context) - goal_tokens) / self._scale)
        self._omissions = leave_out_results(context.messages, before, spare)
        count = len(self._omissions.results) - len(before.results)
        if count:
            rest = f"about {self._tokens(context):,} tokens are left"
            yield StreamNotice("shrunk", f"{counted(count, 'result')} left out of what the model gets; {rest}")
        if self._may_summarise and self._tokens(context) > goal_tokens:
            yield from self._summarise(model, context, options, cancel)

    def _summarise(
        self, model: Model, context: Context, options: StreamOptions, cancel: CancelToken
    ) -> Iterator[StreamEvent]:
        """Have all turns but the last summarised, if there are any that are not."""
        upto = last_answer(context.messages)
        if upto <= max(first_answer(context.messages), self._omissions.summarised_before):
            return
        older = replace(context, messages=context.messages[:upto])
        question = UserMessage((TextContent(SUMMARY_REQUEST),), context.messages[upto].timestamp)
        request = replace(context, messages=(*self._request(older).messages, question))
        for event in self._stream(model, request, replace(options, output_schema=None), cancel):
            if isinstance(event, StreamNotice):
                yield event
            elif isinstance(event, StreamDone | StreamFailed):
                self._unreported.append(event.message.usage)
                yield self._take_summary(event, upto)

    def _take_summary(self, event: StreamDone | StreamFailed, upto: int) -> StreamNotice:
        text = event.message.text.strip()
        if isinstance(event, StreamFailed) or not text:
            problem = one_line(event.message.error_message or "it was empty", _MAX_SHOWN)
            return StreamNotice("warning", f"no summary was made: {problem}")
        self._omissions = replace(self._omissions, summary=text, summarised_before=upto)
        shown = one_line(text, _MAX_SHOWN)
        return StreamNotice("shrunk", f"the turns up to message {upto} are sent as a summary: {shown}")
