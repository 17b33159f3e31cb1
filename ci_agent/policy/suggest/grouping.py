"""Rules that say nearly the same become one. Together they never allow a call that none of them allows alone."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ci_agent.policy.recorded import RecordedCall
from ci_agent.policy.rules import Rule
from ci_agent.policy.tool_facts import FILE_TOOLS

MAX_ALTERNATIVES: Final = 50
"""In one `{a,b}`; more of them stand in another pattern."""

Tokens: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    rule: Rule
    calls: tuple[RecordedCall, ...]
    """The denied calls that it is for."""


def group_rules(needs: Sequence[Proposal]) -> list[Proposal]:
    """Commands by program, files by the tools that want them, requests by what is asked, arguments by tool."""
    commands = [need for need in needs if need.rule.command is not None]
    files = [need for need in needs if need.rule.command is None and need.rule.tools[0] in FILE_TOOLS]
    requests = [need for need in needs if need.rule.tools == ("fetch",)]
    others = [need for need in needs if need not in commands and need not in files and need not in requests]
    return [*_commands(commands), *_files(files), *_requests(requests), *_arguments(others)]


def merge_tokens(patterns: Iterable[Tokens]) -> list[Tokens]:
    """Those that differ in one token alone, the same for all of them, become one with `{a,b}` in its place.

    The program's name is the last choice. What is merged is not merged again: two places with alternatives would
    allow combinations that nobody asked for.
    """
    left = list(dict.fromkeys(patterns))
    merged: list[Tokens] = []
    while left:
        at, bucket = _largest_bucket(left)
        chosen = bucket[:MAX_ALTERNATIVES]
        left = [tokens for tokens in left if tokens not in chosen]
        if len(chosen) == 1:
            merged += chosen
        else:
            alternatives = "{" + ",".join(tokens[at] for tokens in chosen) + "}"
            merged.append((*chosen[0][:at], alternatives, *chosen[0][at + 1 :]))
    return merged


def _largest_bucket(patterns: Sequence[Tokens]) -> tuple[int, list[Tokens]]:
    buckets: dict[tuple[int, Tokens], list[Tokens]] = defaultdict(list)
    for tokens in patterns:
        for at, token in enumerate(tokens):
            # A token that has alternatives of its own cannot stand among others.
            if not token.startswith("{"):
                buckets[at, (*tokens[:at], "\0", *tokens[at + 1 :])].append(tokens)
    largest = max(buckets.items(), key=lambda item: (len(item[1]), item[0][0] > 0), default=None)
    return (0, [patterns[0]]) if largest is None or len(largest[1]) == 1 else (largest[0][0], largest[1])


def _commands(needs: Sequence[Proposal]) -> list[Proposal]:
    proposals = []
    for same in _bucketed(needs, lambda rule: repr(replace(rule, command=None))):
        merged = merge_tokens(tokens for need in same for tokens in need.rule.command or ())
        by_program: dict[str, list[Tokens]] = defaultdict(list)
        for tokens in merged:
            by_program[tokens[0]].append(tokens)
        for patterns in by_program.values():
            calls = _calls(need for need in same if _is_in(need.rule.command or (), patterns))
            proposals.append(Proposal(replace(same[0].rule, command=tuple(patterns)), calls))
    return proposals


def _is_in(command: Sequence[Tokens], patterns: Sequence[Tokens]) -> bool:
    return any(_fits(tokens, pattern) for tokens in command for pattern in patterns)


def _fits(tokens: Tokens, pattern: Tokens) -> bool:
    """Whether the pattern was made of these tokens, among others."""
    return len(tokens) == len(pattern) and all(
        token == part or (part.startswith("{") and token in _alternatives(part))
        for token, part in zip(tokens, pattern, strict=True)
    )


def _alternatives(token: str) -> list[str]:
    """Of `{a,b\\,c}`: `a` and `b\\,c`."""
    parts, escaped = [""], False
    for char in token[1:-1]:
        if char == "," and not escaped:
            parts.append("")
        else:
            parts[-1] += char
        escaped = char == "\\" and not escaped
    return parts


def _files(needs: Sequence[Proposal]) -> list[Proposal]:
    wanting: dict[str, set[str]] = defaultdict(set)
    for need in needs:
        for path in need.rule.path or ():
            wanting[path] |= set(need.rule.tools)
    paths_of: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, names in wanting.items():
        paths_of[tuple(tool for tool in FILE_TOOLS if tool in names)].append(path)
    proposals = []
    for tools, paths in paths_of.items():
        globs = ["/".join(parts) for parts in merge_tokens(tuple(path.split("/")) for path in paths)]
        calls = _calls(need for need in needs if set(need.rule.path or ()) <= set(paths))
        proposals.append(Proposal(replace(needs[0].rule, tools=tools, path=tuple(globs)), calls))
    return proposals


def _requests(needs: Sequence[Proposal]) -> list[Proposal]:
    proposals = []
    for same in _bucketed(needs, lambda rule: repr(replace(rule, host=None))):
        hosts = dict.fromkeys(host for need in same for host in need.rule.host or ())
        proposals.append(Proposal(replace(same[0].rule, host=tuple(hosts)), _calls(same)))
    return proposals


def _arguments(needs: Sequence[Proposal]) -> list[Proposal]:
    """Rules for one tool whose tests differ in one argument become one that lists its values."""
    left, proposals = list(needs), []
    while left:
        name, same = _differing_in_one(left)
        left = [need for need in left if need not in same]
        rule = same[0].rule
        if name is not None:
            values = [(need.rule.args or {})[name]["const"] for need in same]
            rule = replace(rule, args={**(rule.args or {}), name: {"enum": values}})
        proposals.append(Proposal(rule, _calls(same)))
    return proposals


def _differing_in_one(needs: Sequence[Proposal]) -> tuple[str | None, list[Proposal]]:
    first = needs[0].rule
    best: tuple[str | None, list[Proposal]] = (None, [need for need in needs if need.rule == first])
    for name, test in (first.args or {}).items():
        if "const" in test:
            same = [need for need in needs if _without(need.rule, name) == _without(first, name)]
            distinct = list({repr(need.rule): need for need in same}.values())
            if len(distinct) > max(1, len(best[1])):
                best = (name, distinct)
    return best


def _without(rule: Rule, name: str) -> Rule | None:
    """The rule without its test of one argument; None when it has none that pins a value."""
    args = dict(rule.args or {})
    return replace(rule, args=args) if "const" in args.pop(name, {}) else None


def _bucketed(needs: Sequence[Proposal], key: Callable[[Rule], Hashable]) -> list[list[Proposal]]:
    buckets: dict[Hashable, list[Proposal]] = defaultdict(list)
    for need in needs:
        buckets[key(need.rule)].append(need)
    return list(buckets.values())


def _calls(needs: Iterable[Proposal]) -> tuple[RecordedCall, ...]:
    by_place = {(call.transcript, call.seq): call for need in needs for call in need.calls}
    return tuple(by_place[place] for place in sorted(by_place))
