"""Whether the arguments of a call pass a rule's `args` and `only`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, TypeAlias

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.compiled.coverage import may_mean
from ci_agent.policy.compiled.fitting import next_gap
from ci_agent.policy.compiled.match import CompiledRule, CompiledTest
from ci_agent.policy.compiled.net import NetRule, may_be_host, request_refusal
from ci_agent.policy.compiled.reaching import file_refusal, forbids_path
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.facts import ExecFact, Fact, FileFact, NetFact, UnknownFact
from ci_agent.policy.gathering.file_facts import Place, file_fact
from ci_agent.policy.gathering.shell_facts import script_facts
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.judging.many_values import ManyValues
from ci_agent.policy.matchers.argument_tests import (
    MISMATCH,
    MISSING,
    ArgumentTest,
    Mismatch,
    Missing,
    Verdict,
    judge_plainly,
    select,
)
from ci_agent.policy.matchers.reach import Names
from ci_agent.policy.protected import guard_write
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.urls import InvalidUrlError, parse_url

_MANY: Final = 4
"""For so many values a test is not held against each by itself, where that can be helped."""

MAX_VALUES: Final = 1_000
"""Values that one selector may pick."""

_PLAIN: Final = NetRule(None, None, None, None)

_JUDGED_BY_EVERY_RULE: Final = {
    "read": frozenset({"path"}),
    "write": frozenset({"path", "content"}),
    "edit": frozenset({"path", "edits"}),
    "grep": frozenset({"path"}),
    "find": frozenset({"path"}),
    "ls": frozenset({"path"}),
    "fetch": frozenset({"url", "method"}),
    "bash": frozenset({"command", "timeout", "description"}),
}
"""Arguments that a rule with `only` need not name: its matchers judge them anyway, or they are the text to write."""


_Selected: TypeAlias = list[Json | Missing | Mismatch]


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of one call, and what has been found out about them: many rules may ask the same."""

    site: Site
    tool: str
    values: JsonObject
    budget: DiskBudget = field(default_factory=DiskBudget)
    """For all that is looked up about values."""
    refusals: dict[str, str | None] = field(default_factory=dict)
    """By the id of the allow rule."""
    matches: dict[str, bool] = field(default_factory=dict)
    """By the id of the deny rule."""
    selected: dict[str, _Selected] = field(default_factory=dict)
    many: dict[str, ManyValues] = field(default_factory=dict)
    failed: dict[str, _Selected] = field(default_factory=dict)
    """By the selector: the value that did not pass the last test."""
    files: dict[tuple[str, FileEffect], FileFact | None] = field(default_factory=dict)
    paths: dict[str, tuple[FileFact, tuple[Names, ...]] | None] = field(default_factory=dict)
    requests: dict[str, NetFact | None] = field(default_factory=dict)
    scripts: dict[str, tuple[Fact, ...]] = field(default_factory=dict)

    def file(self, text: str, effect: FileEffect) -> FileFact | None:
        """What a value means as a path; None for none."""
        if (text, effect) not in self.files:
            place = Place(self.site.workspace.root, self.budget, "", by_tool=True)
            fact = file_fact(self.site, text, effect, place)
            self.files[text, effect] = fact if isinstance(fact, FileFact) else None
        return self.files[text, effect]

    def path(self, text: str) -> tuple[FileFact, tuple[Names, ...]] | None:
        """What a value means as a path to any use, and the names of it that a deny rule looks at.

        Nobody knows what the tool does with a file, so it must be one that may be written; a folder may be listed.
        """
        if text not in self.paths:
            fact = self.file(text, "write")
            if fact is not None and fact.is_folder:
                alone = guard_write(fact.path, self.site.workspace.root, self.site.around, by_tool=True)
                fact = fact._replace(effect="list", guarded=alone)
            self.paths[text] = None if fact is None else (fact, fact.denied_names)
        return self.paths[text]

    def request(self, text: str) -> NetFact | None:
        """What a value means as a URL; None for none."""
        if text not in self.requests:
            try:
                self.requests[text] = NetFact(parse_url(text), "GET")
            except InvalidUrlError:
                self.requests[text] = None
        return self.requests[text]

    def script(self, text: str) -> tuple[Fact, ...]:
        """What a value means as a command line."""
        if text not in self.scripts:
            self.scripts[text] = script_facts(self.site, text, self.budget)
        return self.scripts[text]


def arguments_refusal(rule: CompiledRule, arguments: CallArguments) -> str | None:
    """Why an allow rule's `args` or `only` do not pass; None: they do."""
    if not (rule.args or rule.rule.only):
        return None
    if rule.id not in arguments.refusals:
        arguments.refusals[rule.id] = _refusal(rule, arguments)
    return arguments.refusals[rule.id]


def _refusal(rule: CompiledRule, arguments: CallArguments) -> str | None:
    if rule.rule.only:
        named = {test.selector.argument for test in rule.args} | _JUDGED_BY_EVERY_RULE.get(arguments.tool, frozenset())
        extra = sorted(set(arguments.values) - named)
        if extra:
            return f"it takes no argument {extra[0]!r} (only)"
    for test in rule.args:
        for value in _failed_before_first(test, arguments):
            if _allow_verdict(test, value, arguments) != "passes":
                arguments.failed[test.selector.text] = [value]
                return f"the argument {test.selector.text} {_shortcoming(test.test, value)}"
    return None


def _failed_before_first(test: CompiledTest, arguments: CallArguments) -> Iterable[Json | Missing | Mismatch]:
    """The values, before them the one that did not pass the rule before: it may well be the only one."""
    return chain(arguments.failed.get(test.selector.text, ()), _selected(test, arguments))


def arguments_may_match(rule: CompiledRule, arguments: CallArguments) -> bool:
    """Whether a deny rule's `args` are about the call: each selector picks a value that passes or cannot be judged."""
    if not rule.args:
        return True
    if rule.id not in arguments.matches:
        arguments.matches[rule.id] = all(_any_may_match(test, arguments) for test in rule.args)
    return arguments.matches[rule.id]


def _any_may_match(test: CompiledTest, arguments: CallArguments) -> bool:
    values = _selected(test, arguments)
    if len(values) >= _MANY and not test.test.absent:
        if any(isinstance(value, Mismatch) for value in values):
            return True
        many = arguments.many.get(test.selector.text)
        if many is None:
            urls = (
                request and request.url
                for value in values
                if isinstance(value, str)
                for request in [arguments.request(value)]
            )
            many = arguments.many[test.selector.text] = ManyValues(values, urls)
        known = many.any_may_pass(test)
        if known is not None:
            return known
    return any(_deny_verdict(test, value, arguments) != "fails" for value in values)


def named_files(rule: CompiledRule, arguments: CallArguments) -> Iterator[FileFact]:
    """Files that the call may read or write: the arguments that an allow rule tests as paths."""
    effects: tuple[FileEffect, ...] = ("read", "write")
    for test in rule.args:
        values = _selected(test, arguments) if test.test.path is not None else []
        for text in (value for value in values if isinstance(value, str)):
            for fact in (arguments.file(text, effect) for effect in effects):
                if fact is not None:
                    yield fact._replace(argument=test.selector.argument)


def _selected(test: CompiledTest, arguments: CallArguments) -> _Selected:
    values = arguments.selected.get(test.selector.text)
    if values is None:
        values = list(islice(select(test.selector, arguments.values), MAX_VALUES + 1))
        if len(values) > MAX_VALUES:
            raise BoundExceededError(f"the argument {test.selector.text} holds more than {MAX_VALUES} values")
        arguments.selected[test.selector.text] = values
    return values


def _allow_verdict(test: CompiledTest, value: Json | Missing | Mismatch, arguments: CallArguments) -> Verdict:
    if isinstance(value, Missing):
        return "passes" if test.test.absent else "fails"
    if isinstance(value, Mismatch) or test.test.absent:
        return "fails"
    return _verdict(test, value, arguments, denies=False)


def _deny_verdict(test: CompiledTest, value: Json | Missing | Mismatch, arguments: CallArguments) -> Verdict:
    if isinstance(value, Missing):
        return "passes" if test.test.absent else "fails"
    if isinstance(value, Mismatch):
        return "cannot_judge"
    return "fails" if test.test.absent else _verdict(test, value, arguments, denies=True)


def _verdict(test: CompiledTest, value: Json, arguments: CallArguments, *, denies: bool) -> Verdict:
    plainly: Verdict = judge_plainly(test.test, value) if test.is_plain else "passes"
    if plainly == "fails":
        return "fails"
    if test.test.path is not None:
        read = _judge_path(test, value, arguments, denies=denies)
    elif test.hosts is not None:
        read = _judge_host(test, value, arguments, denies=denies)
    elif test.test.command is not None:
        read = _judge_command(test, value, arguments, denies=denies)
    else:
        return plainly
    return read if plainly == "passes" or read == "fails" else plainly


def _judge_path(test: CompiledTest, value: Json, arguments: CallArguments, *, denies: bool) -> Verdict:
    found = arguments.path(value) if isinstance(value, str) else None
    if found is None:
        return "cannot_judge"
    fact, names = found
    passes = forbids_path(test.reach, fact, names) if denies else file_refusal(test.reach, fact) is None
    return "passes" if passes else "fails"


def _judge_host(test: CompiledTest, value: Json, arguments: CallArguments, *, denies: bool) -> Verdict:
    request = arguments.request(value) if isinstance(value, str) else None
    if request is None:
        return "cannot_judge"
    if denies:
        passes = test.hosts is None or may_be_host(test.hosts, request.url)
    else:
        passes = request_refusal(NetRule(test.hosts, None, None, None), request) is None
    return "passes" if passes else "fails"


def _judge_command(test: CompiledTest, value: Json, arguments: CallArguments, *, denies: bool) -> Verdict:
    if not isinstance(value, str):
        return "cannot_judge"
    facts = arguments.script(value)
    patterns = test.test.command or ()
    if denies:
        unclear = any(isinstance(fact, UnknownFact) for fact in facts)
        commands = [fact for fact in facts if isinstance(fact, ExecFact)]
        meant = any(may_mean(pattern, each.words, each.looked_through) for each in commands for pattern in patterns)
        return "passes" if meant else "cannot_judge" if unclear else "fails"
    covered = all(isinstance(fact, ExecFact) and _is_covered(test, fact) for fact in facts)
    return "passes" if facts and covered else "fails"


def _is_covered(test: CompiledTest, command: ExecFact) -> bool:
    """As by a rule for bash with these patterns and nothing else: no variables, no files outside the workspace."""
    return (
        (not command.needs_rule or next_gap(test.test.command or (), command) is None)
        and not command.assignments
        and all(file_refusal(test.reach, file) is None for file in command.files)
        and all(request_refusal(_PLAIN, request) is None for request in command.requests)
    )


def _shortcoming(test: ArgumentTest, value: Json | Missing | Mismatch) -> str:
    if test.absent:
        return "must be absent"
    if value is MISSING:
        return "is missing"
    return "is not of the type that it is tested for" if value is MISMATCH else "does not pass its test"
