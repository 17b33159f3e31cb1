"""Where in the repository a call points, for services that show findings beside the code."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.terminal import printable

_FILE_TOOLS: Final = frozenset({"read", "write", "edit"})
_SHIPPED: Final = "shipped/"
"""Where the rules of the policies that come with ci-agent say they stand."""

_IN_GIT: Final = re.compile(r"git:[^:]+:(?P<path>[^:]+)")
"""A file of a revision, whose path begins at the top of the repository."""

_MAX_PATH_CHARS = 500
_MAX_LINE = 10_000_000


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    """Relative to the top of the repository, with slashes, and inside of it."""
    line: int | None = None
    """Counted from 1; None: the whole file."""


@dataclass(frozen=True, slots=True)
class _Folders:
    """Of a run, all absolute as far as its record is honest."""

    root: str
    workspace: str
    started_in: str


def place_of(call: JsonObject, run: JsonObject | None) -> Place | None:
    """The rule that denied it, or came nearest to allowing it, if the policy lies in the repository; else the file that
    the call names, if that does. None: it points to nothing there, or the beginning of the record is lost.

    `run` is that of the transcript.
    """
    if run is None:
        return None
    folders = _folders(run)
    return _rule_place(call, folders) or _file_place(call, folders)


def root_of(run: JsonObject) -> str:
    """The folder that places are relative to; records that do not say so are of runs at the top of a repository."""
    return _folders(run).root


def _folders(run: JsonObject) -> _Folders:
    workspace, checkout = run["workspace"], run.get("checkout")
    if checkout is None:
        return _Folders(workspace, workspace, workspace)
    return _Folders(checkout["root"], workspace, checkout["started_in"])


def _rule_place(call: JsonObject, folders: _Folders) -> Place | None:
    decision = call["decision"]
    if call["status"] != "denied" or decision is None:
        return None
    return _source_place(decision["source"] or (decision["nearest"] or {}).get("source") or "", folders)


def source_place(source: str, checkout: JsonObject) -> Place | None:
    """Of `policy.yml:7`, with the run's `checkout`; None: it is no file of the repository."""
    return _source_place(source, _Folders(checkout["root"], checkout["root"], checkout["started_in"]))


def _source_place(source: str, folders: _Folders) -> Place | None:
    file, _, line = source.rpartition(":")
    if file.startswith(_SHIPPED) or not line.isdecimal():
        return None
    in_git = _IN_GIT.fullmatch(file)
    path = _inside(in_git["path"], folders.root, folders) if in_git else _inside(file, folders.started_in, folders)
    return None if path is None else Place(path, _line_number(int(line[:9])))


def _file_place(call: JsonObject, folders: _Folders) -> Place | None:
    arguments: Mapping[str, Json] = call["arguments"] or {}
    named = arguments.get("path")
    if call["tool"] not in _FILE_TOOLS or not isinstance(named, str):
        return None
    path = _inside(named, folders.workspace, folders)
    return None if path is None else Place(path, _line_number(arguments.get("offset")))


def _inside(path: str, folder: str, folders: _Folders) -> str | None:
    if not path or len(path) > _MAX_PATH_CHARS or path != printable(path):
        return None
    inside = posixpath.relpath(posixpath.join(folder, path), folders.root)
    return None if inside == "." or inside.split("/")[0] == ".." else inside


def _line_number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_LINE else None
