"""Another model when one has given up."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ci_agent.cancellation import CancelToken
from ci_agent.messages import AssistantMessage, Usage, add_usage
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

    The model that it is called with is not looked at. A request that is too long for a model is not given to the next
    but reported, for what makes it shorter stands above. When the last has given up, its failure is the answer.
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
        spent: list[Usage] = []
        while True:
            model, stream = self._streams[0]
            for event in stream(model, context, options, cancel):
                match event:
                    case StreamStart():
                        pass
                    case StreamFailed() if self._may_fall_back(event):
                        spent.append(event.message.usage)
                        del self._streams[0]
                        problem = one_line(event.message.error_message or "", _MAX_PROBLEM)
                        yield StreamNotice("fallback", f"{self._streams[0][0]} in place of {model}: {problem}")
                        break
                    case StreamDone() | StreamFailed():
                        yield replace(event, message=_with_spent(event.message, spent))
                        return
                    case _:
                        yield event
            else:
                return

    def _may_fall_back(self, event: StreamFailed) -> bool:
        return len(self._streams) > 1 and event.message.stop_reason == "error" and not event.is_overflow


def _with_spent(message: AssistantMessage, spent: Sequence[Usage]) -> AssistantMessage:
    return replace(message, usage=add_usage([*spent, message.usage]))
