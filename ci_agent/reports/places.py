"""Where in the workspace a call points, for services that show findings beside the code."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.terminal import printable

_FILE_TOOLS: Final = frozenset({"read", "write", "edit"})
_SHIPPED: Final = "shipped/"
"""Where the rules of the policies that come with ci-agent say they stand."""

_MAX_PATH_CHARS = 500
_MAX_LINE = 10_000_000


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    """Relative to the workspace, with slashes, and inside of it."""
    line: int | None = None
    """Counted from 1; None: the whole file."""


def place_of(call: JsonObject, workspace: str | None) -> Place | None:
    """The rule that denied it, or came nearest to allowing it, if the policy lies in the workspace; else the file that
    the call names, if that does. None: it points to nothing there, or the workspace is not known."""
    if workspace is None:
        return None
    return _rule_place(call, workspace) or _file_place(call, workspace)


def _rule_place(call: JsonObject, workspace: str) -> Place | None:
    decision = call["decision"]
    if call["status"] != "denied" or decision is None:
        return None
    source = decision["source"] or (decision["nearest"] or {}).get("source") or ""
    file, _, line = source.rpartition(":")
    path = None if file.startswith(_SHIPPED) or not line.isdecimal() else _inside(file, workspace)
    return None if path is None else Place(path, _line_number(int(line[:9])))


def _file_place(call: JsonObject, workspace: str) -> Place | None:
    arguments: Mapping[str, Json] = call["arguments"] or {}
    named = arguments.get("path")
    path = _inside(named, workspace) if call["tool"] in _FILE_TOOLS and isinstance(named, str) else None
    return None if path is None else Place(path, _line_number(arguments.get("offset")))


def _inside(path: str, workspace: str) -> str | None:
    if not path or len(path) > _MAX_PATH_CHARS or path != printable(path):
        return None
    inside = posixpath.relpath(posixpath.join(workspace, path), workspace)
    return None if inside == "." or inside.split("/")[0] == ".." else inside


def _line_number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_LINE else None
