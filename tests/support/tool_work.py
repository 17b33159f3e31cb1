"""What the tools of a test do when they are called."""

from collections.abc import Callable

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.tool import OnUpdate, ToolResult


def never_runs(_arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
    pytest.fail("the tool ran")


def raising(error: BaseException) -> Callable[..., str]:
    def do(*_: object) -> str:
        raise error

    return do


def noting(happened: list[str], what: str) -> Callable[..., str]:
    def do(*_: object) -> str:
        happened.append(what)
        return "done"

    return do


def returning(result: object) -> Callable[..., ToolResult]:
    return lambda *_: result  # type: ignore[return-value]  # broken on purpose
