"""Deciding: a call in, a decision out. Pure but for looking at the disk to see where paths lead."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from ci_agent.errors import ConfigurationError
from ci_agent.hooks import Decision
from ci_agent.json_types import JsonObject
from ci_agent.policy.compiled.match import compile_rule
from ci_agent.policy.compiled.reaching import file_refusal
from ci_agent.policy.compiled.rule_index import RuleIndex
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.facts import FileFact
from ci_agent.policy.gathering.second_names import SecondNames
from ci_agent.policy.gathering.site import Analyse, Interpret, Site
from ci_agent.policy.judging.decision import decision_of, denied
from ci_agent.policy.judging.denials import Denials
from ci_agent.policy.judging.grants import permits_address
from ci_agent.policy.judging.judge import Call, judge
from ci_agent.policy.judging.judge_arguments import CallArguments
from ci_agent.policy.matchers.reach import Anchors
from ci_agent.policy.programs.interpret import interpret as interpret_program
from ci_agent.policy.protected import Surroundings, guard_read, guard_write
from ci_agent.policy.rules import PolicySource
from ci_agent.policy.shell.analysis import analyse as analyse_bash
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.urls import parse_url
from ci_agent.workspace import Workspace

NO_SURROUNDINGS = Surroundings()


def compile_policy(
    source: PolicySource,
    workspace: Workspace,
    *,
    around: Surroundings = NO_SURROUNDINGS,
    analyse: Analyse | None = None,
    interpret: Interpret = interpret_program,
) -> "Policy":
    """Make a policy ready to decide calls in a workspace; ConfigurationError when a matcher of a rule is wrong.

    `analyse` and `interpret` are seams for tests.
    """
    links = (link for link in map(Path, source.links) if workspace.contains(link))
    policy_files = (*(Path(os.path.realpath(file)) for file in source.files), *links)
    around = replace(around, records=(*around.records, *policy_files))
    anchors = Anchors(workspace.root, around.home)
    rules = []
    for rule in source.rules:
        try:
            rules.append(compile_rule(rule, anchors, source.on_denied))
        except ValueError as error:
            raise ConfigurationError(f"{rule.source}: rule {rule.id}: {error}") from error
    return Policy(
        source,
        Site(workspace, around, _environment(workspace, around), analyse or analyse_bash, interpret),
        RuleIndex(rules),
        SecondNames(workspace.root),
    )


def _environment(workspace: Workspace, around: Surroundings) -> Mapping[str, str]:
    return {"PWD": str(workspace.root)} | ({"HOME": str(around.home)} if around.home else {})


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, compiled for one workspace. It does not change, and counts nothing."""

    source: PolicySource
    site: Site
    rules: RuleIndex
    second_names: SecondNames
    """As they were when a tool first asked whether it may open a file with several names."""

    def decide(self, tool: str, arguments: JsonObject, *, exhausted: frozenset[str] = frozenset()) -> Decision:
        """Whether a call may run, and why. Never raises: what goes wrong here is a denial.

        `exhausted`: ids of allow rules whose `max_calls` are used up; they grant nothing.
        """
        on_denied = self.source.on_denied
        try:
            call = Call(self.rules, CallArguments(self.site, tool, arguments), exhausted)
            return decision_of(call, judge(call), on_denied)
        except BoundExceededError as error:
            return denied("limit", str(error), on_denied)
        except Exception as error:  # noqa: BLE001  # whatever fails while deciding is a denial, never a fall-through
            return denied("engine_error", f"the policy engine failed ({type(error).__name__})", on_denied)

    def can_allow(self, tool: str) -> bool:
        """Whether any call of the tool could be allowed; tools for which it is not so need not be offered."""
        rules = self.rules.for_tool(tool)
        return bool(rules.allow) and not rules.is_forbidden

    def permits_path(self, tool: str, access: Literal["list", "read", "write"], path: Path) -> bool:
        """Whether a file tool may open a resolved path, its other arguments aside. Never raises; safe in threads.

        `list` is about the names in a folder.

        For a tool that is about to open a file, and for `grep` to pass over what must not be read.
        """
        try:
            return self._permits_path(tool, access, path)
        except Exception:  # noqa: BLE001  # as in `decide`
            return False

    def permits_address(self, url: str, address: str) -> bool:
        """Whether `fetch` may connect to the address that the host of a URL was resolved to. Never raises.

        A private address must be named by a rule that also grants the URL.
        """
        try:
            return permits_address(self.rules.for_tool("fetch"), parse_url(url), ip_address(address))
        except Exception:  # noqa: BLE001  # as in `decide`
            return False

    def _permits_path(self, tool: str, access: Literal["list", "read", "write"], path: Path) -> bool:
        around, root = self.site.around, self.site.workspace.root
        if access == "write":
            guarded = guard_write(path, root, around, by_tool=True)
        else:
            guarded = guard_read(path, around, by_tool=True)
        fact = FileFact(access, path, path, is_folder=access == "list", guarded=guarded)
        rules = self.rules.for_tool(tool)
        denials = Denials(self.rules, CallArguments(self.site, tool, {}), DiskBudget(), self.second_names)
        if denials.of_path(fact) is not None:
            return False
        near = {rule.id: rule for _, rule in rules.paths.near(fact.names)}
        return any(file_refusal(rule.reach or (), fact) is None for rule in near.values())
