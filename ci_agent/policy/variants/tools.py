"""Calls of other tools made hostile: paths, URLs, arguments."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.variants.command_words import HIDDEN
from ci_agent.policy.variants.plainly import lists_method, reaches, spells_name
from ci_agent.policy.variants.urls import url_variants
from ci_agent.policy.variants.variant import RuleTest, Trick, Variant, never

_HIDDEN: Final = (*HIDDEN, "\0", "\n", "\x1b")

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")

_TELLING: Final = {**dict.fromkeys(FILE_TOOLS, "path"), "fetch": "url", "bash": "command"}
"""The argument of a built-in tool that its rules are about."""


def file_variants(site: Site, call: Witness, canary: str) -> Iterator[Variant]:
    """For a call of a built-in file tool; nothing when it names no path."""
    path = call.arguments.get("path")
    if not isinstance(path, str):
        return
    for text, trick, says in _paths(site, path, canary):
        yield Variant(trick, _with(call, "path", text), says=says)
    if "write" in FILE_TOOLS[call.tool]:
        for text in (f".git/hooks/{canary}", ".git/config", f"y/.git/{canary}", f".GIT/{canary}"):
            yield Variant("path", _with(call, "path", text), says=spells_name(".git"))
        workflow = f".github/workflows/{canary}.yml"
        yield Variant("path", _with(call, "path", workflow), says=spells_name("workflows"))


def fetch_variants(call: Witness, canary: str) -> Iterator[Variant]:
    url, used = call.arguments.get("url"), str(call.arguments.get("method", "GET")).upper()
    if not isinstance(url, str):
        return
    for hostile in url_variants(url, canary):
        yield Variant("URL", _with(call, "url", hostile.text), says=hostile.says)
    for method in _METHODS:
        if method != used:
            yield Variant("URL", _with(call, "method", method), says=lists_method(method))


def type_variants(call: Witness) -> Iterator[Variant]:
    """The argument that a rule for a built-in tool is about, as something else than text."""
    name = _TELLING.get(call.tool)
    if name is not None and name in call.arguments:
        value = call.arguments[name]
        wrong: tuple[Json, ...] = ([value], {name: value}, None, True, 1)
        for other in wrong:
            yield Variant("argument", _with(call, name, other))


def _paths(site: Site, path: str, canary: str) -> Iterator[tuple[str, Trick, RuleTest]]:
    root = site.workspace.root
    first, _, rest = path.partition("/")
    above = reaches(site, root.parent / canary)
    yield f"../{canary}", "path", above
    yield f"{canary}/../../{canary}", "path", above
    yield f"/{canary}/y", "path", reaches(site, Path(f"/{canary}/y"))
    yield f"~/{canary}", "path", never
    yield "/proc/self/environ", "path", never
    yield "/dev/fd/0", "path", never
    if not path.startswith(("/", "~", ".")):
        alike = "/".join(filter(None, (f"{first}-{canary}", rest)))
        yield alike, "look-alike path", reaches(site, root / alike)
    for char in _HIDDEN:
        yield path + char, "hidden character", never


def _with(call: Witness, name: str, value: Json) -> Witness:
    changed: JsonObject = {**call.arguments, name: value}
    return Witness(call.tool, changed)
