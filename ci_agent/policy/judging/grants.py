"""Whether an allow rule grants a fact as a whole, and if not, where it stopped matching."""

from dataclasses import replace
from typing import NamedTuple

from ci_agent.hooks import DecisionCode
from ci_agent.policy.compiled.fitting import next_gap
from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.compiled.net import (
    HostSet,
    forbids_request,
    host_refusal,
    is_private,
    is_private_address,
    request_refusal,
)
from ci_agent.policy.compiled.reaching import file_refusal
from ci_agent.policy.compiled.rule_index import ToolRules
from ci_agent.policy.facts import ExecFact, FileFact, NetFact, ToolFact
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.judging.judge_arguments import CallArguments, arguments_refusal
from ci_agent.policy.matchers.command_patterns import TokenPattern
from ci_agent.policy.matchers.reach import names_of
from ci_agent.policy.protected import FREE
from ci_agent.steering_names import changes_what_runs
from ci_agent.urls import Address, Url


class Refusal(NamedTuple):
    """Why a rule does not grant a fact."""

    why: str
    progress: int
    """How far the rule matched; among several the farthest is the nearest rule."""
    code: DecisionCode = "default"
    about: FileFact | NetFact | None = None
    """The part of the fact that it stopped at; None: the fact itself."""


_FITS = 1_000
"""Progress of a rule whose command fits; what it stopped at lies beyond the words."""


def tool_refusal(rule: CompiledRule, fact: ToolFact, arguments: CallArguments) -> Refusal | None:
    """None: the rule grants the call of a tool other than the shell."""
    if rule.commands is not None or (rule.net.is_written and not fact.requests):
        return Refusal("it is about other tools", 0)
    if fact.name in FILE_TOOLS:
        for file in fact.files:
            refusal = _file_refusal(rule, file, progress=1)
            if refusal is not None:
                return refusal
    for request in fact.requests:
        why = request_refusal(rule.net, request)
        if why is not None:
            return Refusal(why, 1, about=request)
    why = arguments_refusal(rule, arguments)
    return None if why is None else Refusal(why, 2)


def _lets_set(pattern: TokenPattern, name: str) -> bool:
    """No wildcard covers a variable that makes programs run or load something, as none covers a hazard among words."""
    return pattern.spells(name) if changes_what_runs(name) else pattern.matches(name)


def exec_refusal(rule: CompiledRule, fact: ExecFact, arguments: CallArguments) -> Refusal | None:
    """None: the rule grants the command with its environment, its files and its requests."""
    gap = next_gap(rule.commands or (), fact)
    if gap is not None:
        return Refusal(gap.why, gap.words, "hazard" if gap.is_hazard else "default")
    for name in fact.assignments:
        if not any(_lets_set(pattern, name) for pattern in rule.env or ()):
            return Refusal(f"it does not list {name} in env", _FITS)
    refusal = _folder_refusal(arguments.site, rule, fact)
    if refusal is not None:
        return refusal
    for file in fact.files:
        refusal = _file_refusal(rule, file, _FITS + 1)
        if refusal is not None:
            return refusal
    for request in fact.requests:
        why = request_refusal(rule.net, request)
        if why is not None:
            return Refusal(why, _FITS + 2, about=request)
    why = arguments_refusal(rule, arguments)
    return None if why is None else Refusal(why, _FITS + 3)


def permits_address(rules: ToolRules, url: Url, address: Address) -> bool:
    """Whether the rules for `fetch` let the host of a granted URL lead to an address."""
    there = NetFact(replace(url, host=str(address), address=address), "GET")
    if any(
        rule.net.hosts is not None and forbids_request(replace(rule.net, methods=None), there) for rule in rules.deny
    ):
        return False
    granting = [rule for rule in rules.allow if host_refusal(rule.net.hosts, url) is None]
    if not is_private_address(address):
        return bool(granting)
    return any(_names_address(rule.net.hosts, url, address) for rule in granting)


def _names_address(hosts: HostSet | None, url: Url, address: Address) -> bool:
    """By the address itself, or, for loopback, by a local name."""
    if hosts is None:
        return False
    return hosts.has_address(address) or (address.is_loopback and is_private(url) and hosts.has_name(url.host))


def redirect_refusal(rule: CompiledRule, fact: FileFact) -> Refusal | None:
    """None: the rule, one for the tool `write` or `read`, grants a redirection of the shell.

    A rule that tests arguments does not: a redirection has none.
    """
    if rule.args or rule.commands is not None:
        return Refusal("it tests arguments, and a redirection has none", 0)
    return _file_refusal(rule, fact, 1)


def _file_refusal(rule: CompiledRule, file: FileFact, progress: int) -> Refusal | None:
    why = file_refusal(rule.reach or (), file)
    if why is None:
        return None
    within_reach = file.guarded is not FREE and file_refusal(rule.reach or (), file._replace(guarded=FREE)) is None
    return Refusal(why, progress, "hazard" if within_reach else "default", about=file)


def _folder_refusal(site: Site, rule: CompiledRule, fact: ExecFact) -> Refusal | None:
    names, root = names_of(fact.folder), names_of(site.workspace.root)
    if names == root:
        return None
    within = names[: len(root)] == root
    for glob in rule.reach or ():
        if glob.reaches_into(names) if within else glob.covers_listing(names):
            return None
    return Refusal(f"it would run in {fact.folder}, outside its paths", _FITS)
