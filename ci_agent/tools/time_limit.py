"""A tool that is given so much time for a call and no more."""

import dataclasses
import threading

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.tool import OnUpdate, Tool, ToolResult


def with_time_limit(tool: Tool, timeout_s: float) -> Tool:
    """The same tool, whose calls are cancelled and fail when they take longer."""

    def execute(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        own = cancel.child()
        timer = threading.Timer(timeout_s, own.cancel, ["time limit"])
        timer.daemon = True
        try:
            timer.start()
            return tool.execute(call_id, arguments, own, on_update)
        except Cancelled:
            if cancel.is_cancelled:
                raise
            raise ToolError(f"{tool.name} was stopped after {timeout_s:g} s; ask for less at once") from None
        finally:
            timer.cancel()
            own.close()

    return dataclasses.replace(tool, execute=execute)
