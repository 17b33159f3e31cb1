"""A bound on what all results of a run hold together, so that memory and record stay small however long it goes on."""

from typing import Final

from ci_agent.hooks import ExecutedToolCall, ResultOverride
from ci_agent.messages import ImageContent, TextContent, ToolResultContent
from ci_agent.tools.truncate import keep_head_and_tail

MAX_RESULTS_BYTES: Final = 4_000_000
"""A million tokens or so: as much as models take in."""

ALWAYS_KEPT_BYTES: Final = 1_500
"""Of each result, when those before it have used up everything."""


class ResultBudget:
    """The run's `after_tool_call`: results pass as they are until they hold `max_bytes` together; from then on a longer
    one keeps its beginning and its end, and says why."""

    def __init__(self, max_bytes: int = MAX_RESULTS_BYTES) -> None:
        self._max_bytes = max_bytes
        self._left = max_bytes

    def __call__(self, call: ExecutedToolCall, /) -> ResultOverride | None:
        size = sum(map(_size, call.content))
        if size > max(self._left, ALWAYS_KEPT_BYTES):
            return self._shortened(call, size)
        self._left -= size
        return None

    def _shortened(self, call: ExecutedToolCall, size: int) -> ResultOverride:
        text = "\n".join(part.text for part in call.content if isinstance(part, TextContent))
        images = sum(isinstance(part, ImageContent) for part in call.content)
        lost = f" {images} of its parts are images and left out." if images else ""
        note = (
            f"[The results of this run hold more than {self._max_bytes / 1e6:g} MB, so of this one only the beginning "
            f"and the end are kept.{lost} Ask for less at a time.]"
        )
        kept = keep_head_and_tail(text, ALWAYS_KEPT_BYTES).text
        details = {"output_bytes": size, **(call.details or {}), "truncated": True}
        return ResultOverride(content=(TextContent(f"{kept}\n{note}" if kept else note),), details=details)


def _size(part: ToolResultContent) -> int:
    if isinstance(part, TextContent):
        return len(part.text.encode("utf-8", "surrogatepass"))
    return len(part.data_base64)
