"""The `grep` tool: lines that match, in the files that may be read and are not ignored."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.define import (
    closed_object,
    executing,
    flag_property,
    number_property,
    text_property,
    text_result,
    whole_number,
)
from ci_agent.tools.file_access import FileAccess, NotPermittedError, open_file
from ci_agent.tools.globs import PathGlob, compile_glob_argument
from ci_agent.tools.grep_lines import GROUP_SEPARATOR, Limits, ShownMatches, show_matches
from ci_agent.tools.line_search import LinePattern, compile_pattern, search_lines
from ci_agent.tools.missing import require_existence
from ci_agent.tools.ripgrep import Ripgrep, may_match, rust_expression
from ci_agent.tools.text_document import presentable
from ci_agent.tools.text_stream import detect_encoding, read_head, utf8_chunks
from ci_agent.tools.truncate import MAX_BYTES, count_of
from ci_agent.tools.walk import walk

DEFAULT_MATCHES = 100
MAX_CONTEXT_LINES = 50

MAX_SEARCHED_BYTES = 1 << 28
"""Of one file, so that a log that fills the disk does not use up the time for all others."""

_FEW_FILES = 100
"""Searched without starting a program: that costs as much."""

_BATCH_FILES = 2_000

_MAX_TEXT_BYTES = MAX_BYTES - 1_000
"""What the notes leave for the lines."""

_PARAMETERS = closed_object(
    {
        "pattern": text_property("The regular expression, or with literal the text, to look for in each line."),
        "path": text_property("A folder to search in, or one file. Default: the workspace."),
        "glob": text_property(
            "Only files like this: *.py in any folder, src/**/*.{ts,tsx} counted from path, !*.md for others."
        ),
        "ignore_case": flag_property("Upper and lower case are the same. Default false."),
        "literal": flag_property("The pattern is plain text. Default false."),
        "context": number_property(
            "How many lines to show before and after each match. Default 0.",
            minimum=0,
            maximum=MAX_CONTEXT_LINES,
        ),
        "limit": number_property(f"How many matching lines to show. Default {DEFAULT_MATCHES}."),
    },
    required=["pattern"],
)


@dataclass(frozen=True, slots=True)
class _Query:
    pattern: LinePattern
    glob: PathGlob | None
    context: int
    max_matches: int
    rust_expression: str | None
    """The same pattern for ripgrep; None: it cannot help."""


@dataclass(slots=True)
class _Found:
    """What a search has come to so far."""

    lines: list[str] = field(default_factory=list)
    size_bytes: int = 0
    matches: int = 0
    files: int = 0
    has_more: bool = False
    refused: int = 0
    """Files that the policy does not let be read."""
    unreadable: int = 0
    huge: int = 0
    """Files searched up to MAX_SEARCHED_BYTES only."""
    unlisted: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Grep:
    files: FileAccess
    ripgrep: Ripgrep | None


def create_grep_tool(files: FileAccess, ripgrep: Ripgrep | None = None) -> Tool:
    """`ripgrep` makes searching many files faster and changes no answer; `find_ripgrep` looks for it."""
    tool = _Grep(files, ripgrep)

    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        start = files.resolve(arguments.get("path", "."))
        require_existence(files, start, "list")
        query = _query(arguments)
        found = _Found()
        if os.path.isdir(start):
            _search_folder(tool, start, query, found, cancel)
        else:
            _search_file(files, start, query, found, cancel)
        return _result(found, query)

    return Tool(
        name="grep",
        description=(
            "Search file contents for a regular expression (RE2 syntax, line by line). Shows path:line:text for each "
            f"matching line, sorted by path: {DEFAULT_MATCHES} lines unless limit says otherwise, at most 50 kB. "
            "Binary files, .git and what .gitignore leaves out are not searched; symlinks are not followed."
        ),
        parameters=_PARAMETERS,
        execute=executing(run),
    )


def _query(arguments: JsonObject) -> _Query:
    pattern: str = arguments["pattern"]
    literal: bool = arguments.get("literal", False)
    ignore_case: bool = arguments.get("ignore_case", False)
    return _Query(
        pattern=compile_pattern(pattern, literal=literal, ignore_case=ignore_case),
        glob=compile_glob_argument("glob", arguments["glob"]) if "glob" in arguments else None,
        context=whole_number(arguments, "context", 0),
        max_matches=whole_number(arguments, "limit", DEFAULT_MATCHES),
        rust_expression=rust_expression(pattern, literal=literal, ignore_case=ignore_case),
    )


def _search_folder(tool: _Grep, start: Path, query: _Query, found: _Found, cancel: CancelToken) -> None:
    candidates = _candidates(tool.files, start, query.glob, cancel, found.unlisted)
    for path in _worth_opening(tool, start, query, candidates, cancel):
        try:
            _search_file(tool.files, start / path, query, found, cancel)
        except NotPermittedError:
            found.refused += 1
        except _BinaryError:
            continue
        except ToolError:
            found.unreadable += 1
        if found.has_more:
            return


def _candidates(
    files: FileAccess, start: Path, glob: PathGlob | None, cancel: CancelToken, unlisted: list[str]
) -> Iterator[str]:
    for entry in walk(files, start, cancel, unlisted):
        if entry.kind == "file" and (glob is None or glob.matches(presentable(entry.path), is_folder=False)):
            yield entry.path


def _worth_opening(
    tool: _Grep, start: Path, query: _Query, candidates: Iterator[str], cancel: CancelToken
) -> Iterator[str]:
    """The candidates without those of which ripgrep knows that nothing in them matches.

    What it is not asked about stays in: files that are refused, and huge ones.
    """
    yield from islice(candidates, _FEW_FILES)
    while batch := {path: start / path for path in islice(candidates, _BATCH_FILES)}:
        askable = [path for path, where in batch.items() if _size(where) <= MAX_SEARCHED_BYTES]
        permitted = [path for path in askable if tool.files.permits("read", batch[path])]
        narrowed = None
        if tool.ripgrep and query.rust_expression is not None and len(permitted) > _FEW_FILES:
            narrowed = may_match(tool.ripgrep, query.rust_expression, start, permitted, cancel)
        dropped = frozenset[str]() if narrowed is None else frozenset(permitted) - narrowed
        yield from (path for path in batch if path not in dropped)


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0  # gone; opening it will say so


class _BinaryError(ToolError):
    pass


def _search_file(files: FileAccess, path: Path, query: _Query, found: _Found, cancel: CancelToken) -> None:
    with open_file(files, path) as file:
        encoding = detect_encoding(read_head(file))
        if encoding is None:
            raise _BinaryError(f"{files.show(path)} is a binary file; grep searches text.")
        found.huge += os.fstat(file.fileno()).st_size > MAX_SEARCHED_BYTES
        text = utf8_chunks(file, encoding, cancel, MAX_SEARCHED_BYTES)
        lines = search_lines(text, query.pattern, query.context)
        first = next(lines, None)
        if first is None:
            return
        shown = show_matches(
            files.show(path),
            chain([first], lines),
            query.pattern,
            Limits(query.max_matches - found.matches, _MAX_TEXT_BYTES - found.size_bytes, query.context),
        )
    _add(found, shown, query)


def _add(found: _Found, shown: ShownMatches, query: _Query) -> None:
    if query.context and found.lines and shown.lines:
        found.lines.append(GROUP_SEPARATOR)
    found.lines += shown.lines
    found.size_bytes += shown.size_bytes
    found.matches += shown.matches
    found.files += shown.matches > 0
    found.has_more = shown.has_more


def _result(found: _Found, query: _Query) -> ToolResult:
    details = {
        "matches": found.matches,
        "files_with_matches": found.files,
        "files_refused": found.refused,
        "files_unreadable": found.unreadable,
        "folders_unlisted": len(found.unlisted),
        "truncated": found.has_more,
    }
    lines = found.lines or ["Nothing matches."]
    return text_result("\n".join([*lines, *_notes(found, query)]), details)


def _notes(found: _Found, query: _Query) -> Iterator[str]:
    if found.has_more:
        limit = "the limit" if found.matches == query.max_matches else "50 kB"
        yield (
            f"[{count_of(found.matches, 'matching line')} shown, which is {limit}; there are more. "
            "Narrow pattern, path or glob.]"
        )
    if found.refused:
        yield f"[{count_of(found.refused, 'file')} not searched: the policy does not let them be read.]"
    if found.unreadable:
        yield f"[{count_of(found.unreadable, 'file')} could not be read.]"
    if found.huge:
        yield f"[{count_of(found.huge, 'file')} searched only in the first {MAX_SEARCHED_BYTES >> 20} MiB.]"
    if found.unlisted:
        yield f"[{count_of(len(found.unlisted), 'folder')} could not be listed, or not completely.]"
    if not found.lines:
        yield "[What .gitignore leaves out is searched only when path names it.]"
