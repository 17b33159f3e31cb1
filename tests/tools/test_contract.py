"""What holds for every built-in tool but bash, whatever a model sends it."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.messages import TextContent
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.edit import create_edit_tool
from ci_agent.tools.fetch import create_fetch_tool
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.find import create_find_tool
from ci_agent.tools.grep import create_grep_tool
from ci_agent.tools.ls import create_ls_tool
from ci_agent.tools.propose import KINDS, Proposing, create_propose_tool
from ci_agent.tools.read import create_read_tool
from ci_agent.tools.write import create_write_tool

NAMES = ("read", "write", "edit", "grep", "find", "ls", "fetch", "propose")

ROOM_FOR_DETAILS = 55_000
"""50 kB of text, and the diff of the same size, with what JSON adds to neither."""


@dataclass(frozen=True)
class Example:
    arguments: JsonObject
    """A call that works."""
    failing: JsonObject
    """One whose schema is satisfied and that cannot work."""
    texts: tuple[str, ...]
    """The arguments that take text which a model makes up."""


EXAMPLES = {
    "read": Example({"path": "a.txt"}, {"path": "missing"}, ("path",)),
    "write": Example({"path": "new.txt", "content": "x"}, {"path": "folder", "content": "x"}, ("path", "content")),
    "edit": Example(
        {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]},
        {"path": "a.txt", "edits": [{"old": "absent", "new": "x"}]},
        ("path",),
    ),
    "grep": Example({"pattern": "one"}, {"pattern": "("}, ("pattern", "path", "glob")),
    "find": Example({"pattern": "*"}, {"pattern": "*", "path": "missing"}, ("pattern", "path")),
    "ls": Example({}, {"path": "missing"}, ("path",)),
    "propose": Example({"kind": "comment", "body": "x"}, {"kind": "comment", "title": "no body"}, ("title", "body")),
    "fetch": Example({"url": "http://127.0.0.1:1/"}, {"url": "no url"}, ("url",)),
}

HOSTILE_TEXTS = [
    "",
    "\0",
    "a\0b",
    "\x1b[31m",
    "line\nbreak",
    "\ud800",
    "a\udcffb",
    "\u202e\u200b",
    "x" * 5_000,
    "x/" * 2_500,
    "../" * 1_000 + "nowhere",
    "/" * 300 + "nowhere",
    "~root/.ssh",
    "-",
    "--",
    "-rf",
    "*" * 500,
    "[" * 500,
    "(" * 500,
    "{a,b}" * 100,
    "\\" * 301,
    "%00",
    "CON",
    "/dev/tty",
    "/proc/self/mem",
    "\U0010ffff",
    "e\u0301" * 1_000,
]


@pytest.fixture
def tools(files: FileAccess) -> dict[str, Tool]:
    (files.workspace.root / "folder").mkdir()
    (files.workspace.root / "a.txt").write_text("one\n")
    created = [
        create_read_tool(files),
        create_write_tool(files),
        create_edit_tool(files),
        create_grep_tool(files),
        create_find_tool(files),
        create_ls_tool(files),
        create_propose_tool(Proposing(KINDS, "The bounds.", take_down)),
        create_fetch_tool(lambda _url, _address: True, resolve=lambda _host, _port: ["127.0.0.1"]),
    ]
    by_name = {tool.name: tool for tool in created}
    return {name: by_name[name] for name in NAMES}


def take_down(arguments: JsonObject) -> tuple[str, JsonObject]:
    if "body" not in arguments:
        raise ToolError("A comment needs body.")
    return "Taken down.", {"proposal": arguments["kind"]}


def execute(tool: Tool, arguments: JsonObject, cancel: CancelToken | None = None) -> ToolResult:
    assert list(Draft202012Validator(tool.parameters).iter_errors(arguments)) == []
    return tool.execute("call_1", arguments, cancel or CancelToken(), lambda _update: None)


def outcome(tool: Tool, arguments: JsonObject) -> ToolResult | str:
    """The result, or the message of the ToolError; any other exception passes."""
    try:
        return execute(tool, arguments)
    except ToolError as error:
        return str(error)


def assert_bounded(outcome: ToolResult | str) -> None:
    if isinstance(outcome, str):
        assert 0 < len(outcome) < 6_000
        return
    text = "".join(part.text for part in outcome.content if isinstance(part, TextContent))
    assert len(text.encode()) <= 50_000
    assert len(str(outcome.details)) <= ROOM_FOR_DETAILS


def objects_of(schema: Any) -> Iterator[JsonObject]:
    """Every schema in a schema that describes an object."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects_of(part)


def test_every_tool_is_here(tools: dict[str, Tool]) -> None:
    assert tuple(tools) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_valid_closed_and_described(tools: dict[str, Tool], name: str) -> None:
    schema = tools[name].parameters
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    for part in objects_of(schema):
        assert part["additionalProperties"] is False
        assert set(part["required"]) <= set(part["properties"])
        assert all(each["description"].strip() for each in part["properties"].values())


@pytest.mark.parametrize("name", NAMES)
def test_the_description_is_short_and_says_the_limits(tools: dict[str, Tool], name: str) -> None:
    assert 60 < len(tools[name].description) < 500


def test_what_changes_files_runs_in_order_and_what_looks_runs_at_once(tools: dict[str, Tool]) -> None:
    modes = {name: tool.execution_mode for name, tool in tools.items()}
    assert [name for name in NAMES if modes[name] == "sequential"] == ["write", "edit", "propose"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "fetch"])
def test_a_result_is_text_for_the_model_and_json_for_the_record(tools: dict[str, Tool], name: str) -> None:
    result = execute(tools[name], EXAMPLES[name].arguments)
    assert [type(part) for part in result.content] == [TextContent]
    assert isinstance(result.details, dict)
    assert result.terminate is False


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_is_raised(tools: dict[str, Tool], name: str) -> None:
    with pytest.raises(ToolError):
        execute(tools[name], EXAMPLES[name].failing)


@pytest.mark.parametrize("name", NAMES)
def test_a_cancelled_call_does_nothing(tools: dict[str, Tool], files: FileAccess, name: str) -> None:
    cancel = CancelToken()
    cancel.cancel("enough")
    with pytest.raises(Cancelled):
        execute(tools[name], EXAMPLES[name].arguments, cancel)
    assert sorted(path.name for path in files.workspace.root.iterdir()) == ["a.txt", "folder"]


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name in NAMES for argument in EXAMPLES[name].texts], ids=str
)
def test_hostile_text_is_answered_or_refused_and_never_a_crash(
    tools: dict[str, Tool], name: str, argument: str
) -> None:
    for text in HOSTILE_TEXTS:
        assert_bounded(outcome(tools[name], {**EXAMPLES[name].arguments, argument: text}))


@pytest.mark.parametrize(
    ("old", "new"), [(old, new) for old in ("\0", "\ud800", "one", "x" * 100_000) for new in ("\0", "\udc80", "")]
)
def test_hostile_edits_are_made_or_refused(tools: dict[str, Tool], old: str, new: str) -> None:
    assert_bounded(outcome(tools["edit"], {"path": "a.txt", "edits": [{"old": old, "new": new}]}))


@pytest.mark.parametrize("number", [1.0, 1e300, 10**100])
@pytest.mark.parametrize(
    ("name", "argument"),
    [("read", "offset"), ("read", "limit"), ("grep", "limit"), ("find", "limit"), ("ls", "limit")],
)
def test_every_number_that_the_schema_takes_is_taken(
    tools: dict[str, Tool], *, name: str, argument: str, number: float
) -> None:
    result = outcome(tools[name], {**EXAMPLES[name].arguments, argument: number})
    assert_bounded(result)
    assert isinstance(result, ToolResult) or result.endswith("is beyond the end: a.txt has 1 line.")


@pytest.mark.parametrize("name", ["read", "write", "edit", "grep", "find", "ls"])
def test_the_kernels_own_files_are_out_of_reach(tools: dict[str, Tool], name: str) -> None:
    for path in ("/proc/self/environ", "/proc", "/sys/kernel", "/dev/null", "/dev/shm", "/dev/fd/0"):
        with pytest.raises(ToolError):
            execute(tools[name], {**EXAMPLES[name].arguments, "path": path})


def test_a_large_tree_gives_bounded_results(tools: dict[str, Tool], files: FileAccess) -> None:
    for number in range(600):
        (files.workspace.root / f"{number:0>200}").write_text("one " * 1_000 + "\n")
    for name in ("grep", "find", "ls"):
        assert_bounded(execute(tools[name], EXAMPLES[name].arguments))


def test_no_tool_opens_a_connection_but_fetch(
    tools: dict[str, Tool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_arguments: object, **_options: object) -> Callable[..., None]:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)  # the seam of last resort: the standard library has no other
    for name in NAMES:
        if name != "fetch":
            execute(tools[name], EXAMPLES[name].arguments)
