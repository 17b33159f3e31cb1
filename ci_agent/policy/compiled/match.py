"""Rules compiled: every matcher parsed, every glob anchored, once, before the first call."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ci_agent.hooks import OnDenied
from ci_agent.json_types import Json
from ci_agent.policy.compiled.net import HostSet, NetRule, compile_net, host_set
from ci_agent.policy.matchers.argument_tests import ArgumentTest, Selector, parse_argument_selector, parse_argument_test
from ci_agent.policy.matchers.command_patterns import (
    CommandPattern,
    TokenPattern,
    parse_command_pattern,
    parse_env_pattern,
    parse_has_token,
)
from ci_agent.policy.matchers.path_globs import PathGlob, parse_path_glob
from ci_agent.policy.matchers.reach import AnchoredGlob, Anchors, anchor, anchor_for_denial
from ci_agent.policy.matchers.tool_names import ToolPattern, parse_tool_pattern
from ci_agent.policy.rules import Rule

Reach: TypeAlias = tuple[AnchoredGlob, ...]


@dataclass(frozen=True, slots=True)
class CompiledTest:
    """The tests of one selector, with what they need of the workspace."""

    selector: Selector
    test: ArgumentTest
    reach: Reach
    """Of `path`; of `command`, the workspace."""
    hosts: HostSet | None
    is_plain: bool
    """There are tests that the value alone passes or fails."""


@dataclass(frozen=True, slots=True)
class CompiledRule:
    id: str
    rule: Rule
    tools: tuple[ToolPattern, ...]
    commands: tuple[CommandPattern, ...] | None
    reach: Reach | None
    """Of `path` and `paths`. Never None in an allow rule: without them it reaches the workspace."""
    env: tuple[TokenPattern, ...] | None
    has: tuple[TokenPattern, ...] | None
    net: NetRule
    args: tuple[CompiledTest, ...]
    on_denied: OnDenied
    """The rule's own, or the policy's."""


def compile_rule(rule: Rule, anchors: Anchors, on_denied: OnDenied) -> CompiledRule:
    """ValueError names the matcher that is wrong, and why."""
    globs = _reach((*(rule.paths or ()), *(rule.path or ())), rule, anchors)
    return CompiledRule(
        id=rule.id,
        rule=rule,
        tools=tuple(map(parse_tool_pattern, rule.tools)),
        commands=None if rule.command is None else tuple(map(parse_command_pattern, rule.command)),
        reach=globs if rule.paths or rule.path or rule.effect == "allow" else None,
        env=None if rule.env is None else tuple(map(parse_env_pattern, rule.env)),
        has=None if rule.has is None else tuple(map(parse_has_token, rule.has)),
        net=compile_net(rule),
        args=tuple(_test(selector, tests, rule, anchors) for selector, tests in (rule.args or {}).items()),
        on_denied=rule.on_denied or on_denied,
    )


def _reach(texts: Sequence[str], rule: Rule, anchors: Anchors) -> Reach:
    if not texts and rule.effect == "allow":
        return _workspace(anchors)
    return _anchored([parse_path_glob(text) for text in texts], rule, anchors)


@lru_cache(maxsize=16)
def _workspace(anchors: Anchors) -> Reach:
    """What an allow rule reaches that says nothing about it."""
    return anchor(parse_path_glob("**"), anchors)


def _anchored(globs: Iterable[PathGlob], rule: Rule, anchors: Anchors) -> Reach:
    place = anchor if rule.effect == "allow" else anchor_for_denial
    return tuple(anchored for glob in globs for anchored in place(glob, anchors))


def _test(selector: str, tests: Mapping[str, Json], rule: Rule, anchors: Anchors) -> CompiledTest:
    test = parse_argument_test(tests)
    return CompiledTest(
        selector=parse_argument_selector(selector),
        test=test,
        reach=_workspace(anchors) if test.command is not None else _anchored(test.path or (), rule, anchors),
        hosts=None if test.host is None else host_set(test.host),
        is_plain=test.is_plain,
    )
