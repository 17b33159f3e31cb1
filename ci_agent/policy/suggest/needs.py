"""What a denied call lacks: for each fact that nothing grants, the rule that grants it and as little else as can be."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.compiled.match import compile_rule
from ci_agent.policy.compiled.net import is_private
from ci_agent.policy.decide import Policy
from ci_agent.policy.describe import doing
from ci_agent.policy.facts import ExecFact, Fact, FileFact, NetFact, ToolFact, UnknownFact
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.judging.grants import exec_refusal, redirect_refusal, tool_refusal
from ci_agent.policy.judging.judge import Call, judge
from ci_agent.policy.judging.judge_arguments import CallArguments
from ci_agent.policy.matchers.argument_tests import type_name
from ci_agent.policy.matchers.reach import Anchors
from ci_agent.policy.matchers.wildcards import escape
from ci_agent.policy.rules import Rule
from ci_agent.policy.words import Word
from ci_agent.steering_names import changes_what_runs
from ci_agent.urls import DEFAULT_PORTS

MAX_PINNED_CHARACTERS: Final = 100
"""A longer text among a tool's arguments is one of its kind: a rule that spells it would never match again."""


_MODULES: Final = frozenset(
    {"black", "compileall", "coverage", "flake8", "isort", "mypy", "pylint", "pyright", "pytest", "ruff", "unittest"}
)
"""Modules of Python that are checks and tests."""


class NotSuggestedError(Exception):
    """Whether to allow this is for a person to decide, with a rule of their own; the message says why."""


def needed_rules(policy: Policy, tool: str, arguments: JsonObject) -> list[Rule]:
    """One rule for each fact of a denied call that neither the policy nor a rule before it grants; ids are left out.

    Raises NotSuggestedError when one of the facts is nothing that a tool should propose to allow.
    """
    rules: list[Rule] = []
    verdicts = judge(Call(policy.rules, CallArguments(policy.site, tool, arguments)))
    # Commands come first: what is redirected to them is within their reach.
    for verdict in sorted(verdicts, key=lambda each: isinstance(each.fact, FileFact)):
        if verdict.forbidden:
            forbidden = verdict.forbidden[0]
            raise NotSuggestedError(f"rule {forbidden.rule.id} forbids {doing(forbidden.about)}")
        if not verdict.holds and not any(_grants(policy.site, rule, verdict.fact, arguments) for rule in rules):
            rules.append(_rule_for(policy.site, verdict.fact))
    return rules


def _rule_for(site: Site, fact: Fact) -> Rule:
    match fact:
        case ExecFact():
            return _command_rule(site, fact)
        case FileFact():
            tool = "read" if fact.effect in ("read", "list") else "write"
            return replace(_allow(tool), path=(_glob(site, fact),))
        case ToolFact():
            return _tool_rule(site, fact)
        case UnknownFact():
            raise NotSuggestedError(fact.why)


def _tool_rule(site: Site, fact: ToolFact) -> Rule:
    if fact.name in FILE_TOOLS:
        return replace(_allow(fact.name), path=(_tool_glob(site, fact),))
    if fact.requests:
        return _with_requests(_allow(fact.name), fact.requests)
    return replace(_allow(fact.name), args=dict(_argument_tests(fact.arguments)) or None, only=True)


def _allow(tool: str) -> Rule:
    return Rule(id="", effect="allow", tools=(tool,), source="")


def _command_rule(site: Site, fact: ExecFact) -> Rule:
    for at, why in fact.hazards:
        if not _is_known_module(fact, at):
            raise NotSuggestedError(f"`{fact.words[at].text}` {why}")
    if not site.workspace.contains(fact.folder):
        raise NotSuggestedError(f"it runs in {fact.folder}, outside the workspace")
    for name in fact.assignments:
        if changes_what_runs(name):
            raise NotSuggestedError(f"{name} changes what runs")
    words = tuple(map(_token, fact.words))
    rule = replace(_allow("bash"), command=(words,), env=tuple(dict.fromkeys(fact.assignments)) or None)
    globs = [_glob(site, file) for file in fact.files]
    if any(not site.workspace.contains(file.path) for file in fact.files):
        rule = replace(rule, paths=tuple(dict.fromkeys(globs)))
    return _with_requests(rule, fact.requests) if fact.requests else rule


def _is_known_module(fact: ExecFact, at: int) -> bool:
    """`python3 -m pytest`: it runs what the program `pytest` would, and the rule spells it."""
    program, module = fact.words[0].text.rpartition("/")[2], fact.words[at + 1 : at + 2]
    is_python = re.fullmatch(r"python[0-9.]*", program) is not None and fact.words[at].literal == "-m"
    return is_python and bool(module) and module[0].literal in _MODULES


def _token(word: Word) -> str:
    if word.kind == "choice" and all(choice.literal is not None for choice in word.choices):
        return "{" + ",".join(escape(choice.text) for choice in word.choices) + "}"
    if word.literal is None:
        raise NotSuggestedError(f"{word.text}: known only when it runs")
    return escape(word.text)


def _with_requests(rule: Rule, requests: tuple[NetFact, ...]) -> Rule:
    for request in requests:
        if is_private(request.url):
            raise NotSuggestedError(f"{request.url.host} is private or local")
        if request.url.port is None:
            raise NotSuggestedError(f"the port of {request.url} is not known")
    schemes = {request.url.scheme for request in requests}
    ports = {request.url.port for request in requests if request.url.port is not None}
    methods = {request.method for request in requests}
    return replace(
        rule,
        host=tuple(dict.fromkeys(request.url.host for request in requests)),
        scheme=None if schemes == {"https"} else tuple(sorted(schemes)),
        port=None if ports == {DEFAULT_PORTS.get(scheme) for scheme in schemes} else tuple(sorted(ports)),
        method=None if methods == {"GET"} else tuple(sorted(methods)),
    )


def _tool_glob(site: Site, fact: ToolFact) -> str:
    """For a search in a folder, the files in it too, one step down: without them it would find nothing."""
    file = fact.files[0]
    glob = _glob(site, file)
    return f"{glob}/*" if fact.name == "grep" and file.is_folder and glob != "*" else glob


def _glob(site: Site, file: FileFact) -> str:
    """The path itself, relative where it can be; of the workspace's own folder, what is in it."""
    if file.guarded.sealed is not None:
        raise NotSuggestedError(f"{file.path}: {file.guarded.sealed}")
    if file.guarded.must_spell:
        raise NotSuggestedError(f"{file.path} is protected: only a rule that spells it may reach it")
    if not site.workspace.contains(file.path):
        if file.recursive:
            raise NotSuggestedError(f"it reaches all of {file.path}, outside the workspace")
        return _escaped(file.path)
    relative = file.path.relative_to(site.workspace.root)
    return _escaped(relative) if relative.parts else "*"


def _escaped(path: Path) -> str:
    text = escape(str(path))
    for char in "?[]":
        text = text.replace(char, "\\" + char)
    return f"./{text}" if text.startswith(("~", "!")) else text


def _argument_tests(arguments: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for name, value in sorted(arguments.items()):
        if "[" in name or "]" in name or not name:
            raise NotSuggestedError(f"no rule can name the argument {name!r}")
        yield name.replace(".", "\\."), _pinned(value)


def _pinned(value: Json) -> JsonObject:
    if len(json.dumps(value)) <= MAX_PINNED_CHARACTERS:
        return {"const": value}
    return {"type": type_name(value)}


def _grants(site: Site, rule: Rule, fact: Fact, arguments: JsonObject) -> bool:
    """Whether a rule that is proposed for another fact of the call grants this one as well."""
    compiled = compile_rule(rule, Anchors(site.workspace.root, site.around.home), "record")
    given = CallArguments(site, fact.name if isinstance(fact, ToolFact) else "bash", arguments)
    match fact:
        case ExecFact():
            return rule.command is not None and exec_refusal(compiled, fact, given) is None
        case FileFact():
            reads = fact.effect in ("read", "list")
            # The input of a group or a loop is within reach of the commands that it is for.
            is_about = rule.tools == ("read" if reads else "write",) or (reads and rule.command is not None)
            return is_about and redirect_refusal(replace(compiled, commands=None), fact) is None
        case ToolFact():
            return fact.name in rule.tools and tool_refusal(compiled, fact, given) is None
        case UnknownFact():
            return False
