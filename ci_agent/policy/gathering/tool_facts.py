"""A call of a tool other than the shell becomes facts: the file or the URL that its arguments name, and the call."""

import re
from collections.abc import Mapping
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.facts import FileFact, NetFact, ToolFact, UnknownFact
from ci_agent.policy.gathering.file_facts import Place, file_fact
from ci_agent.policy.gathering.site import Site
from ci_agent.urls import InvalidUrlError, parse_url

FILE_TOOLS: Final[Mapping[str, tuple[FileEffect, ...]]] = {
    "read": ("read",),
    "write": ("write",),
    "edit": ("read", "write"),
    "grep": ("read",),
    "find": ("list",),
    "ls": ("list",),
}
"""What the built-in file tools do to the file that their argument `path` names."""

_START_IN_WORKSPACE: Final = frozenset({"grep", "find", "ls"})
"""Their `path` may be left out."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def tool_facts(site: Site, name: str, arguments: JsonObject) -> tuple[ToolFact | UnknownFact, ...]:
    """Everything that the call would do, as far as its arguments say so."""
    if not _NAME.fullmatch(name):
        return (UnknownFact(f"{name!r} is no tool name"),)
    if name in FILE_TOOLS:
        return _file_tool(site, name, arguments)
    if name == "fetch":
        return _fetch(name, arguments)
    return (ToolFact(name, arguments),)


def _file_tool(site: Site, name: str, arguments: JsonObject) -> tuple[ToolFact | UnknownFact, ...]:
    path = arguments.get("path", "." if name in _START_IN_WORKSPACE else None)
    if not isinstance(path, str):
        return (UnknownFact("the path is missing or is no text", argument="path"),)
    place = Place(site.workspace.root, DiskBudget(), "path", (0, len(path)), by_tool=True)
    files = [file_fact(site, path, effect, place) for effect in FILE_TOOLS[name]]
    known = tuple(fact for fact in files if isinstance(fact, FileFact))
    unknown = tuple(fact for fact in files if isinstance(fact, UnknownFact))
    return unknown[:1] or (ToolFact(name, arguments, files=known),)


def _fetch(name: str, arguments: JsonObject) -> tuple[ToolFact | UnknownFact, ...]:
    url, method = arguments.get("url"), arguments.get("method", "GET")
    if not isinstance(url, str) or not isinstance(method, str):
        wrong = "url" if not isinstance(url, str) else "method"
        return (UnknownFact(f"the {wrong} is missing or is no text", argument=wrong),)
    try:
        request = NetFact(parse_url(url), method.upper(), argument="url", span=(0, len(url)))
    except InvalidUrlError as error:
        return (UnknownFact(f"the URL is refused: {error}", argument="url", span=(0, len(url))),)
    return (ToolFact(name, arguments, requests=(request,)),)
