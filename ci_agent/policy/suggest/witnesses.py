"""Other calls that a proposed rule would allow, so that a person sees what comes with it."""

import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ci_agent.json_types import Json
from ci_agent.policy.decide import Policy
from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.lint.samples import command_patterns, sample_calls, sample_paths, sample_words
from ci_agent.policy.rules import Rule
from ci_agent.policy.suggest.grouping import Proposal

MAX_WITNESSES: Final = 3

_MAX_SAMPLED_RULES: Final = 20


def other_calls(proposal: Proposal, rule: Rule, base: Policy, extended: Policy) -> list[Witness]:
    """A few calls that the policy denies and allows with the rule, beside those that it is proposed for.

    `rule`: the proposal's, as it stands in the extended policy. Empty: none was found, which proves nothing.
    """
    asked = [_told(Witness(call.tool, call.arguments)) for call in proposal.calls]
    others = (call for call in _candidates(proposal, rule, base) if _told(call) not in asked)
    found = (call for call in others if _comes_with(call, rule, base, extended))
    return list(islice(found, MAX_WITNESSES))


def _told(call: Witness) -> Json:
    """What tells one call from another: of a file tool the path, whatever is read or written there."""
    return [call.tool, call.arguments.get("path") if call.tool in FILE_TOOLS else call.arguments]


def _comes_with(call: Witness, rule: Rule, base: Policy, extended: Policy) -> bool:
    decision = extended.decide(call.tool, call.arguments)
    return (
        decision.effect == "allow"
        and any(fact.granted_by == rule.id for fact in decision.facts)
        and base.decide(call.tool, call.arguments).effect == "deny"
    )


def _candidates(proposal: Proposal, rule: Rule, base: Policy) -> Iterator[Witness]:
    line = next(_granted_lines(base), None)
    if rule.command is not None:
        for pattern in command_patterns(rule):
            yield from _other_lines(shlex.join(sample_words(pattern)), line)
    elif rule.tools == ("fetch",):
        for host in rule.host or ():
            scheme = (rule.scheme or ("https",))[0]
            yield Witness("fetch", {"url": f"{scheme}://{host}/?q=what-was-read"})
    elif rule.tools[0] in FILE_TOOLS:
        yield from _other_files(rule, line)
    else:
        yield from _other_texts(proposal, rule)


def _other_lines(command: str, line: str | None) -> Iterator[Witness]:
    """A part of a longer line by itself, behind a wrapper, and fed by what is granted already."""
    piped = [] if line is None else [f"{line} | {command}"]
    for other in (command, *piped, f"timeout 600 {command}"):
        yield Witness("bash", {"command": other})


def _other_files(rule: Rule, line: str | None) -> Iterator[Witness]:
    for path in sample_paths(rule.path):
        yield from (Witness(tool, expand_call(tool, path)) for tool in rule.tools)
        if line is not None and "write" in rule.tools:
            yield Witness("bash", {"command": f"{line} > {shlex.quote(path)}"})
        if line is not None and "read" in rule.tools:
            yield Witness("bash", {"command": f"{{ {line}; }} < {shlex.quote(path)}"})


def _granted_lines(base: Policy) -> Iterator[str]:
    """Commands that the policy allows, made from the patterns of its rules."""
    allowing = (rule for rule in base.source.rules if rule.effect == "allow" and rule.command is not None)
    for rule in islice(allowing, _MAX_SAMPLED_RULES):
        for call in sample_calls(rule):
            if call.tool == "bash" and base.decide(call.tool, call.arguments).effect == "allow":
                yield call.arguments["command"]


def _other_texts(proposal: Proposal, rule: Rule) -> Iterator[Witness]:
    """The first call with another text wherever the rule takes any."""
    call = proposal.calls[0]
    free = [name for name, tests in (rule.args or {}).items() if "type" in tests]
    for name in free:
        key = name.replace("\\.", ".")
        if isinstance(call.arguments.get(key), str):
            yield Witness(call.tool, {**call.arguments, key: "any other text"})
