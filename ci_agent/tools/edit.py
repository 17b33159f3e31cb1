"""The `edit` tool: exact replacements in one file, all of them or none."""

import os
from pathlib import Path
from typing import BinaryIO

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.atomic_write import FileVersion, version_of, write_atomically
from ci_agent.tools.define import closed_object, executing, text_property, text_result
from ci_agent.tools.diff import unified_diff
from ci_agent.tools.file_access import FileAccess, open_file
from ci_agent.tools.file_kinds import describe_binary
from ci_agent.tools.missing import require_existence
from ci_agent.tools.replacements import Replaced, Replacement, replace_exactly
from ci_agent.tools.text_document import TextDocument, decode_document, encode_document, presentable
from ci_agent.tools.text_stream import read_at_most
from ci_agent.tools.truncate import count_of
from ci_agent.tools.write import encode_text

MAX_EDITED_BYTES = 10_000_000

_PARAMETERS = closed_object(
    {
        "path": text_property("The file, relative to the workspace or absolute."),
        "edits": {
            "type": "array",
            "description": "The replacements, each checked against the original text.",
            "minItems": 1,
            "items": closed_object(
                {
                    "old": text_property("Text of the file, exactly, long enough to occur only once.")
                    | {"minLength": 1},
                    "new": text_property("What stands there instead; empty to delete it."),
                },
                required=["old", "new"],
            ),
        },
    },
    required=["path", "edits"],
)


def create_edit_tool(files: FileAccess) -> Tool:
    """Asks the policy for writing alone. Where reading is not permitted, nothing of the file is quoted or recorded."""

    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        path = files.resolve(arguments["path"])
        require_existence(files, path, "write")
        replacements = [_replacement(number, edit) for number, edit in enumerate(arguments["edits"])]
        may_quote = files.permits("read", path)
        document, version = _load(files, path)
        try:
            replaced = replace_exactly(document.text, replacements, cancel, may_quote=may_quote)
        except ToolError as error:
            raise ToolError(f"{files.show(path)} was not changed.\n{error}") from error
        data = encode_document(TextDocument(replaced.text, document.encoding))
        write_atomically(files, path, data, cancel, expected=version)
        diff = unified_diff(presentable(document.text), presentable(replaced.text), files.show(path))
        return _result(files.show(path), replaced, len(replacements), diff if may_quote else None)

    return Tool(
        name="edit",
        description=(
            "Change a text file by exact replacements. Each old must occur exactly once in the file as it is now, and "
            "the edits must not overlap; if one fails, nothing is changed. Whitespace and indentation count, line ends "
            "(LF, CRLF) are kept as they are. Several changes to one file belong in one call."
        ),
        parameters=_PARAMETERS,
        execute=executing(run),
        execution_mode="sequential",
        prepare_arguments=repair_edit_arguments,
    )


def repair_edit_arguments(raw: Json) -> Json:
    """What models are known to send instead: `edits` as JSON text, as one object, or its two keys beside `path`."""
    if not isinstance(raw, dict):
        return raw
    arguments = dict(raw)
    if "edits" not in arguments and {"old", "new"} <= arguments.keys():
        arguments["edits"] = {"old": arguments.pop("old"), "new": arguments.pop("new")}
    if isinstance(arguments.get("edits"), str):
        arguments["edits"] = _parsed(arguments["edits"])
    if isinstance(arguments.get("edits"), dict):
        arguments["edits"] = [arguments["edits"]]
    return arguments


def _parsed(text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError:
        return text


def _replacement(number: int, edit: JsonObject) -> Replacement:
    for key in ("old", "new"):
        encode_text(edit[key], f"edits[{number}].{key}")
    return Replacement(edit["old"], edit["new"])


def _load(files: FileAccess, path: Path) -> tuple[TextDocument, FileVersion]:
    with open_file(files, path, "write") as file:
        version = version_of(os.fstat(file.fileno()))
        return _decode(files.show(path), file, version.size), version


def _decode(shown: str, file: BinaryIO, size: int) -> TextDocument:
    data = read_at_most(file, MAX_EDITED_BYTES + 1)
    if len(data) > MAX_EDITED_BYTES:
        raise ToolError(f"{shown} has {count_of(size, 'byte')}; edit takes files up to {MAX_EDITED_BYTES:,} bytes.")
    document = decode_document(data)
    if document is None:
        raise ToolError(f"{shown} is {describe_binary(data)} ({count_of(size, 'byte')}), not text; edit changes text.")
    return document


def _result(shown: str, replaced: Replaced, count: int, diff: str | None) -> ToolResult:
    line = replaced.first_changed_line
    details = {"edits": count, "first_changed_line": line, "diff": diff}
    return text_result(f"Edited {shown}: {count_of(count, 'replacement')}, first changed line {line}.", details)
