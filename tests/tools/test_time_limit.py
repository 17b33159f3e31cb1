"""A call that takes too long fails; a run that is cancelled stays cancelled."""

import pytest

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.messages import TextContent
from ci_agent.tool import OnUpdate, Tool, ToolResult
from ci_agent.tools.time_limit import with_time_limit

DONE = ToolResult((TextContent("done"),))


def waiting(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
    cancel.wait(60)
    cancel.raise_if_cancelled()
    return DONE


def call(tool: Tool, cancel: CancelToken) -> ToolResult:
    return tool.execute("c", {}, cancel, lambda _: None)


def test_a_call_within_its_time_returns_what_the_tool_returns() -> None:
    tool = Tool("quick", "", {}, lambda *_: DONE, execution_mode="sequential")
    limited = with_time_limit(tool, 60)
    assert call(limited, CancelToken()) == DONE
    assert (limited.name, limited.execution_mode) == ("quick", "sequential")


def test_a_call_beyond_its_time_fails_and_says_so() -> None:
    with pytest.raises(ToolError, match=r"^slow was stopped after 0\.01 s; ask for less at once$"):
        call(with_time_limit(Tool("slow", "", {}, waiting), 0.01), CancelToken())


def test_a_cancelled_run_is_not_mistaken_for_a_slow_tool() -> None:
    cancel = CancelToken()
    cancel.cancel("SIGTERM")
    with pytest.raises(Cancelled, match="SIGTERM"):
        call(with_time_limit(Tool("slow", "", {}, waiting), 60), cancel)
