"""The `write` tool: a whole file at once, in one step."""

from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.atomic_write import write_atomically
from ci_agent.tools.define import closed_object, executing, text_property, text_result
from ci_agent.tools.diff import unified_diff
from ci_agent.tools.file_access import FileAccess, open_file
from ci_agent.tools.text_document import decode_document, presentable
from ci_agent.tools.text_stream import read_at_most
from ci_agent.tools.truncate import count_lines, count_of

_MAX_COMPARED_BYTES = 1_000_000


def create_write_tool(files: FileAccess) -> Tool:
    """A link is followed before the policy is asked: its target is judged and replaced, and the link stays."""

    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        path = _target(files, arguments["path"])
        content: str = arguments["content"]
        before = _text_before(files, path)
        created = write_atomically(files, path, encode_text(content, "content"), cancel)
        return _result(files.show(path), content, before, created)

    return Tool(
        name="write",
        description=(
            "Write a whole text file as UTF-8: create it, or replace everything in it. Missing folders are created. "
            "To change parts of a file use edit."
        ),
        parameters=closed_object(
            {
                "path": text_property("The file, relative to the workspace or absolute."),
                "content": text_property("Everything that the file shall contain, exactly."),
            },
            required=["path", "content"],
        ),
        execute=executing(run),
        execution_mode="sequential",
    )


def encode_text(text: str, argument: str) -> bytes:
    """UTF-8, or a ToolError that shows the character that has no such form."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{argument} contains the lone surrogate U+{ord(text[error.start]):04X} at character {error.start}, which "
            "no text file can hold; send the character itself."
        ) from error


def _target(files: FileAccess, text: str) -> Path:
    path = files.resolve(text)
    if text.endswith("/"):
        raise ToolError(f"{files.show(path)}/ names a folder; give the path of a file in it.")
    return path


def _text_before(files: FileAccess, path: Path) -> str | None:
    """What the file said, for the record; None where nobody may know, and where it is large, binary or missing."""
    try:
        with open_file(files, path) as file:
            data = read_at_most(file, _MAX_COMPARED_BYTES + 1)
    except ToolError:
        return None
    document = decode_document(data) if len(data) <= _MAX_COMPARED_BYTES else None
    return presentable(document.text) if document else None


def _result(shown: str, content: str, before: str | None, created: bool) -> ToolResult:
    size = len(content.encode())
    lines = count_lines(content)
    verb = "Created" if created else "Overwrote"
    comparable = not created and before is not None and size <= _MAX_COMPARED_BYTES
    details = {
        "created": created,
        "size_bytes": size,
        "lines": lines,
        "diff": unified_diff(before or "", content, shown) if comparable else None,
    }
    return text_result(f"{verb} {shown}: {count_of(size, 'byte')}, {count_of(lines, 'line')}.", details)
