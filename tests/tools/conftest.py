from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.messages import TextContent
from ci_agent.process import Processes, open_processes
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.workspace import open_workspace

Call = Callable[..., ToolResult]


@pytest.fixture
def files(tmp_path: Path) -> FileAccess:
    """A workspace in which everything is permitted."""
    return FileAccess(open_workspace(tmp_path), lambda _effect, _path: True)


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    with open_processes() as processes:
        yield processes


@pytest.fixture
def call() -> Call:
    """Execute a tool as the loop would, with arguments by name."""

    def execute(tool: Tool, cancel: CancelToken | None = None, **arguments: Any) -> ToolResult:
        return tool.execute("call_1", arguments, cancel or CancelToken(), lambda _update: None)

    return execute


@pytest.fixture
def text_of() -> Callable[[ToolResult], str]:
    """The text of a result that has one text part and nothing else."""

    def text(result: ToolResult) -> str:
        (part,) = result.content
        assert isinstance(part, TextContent)
        return part.text

    return text
