"""Rules that say nearly the same become one. Together they never allow a call that none of them allows alone."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from ci_agent.policy.checks.recorded import RecordedCall
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.rules import Rule

MAX_ALTERNATIVES: Final = 50
"""In one `{a,b}`; more of them stand in another pattern."""

Tokens: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    rule: Rule
    calls: tuple[RecordedCall, ...]
    """The denied calls that it is for."""


class Alike(NamedTuple):
    """Sequences that differ in one place alone, the same for all of them."""

    at: int
    """Where they differ; 0 when there is only one."""
    members: list[Tokens]


def group_rules(needs: Sequence[Proposal]) -> list[Proposal]:
    """Commands by program, files by the tools that want them, requests by what is asked, arguments by tool."""
    kinds: dict[Callable[[Sequence[Proposal]], Iterator[Proposal]], list[Proposal]] = {
        grouping: [] for grouping in (_commands, _files, _requests, _arguments)
    }
    for need in needs:
        kinds[_grouping_of(need.rule)].append(need)
    return [proposal for grouping, alike in kinds.items() if alike for proposal in grouping(alike)]


def find_alike(sequences: Iterable[Tokens], may_differ: Callable[[str], bool]) -> list[Alike]:
    """Groups of sequences that differ in one token; the largest first, the first token the last choice.

    What is in one group is in no other: two places that differ would stand for combinations that nobody asked for.
    """
    left = dict.fromkeys(sequences)
    buckets: dict[tuple[int, Tokens], list[Tokens]] = defaultdict(list)
    for tokens in left:
        for at, token in enumerate(tokens):
            if may_differ(token):
                buckets[at, (*tokens[:at], "\0", *tokens[at + 1 :])].append(tokens)
    groups = []
    for (at, _), bucket in sorted(buckets.items(), key=lambda item: (-len(item[1]), item[0][0] == 0)):
        members = [tokens for tokens in bucket if tokens in left][:MAX_ALTERNATIVES]
        if len(members) > 1:
            groups.append(Alike(at, members))
            for tokens in members:
                del left[tokens]
    return [*groups, *(Alike(0, [tokens]) for tokens in left)]


def _grouping_of(rule: Rule) -> Callable[[Sequence[Proposal]], Iterator[Proposal]]:
    if rule.command is not None:
        return _commands
    if rule.tools[0] in FILE_TOOLS:
        return _files
    return _requests if rule.host is not None else _arguments


def _commands(needs: Sequence[Proposal]) -> Iterator[Proposal]:
    for same in _bucketed(needs, lambda rule: repr(replace(rule, command=None))):
        calls_of = {tokens: need.calls for need in same for tokens in need.rule.command or ()}
        by_program: dict[str, list[tuple[Tokens, list[Tokens]]]] = defaultdict(list)
        for group in find_alike(calls_of, _is_one_word):
            pattern = _with_alternatives(group)
            by_program[pattern[0]].append((pattern, group.members))
        for patterns in by_program.values():
            calls = [call for _, members in patterns for tokens in members for call in calls_of[tokens]]
            yield Proposal(replace(same[0].rule, command=tuple(pattern for pattern, _ in patterns)), _in_order(calls))


def _files(needs: Sequence[Proposal]) -> Iterator[Proposal]:
    wanting: dict[str, list[Proposal]] = defaultdict(list)
    for need in needs:
        for path in need.rule.path or ():
            wanting[path].append(need)
    paths_of: dict[Tokens, list[str]] = defaultdict(list)
    for path, by in wanting.items():
        paths_of[tuple(tool for tool in FILE_TOOLS if any(tool in need.rule.tools for need in by))].append(path)
    for tools, paths in paths_of.items():
        groups = find_alike((tuple(path.split("/")) for path in paths), _is_one_word)
        globs = tuple("/".join(_with_alternatives(group)) for group in groups)
        calls = [call for path in paths for need in wanting[path] for call in need.calls]
        yield Proposal(replace(needs[0].rule, tools=tools, path=globs), _in_order(calls))


def _requests(needs: Sequence[Proposal]) -> Iterator[Proposal]:
    for same in _bucketed(needs, lambda rule: repr(replace(rule, host=None))):
        hosts = dict.fromkeys(host for need in same for host in need.rule.host or ())
        calls = [call for need in same for call in need.calls]
        yield Proposal(replace(same[0].rule, host=tuple(hosts)), _in_order(calls))


def _arguments(needs: Sequence[Proposal]) -> Iterator[Proposal]:
    """Rules for one tool whose tests differ in one argument become one that lists its values."""
    for same in _bucketed(needs, lambda rule: (rule.tools, tuple(rule.args or ()))):
        need_of = {tuple(json.dumps(test) for test in (need.rule.args or {}).values()): need for need in same}
        for at, members in find_alike(need_of, lambda token: token.startswith('{"const"')):
            alike = [need_of[tokens] for tokens in members]
            rule = alike[0].rule
            if len(alike) > 1:
                name = list(rule.args or ())[at]
                values = [(need.rule.args or {})[name]["const"] for need in alike]
                rule = replace(rule, args={**(rule.args or {}), name: {"enum": values}})
            yield Proposal(rule, _in_order([call for need in alike for call in need.calls]))


def _is_one_word(token: str) -> bool:
    """A token that has alternatives of its own cannot stand among others."""
    return not token.startswith("{")


def _with_alternatives(group: Alike) -> Tokens:
    first, *others = group.members
    if not others:
        return first
    alternatives = "{" + ",".join(tokens[group.at] for tokens in group.members) + "}"
    return (*first[: group.at], alternatives, *first[group.at + 1 :])


def _bucketed(needs: Sequence[Proposal], key: Callable[[Rule], Hashable]) -> list[list[Proposal]]:
    buckets: dict[Hashable, list[Proposal]] = defaultdict(list)
    for need in needs:
        buckets[key(need.rule)].append(need)
    return list(buckets.values())


def _in_order(calls: Iterable[RecordedCall]) -> tuple[RecordedCall, ...]:
    by_place = {(call.transcript, call.seq): call for call in calls}
    return tuple(by_place[place] for place in sorted(by_place))
