"""The `find` tool: names and paths that a glob means."""

from collections.abc import Iterator

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.define import closed_object, executing, number_property, text_property, text_result, whole_number
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.globs import compile_glob_argument
from ci_agent.tools.missing import require_folder
from ci_agent.tools.text_document import presentable
from ci_agent.tools.truncate import MAX_BYTES, count_of, take_lines
from ci_agent.tools.walk import walk

DEFAULT_PATHS = 1_000

_MAX_TEXT_BYTES = MAX_BYTES - 1_000


def create_find_tool(files: FileAccess) -> Tool:
    """Lists names, also of what may not be read: only the path itself is the policy's business."""

    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        start = files.resolve(arguments.get("path", "."))
        require_folder(files, start)
        glob = compile_glob_argument("pattern", arguments["pattern"])
        limit = whole_number(arguments, "limit", DEFAULT_PATHS)
        unlisted: list[str] = []
        found = (
            files.show(start / entry.path) + ("/" if entry.kind == "folder" else "")
            for entry in walk(files, start, cancel, unlisted)
            if glob.matches(presentable(entry.path), is_folder=entry.kind == "folder")
        )
        paths, has_more = take_lines(found, limit, _MAX_TEXT_BYTES)
        details = {"paths": len(paths), "folders_unlisted": len(unlisted), "truncated": has_more}
        lines = paths or ["Nothing matches."]
        return text_result("\n".join([*lines, *_notes(paths, unlisted, has_more)]), details)

    return Tool(
        name="find",
        description=(
            "Find files and folders by a glob, hidden ones included. Shows paths, sorted, folders with a slash at the "
            f"end: {DEFAULT_PATHS:,} unless limit says otherwise, at most 50 kB. Leaves out .git and what .gitignore "
            "leaves out; symlinks are listed and not followed."
        ),
        parameters=closed_object(
            {
                "pattern": text_property(
                    "A glob. Without a slash it means a name in any folder: *.py. With one it counts from path: "
                    "src/**/*.{ts,tsx}. A slash at the end means folders only."
                ),
                "path": text_property("The folder to look in. Default: the workspace."),
                "limit": number_property(f"How many paths to show. Default {DEFAULT_PATHS:,}."),
            },
            required=["pattern"],
        ),
        execute=executing(run),
    )


def _notes(paths: list[str], unlisted: list[str], has_more: bool) -> Iterator[str]:
    if has_more:
        yield f"[{count_of(len(paths), 'path')} shown; there are more. Narrow pattern or path, or raise limit.]"
    if unlisted:
        yield f"[{count_of(len(unlisted), 'folder')} could not be listed, or not completely.]"
    if not paths:
        yield "[What .gitignore leaves out is found only when path names its folder.]"
