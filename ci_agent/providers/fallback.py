"""Another model when one has given up."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ci_agent.cancellation import CancelToken
from ci_agent.messages import AssistantMessage, add_usage
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
from ci_agent.terminal import one_line

_MAX_PROBLEM = 500


def create_fallback_stream(streams: Sequence[tuple[Model, StreamFn]]) -> StreamFn:
    """A stream function that asks the first model until it gives up, then the next for the rest of the run.

    The model that it is called with is not looked at. A request that is too long for one model is given to the next as
    well: whatever could make it shorter has been tried below. When the last has given up, its failure is the answer,
    with those of the models that had just been asked before it.
    """
    if len(streams) == 1:
        return streams[0][1]
    return _Fallback(list(streams))


class _Fallback:
    def __init__(self, streams: list[tuple[Model, StreamFn]]) -> None:
        self._streams = streams

    def __call__(
        self, _model: Model, context: Context, options: StreamOptions, cancel: CancelToken, /
    ) -> Iterator[StreamEvent]:
        yield StreamStart()
        failed: list[tuple[Model, AssistantMessage]] = []
        while True:
            model, stream = self._streams[0]
            for event in stream(model, context, options, cancel):
                match event:
                    case StreamStart():
                        pass
                    case StreamFailed() if self._may_fall_back(event):
                        failed.append((model, event.message))
                        del self._streams[0]
                        yield StreamNotice("fallback", f"{self._streams[0][0]} in place of {_problem(*failed[-1])}")
                        break
                    case StreamDone() | StreamFailed():
                        yield replace(event, message=_after(failed, event.message))
                        return
                    case _:
                        yield event
            else:
                return

    def _may_fall_back(self, event: StreamFailed) -> bool:
        return len(self._streams) > 1 and event.message.stop_reason == "error"


def _after(failed: Sequence[tuple[Model, AssistantMessage]], message: AssistantMessage) -> AssistantMessage:
    """The message with what the models before it cost. If it is a failure too, with why they failed, and trying again
    later can help if it can with any of them."""
    usage = add_usage([*(earlier.usage for _, earlier in failed), message.usage])
    if not failed or message.stop_reason != "error":
        return replace(message, usage=usage)
    problems = "; ".join(_problem(model, earlier) for model, earlier in failed)
    return replace(
        message,
        usage=usage,
        error_message=f"{message.error_message} (before it {problems})",
        error_retryable=message.error_retryable or any(earlier.error_retryable for _, earlier in failed),
    )


def _problem(model: Model, failure: AssistantMessage) -> str:
    return f"{model}: {one_line(failure.error_message or '', _MAX_PROBLEM)}"
