"""The `read` tool: a text file by lines, or an image as the model can see it."""

import base64
import os
from dataclasses import replace
from typing import BinaryIO

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.define import closed_object, executing, number_property, text_property, text_result, whole_number
from ci_agent.tools.excerpt import MAX_SKIPPED_BYTES, Excerpt, TooFarError, take_excerpt
from ci_agent.tools.file_access import FileAccess, open_file
from ci_agent.tools.file_kinds import describe_binary, image_type
from ci_agent.tools.missing import require_existence
from ci_agent.tools.text_stream import TextEncoding, detect_encoding, read_at_most, read_head, utf8_chunks
from ci_agent.tools.truncate import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES, count_of

MAX_IMAGE_BYTES = 3_750_000
"""Its base64 form, a third longer, is the 5 MB that providers take."""

_COUNTED_BYTES = 1 << 24
"""Files up to this size are read to their end, to say how many lines they have."""

_MAX_TEXT_BYTES = MAX_BYTES - 1_000
"""What the notes leave for the text."""


def create_read_tool(files: FileAccess) -> Tool:
    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        path = files.resolve(arguments["path"])
        require_existence(files, path, "read")
        first_line = whole_number(arguments, "offset", 1)
        max_lines = min(whole_number(arguments, "limit", MAX_LINES), MAX_LINES)
        with open_file(files, path) as file:
            return _read(files.show(path), file, first_line, max_lines, cancel)

    return Tool(
        name="read",
        description=(
            f"Read a file: text by lines, at most {MAX_LINES:,} lines and {MAX_BYTES // 1000} kB at once, or a PNG, "
            "JPEG, GIF or WebP image. The text comes exactly as it is in the file, without line numbers. A note at "
            "the end in square brackets says what is missing and with which offset to read on."
        ),
        parameters=closed_object(
            {
                "path": text_property("The file, relative to the workspace or absolute."),
                "offset": number_property("The first line to read, counted from 1. Default 1."),
                "limit": number_property(f"How many lines to read, at most {MAX_LINES:,}. Default {MAX_LINES:,}."),
            },
            required=["path"],
        ),
        execute=executing(run),
    )


def _read(shown: str, file: BinaryIO, first_line: int, max_lines: int, cancel: CancelToken) -> ToolResult:
    head = read_head(file)
    if mime_type := image_type(head):
        return _image_result(shown, file, mime_type)
    encoding = detect_encoding(head)
    if encoding is None:
        raise ToolError(_binary_refusal(shown, file, head))
    size = os.fstat(file.fileno()).st_size
    chunks = utf8_chunks(file, encoding, cancel)
    try:
        excerpt = take_excerpt(chunks, first_line, max_lines, _MAX_TEXT_BYTES, count_all=size <= _COUNTED_BYTES)
    except TooFarError as error:
        raise ToolError(
            f"offset {first_line} lies beyond the first {MAX_SKIPPED_BYTES >> 20} MiB of {shown}, which hold "
            f"{count_of(error.passed_lines, 'line')} and are as far as read goes; search the file with grep."
        ) from error
    if file.tell() < size:
        excerpt = replace(excerpt, total_lines=None)  # a line so long that nobody looked for its end
    return _text_result(shown, excerpt, encoding, size)


def _text_result(shown: str, excerpt: Excerpt, encoding: TextEncoding, size: int) -> ToolResult:
    if not excerpt.lines:
        return _nothing_to_show(shown, excerpt, size)
    notes = _notes(excerpt, encoding)
    text = "".join(line.text for line in excerpt.lines)
    line_end = "\n" if notes and not text.endswith("\n") else ""
    details = {
        "size_bytes": size,
        "first_line": excerpt.first_line,
        "last_line": excerpt.last_line,
        "total_lines": excerpt.total_lines,
        "truncated": excerpt.last_line != excerpt.total_lines or any(line.omitted_bytes for line in excerpt.lines),
    }
    return text_result(text + line_end + "\n".join(notes), details)


def _nothing_to_show(shown: str, excerpt: Excerpt, size: int) -> ToolResult:
    total = excerpt.total_lines or 0
    if excerpt.first_line > 1:
        raise ToolError(f"offset {excerpt.first_line} is beyond the end: {shown} has {count_of(total, 'line')}.")
    return text_result(f"{shown} is empty.", {"size_bytes": size, "total_lines": 0, "truncated": False})


def _notes(excerpt: Excerpt, encoding: TextEncoding) -> list[str]:
    lines, first_line, last_line, total = excerpt.lines, excerpt.first_line, excerpt.last_line, excerpt.total_lines
    notes = []
    if first_line > 1 or last_line != total:
        more = "the file goes on" if total is None else f"the file has {total}"
        advice = "" if last_line == total else f" Read on with offset={last_line + 1}."
        notes.append(f"[Lines {first_line} to {last_line}; {more}.{advice}]")
    if cut := [first_line + index for index, line in enumerate(lines) if line.omitted_bytes]:
        notes.append(
            f"[{count_of(len(cut), 'line')} longer than {MAX_LINE_CHARS:,} characters cut, the first is line {cut[0]}; "
            f"in a shell, sed -n {cut[0]}p and cut -c show all of it.]"
        )
    if any(line.has_wrong_bytes for line in lines):
        notes.append("[Some bytes are not UTF-8 and are shown as U+FFFD.]")
    if encoding.startswith(("utf-16", "utf-32")):
        notes.append(f"[The file is encoded in {encoding.upper()}.]")
    if any(line.has_crlf for line in lines):
        notes.append("[Lines end in CRLF, shown as LF; edit keeps them.]")
    return notes


def _image_result(shown: str, file: BinaryIO, mime_type: str) -> ToolResult:
    data = read_at_most(file, MAX_IMAGE_BYTES + 1)
    if len(data) > MAX_IMAGE_BYTES:
        size = os.fstat(file.fileno()).st_size
        raise ToolError(
            f"{shown} is an {mime_type} of {count_of(size, 'byte')}; images are shown up to {MAX_IMAGE_BYTES:,} bytes. "
            "Make a smaller copy of it first."
        )
    text = f"{shown}: {mime_type}, {count_of(len(data), 'byte')}."
    image = ImageContent(mime_type, base64.b64encode(data).decode("ascii"))
    return ToolResult((TextContent(text), image), {"size_bytes": len(data), "mime_type": mime_type})


def _binary_refusal(shown: str, file: BinaryIO, head: bytes) -> str:
    size = os.fstat(file.fileno()).st_size
    return f"{shown} is {describe_binary(head)} ({count_of(size, 'byte')}), not text; read shows only text and images."
