"""Patterns that change nothing: what they grant is granted elsewhere, or forbidden."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Final

from ci_agent.hooks import Effect
from ci_agent.policy.lint.covering import covers
from ci_agent.policy.lint.finding import LintFinding, Subject, Witness, is_own, warning
from ci_agent.policy.lint.samples import command_patterns, path_glob, sample_calls
from ci_agent.policy.matchers.path_globs import Part
from ci_agent.policy.rules import Rule
from ci_agent.strict_yaml import quote

_WILD: Final = frozenset("*{")

MAX_COMPARED: Final = 200
"""Patterns about the same program or tool that one is compared with; lint of ten thousand rules still ends."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One pattern of a rule for one tool, as a rule of its own."""

    position: int
    rule: Rule
    part: Rule
    text: str

    def words(self) -> list[list[str]]:
        """The words of its command, or the names of its path, as patterns; one list for each alternative."""
        tool = self.part.tools[0]
        for pattern in command_patterns(self.part):
            return [[tool, *(token.text for token in pattern.tokens)]]
        for text in self.part.path or ():
            return [[tool, *map(_shown, parts)] for parts in path_glob(text).alternatives]
        return [[tool]]


class _Index:
    """Finds the patterns that may be about everything that one is about: those that begin like it."""

    def __init__(self, patterns: Iterable[_Pattern]) -> None:
        self._by_beginning: dict[tuple[str, ...], list[_Pattern]] = defaultdict(list)
        for pattern in patterns:
            for words in pattern.words():
                literal = takewhile(lambda word: not set(word) & _WILD, words)
                self._by_beginning[tuple(literal)].append(pattern)

    def near(self, pattern: _Pattern) -> Iterator[_Pattern]:
        words = pattern.words()[0]
        beginnings = [tuple(words[:size]) for size in range(len(words) + 1)]
        found = (near for beginning in beginnings for near in self._by_beginning.get(beginning, ()))
        return islice(found, MAX_COMPARED)


def find_overlaps(subject: Subject) -> Iterator[LintFinding]:
    grants = [*_patterns(subject.source.rules, "allow")]
    granting, denying = _Index(grants), _Index(_patterns(subject.source.rules, "deny"))
    for grant in grants:
        if is_own(grant.rule):
            finding = _shadowed(subject, grant, denying) or _redundant(subject, grant, granting)
            if finding:
                yield finding


def _patterns(rules: Sequence[Rule], effect: Effect) -> Iterator[_Pattern]:
    position = 0
    for rule in rules:
        if rule.effect == effect:
            for tool in rule.tools:
                for part, text in _parts(replace(rule, tools=(tool,))):
                    yield _Pattern(position, rule, part, text)
                    position += 1


def _parts(rule: Rule) -> Iterator[tuple[Rule, str]]:
    for command in rule.command or ():
        yield replace(rule, command=(command,)), " ".join(command)
    for path in rule.path or ():
        yield replace(rule, path=(path,)), f"{rule.tools[0]} {path}"
    if rule.command is None and rule.path is None:
        for host in rule.host or ():
            yield replace(rule, host=(host,)), f"{rule.tools[0]} {host}"
        if rule.host is None:
            yield rule, rule.tools[0]


def _shadowed(subject: Subject, grant: _Pattern, denying: _Index) -> LintFinding | None:
    """A deny rule is about everything that the pattern grants."""
    for deny in denying.near(grant):
        call = next(sample_calls(grant.part), None) if covers(deny.part, grant.part) else None
        if call and subject.decide(call.tool, call.arguments).effect == "deny":
            message = f"what {quote(grant.text)} grants is forbidden by {deny.rule.id}"
            return warning("shadowed", grant.rule, message, call)
    return None


def _redundant(subject: Subject, grant: _Pattern, granting: _Index) -> LintFinding | None:
    """Another pattern grants all that this one grants; of two that say the same, the later one is redundant."""
    for other in granting.near(grant):
        if other.position == grant.position or not covers(other.part, grant.part):
            continue
        if other.position > grant.position and covers(grant.part, other.part):
            continue
        witness = _granted_by(subject, other, grant)
        if witness:
            whose = "the rule itself" if other.rule.id == grant.rule.id else other.rule.id
            message = f"{quote(grant.text)} is granted by {quote(other.text)} of {whose} already"
            return warning("redundant", grant.rule, message, witness)
    return None


def _granted_by(subject: Subject, other: _Pattern, grant: _Pattern) -> Witness | None:
    """A call of `grant` that the policy allows; None when `other` alone does not allow all of its calls."""
    decide = subject.decide_by([other.part])
    calls = [*sample_calls(grant.part)]
    if any(decide(call.tool, call.arguments).effect == "deny" for call in calls):
        return None
    return subject.first_allowed(calls)


def _shown(name: Part) -> str:
    return "**" if name is None else "*".join(name.chunks)
