"""The built-in tools by name: adding one is its module and one row here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from ci_agent.process import Processes
from ci_agent.sandbox.confinement import Confine, ConfineReader, leave_reader_unconfined, leave_unconfined
from ci_agent.tool import Tool
from ci_agent.tools.bash import DEFAULT_BASH_TIMEOUT_S, MAX_BASH_TIMEOUT_S, BashSettings, create_bash_tool
from ci_agent.tools.edit import create_edit_tool
from ci_agent.tools.fetch import create_fetch_tool
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.find import create_find_tool
from ci_agent.tools.grep import create_grep_tool
from ci_agent.tools.ls import create_ls_tool
from ci_agent.tools.propose import NOTHING_TO_PROPOSE, Proposing, create_propose_tool
from ci_agent.tools.read import create_read_tool
from ci_agent.tools.ripgrep import find_ripgrep
from ci_agent.tools.spill import AsItIs, NewFilter
from ci_agent.tools.time_limit import with_time_limit
from ci_agent.tools.write import create_write_tool
from ci_agent.workspace import Workspace

PermitsPath: TypeAlias = Callable[[str, Literal["list", "read", "write"], Path], bool]
"""Whether the tool of this name may open a resolved path."""

DEFAULT_TIMEOUT_S = 30.0

_FILE_TOOLS: dict[str, Callable[[FileAccess], Tool]] = {
    "read": create_read_tool,
    "write": create_write_tool,
    "edit": create_edit_tool,
    "grep": create_grep_tool,
    "find": create_find_tool,
    "ls": create_ls_tool,
}

TOOL_NAMES = (*_FILE_TOOLS, "bash", "fetch", "propose")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What the tools of a run are made with."""

    workspace: Workspace
    permits_path: PermitsPath
    permits_address: Callable[[str, str], bool]
    """Whether a URL may be fetched from the address that its host was resolved to."""
    environment: Mapping[str, str]
    """All that child processes get."""
    processes: Processes
    proposing: Proposing = NOTHING_TO_PROPOSE
    confine: Confine = leave_unconfined
    """How the commands of each call of `bash` are kept in."""
    confine_reader: ConfineReader = leave_reader_unconfined
    timeout_s: float | None = None
    """For each call, whatever it asks for; None: 120 for bash (up to 600 if it asks), 30 for the others."""
    spill_folder: Path | None = None
    spill_filter: NewFilter = AsItIs
    """What whole outputs go through before they are written down."""


def create_tools(settings: ToolSettings) -> dict[str, Tool]:
    """Every built-in tool by its name, each with its time limit."""
    ripgrep = find_ripgrep(
        settings.environment.get("PATH", ""), settings.workspace, settings.processes, settings.confine_reader
    )
    creators = _FILE_TOOLS | {"grep": partial(create_grep_tool, ripgrep=ripgrep)}
    tools = [create(_file_access(name, settings)) for name, create in creators.items()]
    tools.append(create_fetch_tool(settings.permits_address))
    tools.append(create_propose_tool(settings.proposing))
    limited = [with_time_limit(tool, settings.timeout_s or DEFAULT_TIMEOUT_S) for tool in tools]
    bash = create_bash_tool(
        settings.workspace,
        settings.environment,
        settings.processes,
        BashSettings(
            default_timeout_s=settings.timeout_s or DEFAULT_BASH_TIMEOUT_S,
            max_timeout_s=settings.timeout_s or MAX_BASH_TIMEOUT_S,
            spill_folder=settings.spill_folder,
            spill_filter=settings.spill_filter,
            confine=settings.confine,
        ),
    )
    return {tool.name: tool for tool in (*limited, bash)}


def _file_access(name: str, settings: ToolSettings) -> FileAccess:
    return FileAccess(settings.workspace, lambda effect, path: settings.permits_path(name, effect, path))


def tools_without_a_run() -> dict[str, Tool]:
    """Every built-in tool to look at, its schema and its description; none of them may open anything."""
    settings = ToolSettings(
        workspace=Workspace(Path("/")),
        permits_path=lambda _name, _effect, _path: False,
        permits_address=lambda _url, _address: False,
        environment={},
        processes=Processes(),
    )
    return create_tools(settings)
