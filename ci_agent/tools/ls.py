"""The `ls` tool: what is in one folder."""

import heapq
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.terminal import printable
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.define import closed_object, executing, number_property, text_property, text_result, whole_number
from ci_agent.tools.file_access import FileAccess, kind_of, open_folder
from ci_agent.tools.missing import require_folder
from ci_agent.tools.truncate import MAX_BYTES, count_of, take_lines

DEFAULT_ENTRIES = 500

_MAX_ENTRIES = 10_000
_MAX_TEXT_BYTES = MAX_BYTES - 1_000


def create_ls_tool(files: FileAccess) -> Tool:
    """Lists names, also of what may not be read: only the path itself is the policy's business."""

    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        path = files.resolve(arguments.get("path", "."))
        require_folder(files, path)
        limit = min(whole_number(arguments, "limit", DEFAULT_ENTRIES), _MAX_ENTRIES)
        return _list(files, path, limit, cancel)

    return Tool(
        name="ls",
        description=(
            "List one folder, sorted by name, hidden entries included: folders with a slash at the end, files with "
            f"their size, symlinks with their target. {DEFAULT_ENTRIES} entries unless limit says otherwise."
        ),
        parameters=closed_object(
            {
                "path": text_property("The folder. Default: the workspace."),
                "limit": number_property(f"How many entries to show. Default {DEFAULT_ENTRIES}."),
            },
            required=[],
        ),
        execute=executing(run),
    )


def _list(files: FileAccess, path: Path, limit: int, cancel: CancelToken) -> ToolResult:
    with open_folder(files, path) as folder:
        total, names = _first_names(folder, limit, cancel)
        lines, _ = take_lines((_line(name, folder) for name in names), limit, _MAX_TEXT_BYTES)
    details = {"entries": total, "truncated": len(lines) < total}
    if total == 0:
        return text_result(f"{files.show(path)} is empty.", details)
    if len(lines) < total:
        lines.append(f"[{len(lines):,} of {count_of(total, 'entry', 'entries')} shown; raise limit, or use find.]")
    return text_result("\n".join(lines), details)


def _first_names(folder: int, limit: int, cancel: CancelToken) -> tuple[int, list[str]]:
    """How many names there are, and the first of them in order, without holding all of a huge folder."""
    total = 0

    def names() -> Iterator[str]:
        nonlocal total
        with os.scandir(folder) as entries:
            for entry in entries:
                cancel.raise_if_cancelled()
                total += 1
                yield entry.name

    first = heapq.nsmallest(limit, names())
    return total, first


def _line(name: str, folder: int) -> str:
    shown = printable(name)
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"{shown} -> {printable(os.readlink(name, dir_fd=folder))}"
    except OSError:
        return shown  # gone since its name was read, or not to be looked at
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(status.st_mode):
        return f"{shown}  {count_of(status.st_size, 'byte')}"
    return f"{shown}  ({kind_of(status.st_mode).removeprefix('a ')})"
