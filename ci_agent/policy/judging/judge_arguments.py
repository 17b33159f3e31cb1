"""Whether the arguments of a call pass a rule's `args` and `only`."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.compiled.coverage import may_mean
from ci_agent.policy.compiled.fitting import next_gap
from ci_agent.policy.compiled.match import CompiledRule, CompiledTest
from ci_agent.policy.compiled.net import NetRule, forbids_request, request_refusal
from ci_agent.policy.compiled.reaching import file_refusal, forbids_path
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.facts import ExecFact, FileFact, NetFact, UnknownFact
from ci_agent.policy.gathering.file_facts import Place, file_fact
from ci_agent.policy.gathering.shell_facts import script_facts
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.matchers.argument_tests import (
    MISMATCH,
    MISSING,
    ArgumentTest,
    Mismatch,
    Missing,
    Verdict,
    conjunction,
    judge_plainly,
    select,
)
from ci_agent.policy.protected import guard_write
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.urls import InvalidUrlError, parse_url

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


def arguments_refusal(site: Site, rule: CompiledRule, tool: str, arguments: JsonObject) -> str | None:
    """Why an allow rule's `args` or `only` do not pass; None: they do."""
    if rule.rule.only:
        named = {test.selector.argument for test in rule.args} | _JUDGED_BY_EVERY_RULE.get(tool, frozenset())
        extra = sorted(set(arguments) - named)
        if extra:
            return f"it takes no argument {extra[0]!r} (only)"
    for test in rule.args:
        for value in _selected(test, arguments):
            if _allow_verdict(site, test, value) != "passes":
                return f"the argument {test.selector.text} {_shortcoming(test.test, value)}"
    return None


def arguments_may_match(site: Site, rule: CompiledRule, arguments: JsonObject) -> bool:
    """Whether a deny rule's `args` are about the call: each selector picks a value that passes or cannot be judged."""
    return all(
        any(_deny_verdict(site, test, value) != "fails" for value in _selected(test, arguments)) for test in rule.args
    )


def named_files(site: Site, rule: CompiledRule, arguments: JsonObject) -> Iterator[FileFact]:
    """Files that the call may read or write: the arguments that an allow rule tests as paths."""
    for test in rule.args:
        if test.test.path is None:
            continue
        for value in _selected(test, arguments):
            if isinstance(value, str):
                for effect in ("read", "write"):
                    fact = file_fact(site, value, effect, _place(site, test))
                    if isinstance(fact, FileFact):
                        yield fact


def _selected(test: CompiledTest, arguments: JsonObject) -> list[Json | Missing | Mismatch]:
    values = list(islice(select(test.selector, arguments), MAX_VALUES + 1))
    if len(values) > MAX_VALUES:
        raise BoundExceededError(f"the argument {test.selector.text} holds more than {MAX_VALUES} values")
    return values


def _allow_verdict(site: Site, test: CompiledTest, value: Json | Missing | Mismatch) -> Verdict:
    if isinstance(value, Missing):
        return "passes" if test.test.absent else "fails"
    if isinstance(value, Mismatch) or test.test.absent:
        return "fails"
    return conjunction(_verdicts(site, test, value, denies=False))


def _deny_verdict(site: Site, test: CompiledTest, value: Json | Missing | Mismatch) -> Verdict:
    if isinstance(value, Missing):
        return "passes" if test.test.absent else "fails"
    if isinstance(value, Mismatch):
        return "cannot_judge"
    return "fails" if test.test.absent else conjunction(_verdicts(site, test, value, denies=True))


def _verdicts(site: Site, test: CompiledTest, value: Json, *, denies: bool) -> Iterator[Verdict]:
    yield judge_plainly(test.test, value)
    if test.test.path is not None:
        yield _judge_path(site, test, value, denies=denies)
    if test.hosts is not None:
        yield _judge_host(test, value, denies=denies)
    if test.test.command is not None:
        yield _judge_command(site, test, value, denies=denies)


def _judge_path(site: Site, test: CompiledTest, value: Json, *, denies: bool) -> Verdict:
    """Nobody knows what the tool does with a file, so it must be one that may be written; a folder may be listed."""
    fact = file_fact(site, value, "write", _place(site, test)) if isinstance(value, str) else None
    if not isinstance(fact, FileFact):
        return "cannot_judge"
    if fact.is_folder:
        alone = guard_write(fact.path, site.workspace.root, site.around, by_tool=True)
        fact = fact._replace(effect="list", guarded=alone)
    passes = forbids_path(test.reach, fact) if denies else file_refusal(test.reach, fact) is None
    return "passes" if passes else "fails"


def _judge_host(test: CompiledTest, value: Json, *, denies: bool) -> Verdict:
    try:
        request = NetFact(parse_url(value), "GET") if isinstance(value, str) else None
    except InvalidUrlError:
        request = None
    if request is None:
        return "cannot_judge"
    rule = NetRule(test.hosts, None, None, None)
    passes = forbids_request(rule, request) if denies else request_refusal(rule, request) is None
    return "passes" if passes else "fails"


def _judge_command(site: Site, test: CompiledTest, value: Json, *, denies: bool) -> Verdict:
    if not isinstance(value, str):
        return "cannot_judge"
    facts = script_facts(site, value, DiskBudget())
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


def _place(site: Site, test: CompiledTest) -> Place:
    return Place(site.workspace.root, DiskBudget(), test.selector.argument, by_tool=True)
