"""What the keys of one rule must have to do with each other, and a rule with its tools."""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from ci_agent.json_types import Json
from ci_agent.policy.file.calls import BUILTIN_TOOLS, example_calls, expand_call
from ci_agent.policy.file.document import PolicyDocument, RuleModel, TestModel
from ci_agent.policy.matchers.command_patterns import REST
from ci_agent.policy.matchers.tool_names import parse_tool_pattern
from ci_agent.policy.rules import PolicySource
from ci_agent.spelling import nearest
from ci_agent.strict_yaml import Place, YamlDocument, quote

Problem: TypeAlias = tuple[tuple[str | int, ...], str]
"""Where in the rule, and what is wrong."""

CODES_IN_TESTS: Final = ("default", "hazard", "unparsable", "limit")
"""What `by` may say besides the id of a rule."""

_FILE_TOOLS: Final = ("read", "write", "edit", "grep", "find", "ls")

_TOOLS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("bash",),
    "paths": ("bash",),
    "env": ("bash",),
    "has": ("bash",),
    "path": _FILE_TOOLS,
    "host": ("fetch", "bash"),
    "scheme": ("fetch", "bash"),
    "port": ("fetch", "bash"),
    "method": ("fetch", "bash"),
}
"""Which tools a matcher is about; `args`, `only` and `max_calls` are about any."""

_INSTEAD: Final[Mapping[str, str]] = {
    "path": "args: {path: {path: [...]}}",
    "host": "args: {url: {host: [...]}}",
    "command": "args: {command: {command: [...]}}",
}
"""How the same is said of an argument of any other tool."""


def check_document(
    document: YamlDocument, model: PolicyDocument, known_tools: frozenset[str]
) -> Iterator[tuple[Place, str]]:
    """Every problem of a file that its values, one by one, do not show, with its place."""
    if not model.rules and not model.extends:
        yield document.place(), 'a policy without rules denies every call: to mean that, write "extends: deny-all"'
    if model.proposals is not None and not model.proposals.model_fields_set:
        yield document.key_place(("proposals",)), "nothing may be proposed: name comment, label, issue or patch"
    first: dict[str, int] = {}
    for index, rule in enumerate(model.rules or []):
        if first.setdefault(rule.id, index) != index:
            line = document.place(("rules", first[rule.id], "id")).line
            problem = f"the id {quote(rule.id)} is taken: the first rule with it is on line {line}"
            yield document.place(("rules", index, "id")), problem
        for path, problem in list(check_tools(rule, known_tools)) or check_rule(rule):
            yield document.key_place(("rules", index, *path)), problem
    for index, test in enumerate(model.tests or []):
        for path, problem in check_test(test, known_tools):
            yield document.key_place(("tests", index, *path)), problem


def check_references(
    document: YamlDocument, model: PolicyDocument, source: PolicySource
) -> Iterator[tuple[Place, str]]:
    """Whether what tests expect `by` is a rule of the policy, or one of the words for the engine's own reasons."""
    ids = [rule.id for rule in source.rules]
    for index, test in enumerate(model.tests or []):
        if test.by is not None and test.by not in ids and test.by not in CODES_IN_TESTS:
            inherited = next((rule_id for rule_id in ids if rule_id.endswith(f"/{test.by}")), None)
            close = inherited or nearest(test.by, [*ids, *CODES_IN_TESTS])
            hint = f"did you mean {close}?" if close else f"or write one of {', '.join(CODES_IN_TESTS)}"
            yield document.place(("tests", index, "by")), f"no rule has the id {quote(test.by)}: {hint}"


def check_tools(rule: RuleModel, known_tools: frozenset[str]) -> Iterator[Problem]:
    for index, pattern in enumerate(_tools(rule)):
        problem = unknown_tool_problem(pattern, known_tools)
        if problem:
            yield (_effect(rule), index), problem


def check_rule(rule: RuleModel) -> Iterator[Problem]:
    """Everything about a rule that its keys, one by one, do not show."""
    if (rule.allow is None) == (rule.deny is None):
        yield _effect_problem(rule)
        return
    yield from _check_matchers(rule)
    yield from _check_bash(rule)
    yield from _check_commands(rule)
    yield from _check_effect(rule)
    yield from _check_examples(rule)


def check_test(test: TestModel, known_tools: frozenset[str]) -> Iterator[Problem]:
    if (test.allow is None) == (test.deny is None):
        yield (), 'a test expects one answer: write either "allow" or "deny" with a call'
        return
    key = "deny" if test.allow is None else "allow"
    ((tool, written),) = (test.allow or test.deny or {}).items()
    try:
        _check_call(tool, written, known_tools)
    except ValueError as error:
        yield (key, tool), str(error)


def _check_call(tool: str, written: Json, known_tools: frozenset[str]) -> None:
    require_tool(tool, known_tools)
    expand_call(tool, written)


def require_tool(name: str, known_tools: frozenset[str]) -> None:
    """ValueError when no call can be one of this tool."""
    if "*" in name or "{" in name:
        raise ValueError(f"a call names one tool, and {quote(name)} is a pattern")
    problem = unknown_tool_problem(name, known_tools)
    if problem:
        raise ValueError(problem)


@lru_cache(maxsize=1024)
def unknown_tool_problem(pattern: str, known_tools: frozenset[str]) -> str | None:
    """Why the pattern is about no tool at all; None when it is about some.

    A name with `__` belongs to a server; while no server is configured, nobody knows its tools.
    """
    if "__" in pattern and not any("__" in tool for tool in known_tools):
        return None
    parsed = parse_tool_pattern(pattern)
    if parsed.literals is None:
        covered = any(parsed.covers(tool) for tool in known_tools)
        return None if covered else f"no tool matches {quote(pattern)}: the tools are {', '.join(sorted(known_tools))}"
    unknown = next((name for name in parsed.literals if name not in known_tools), None)
    if unknown is None:
        return None
    close = nearest(unknown, sorted(known_tools))
    hint = f"did you mean {close}?" if close else f"the tools are {', '.join(sorted(known_tools))}"
    return f"no tool is called {quote(unknown)}: {hint}"


def _effect_problem(rule: RuleModel) -> Problem:
    if rule.allow is None:
        return (), 'the rule neither allows nor denies: add "allow" or "deny" with the names of tools'
    return ("deny",), "a rule either allows or denies: make two rules of this one"


def _tools(rule: RuleModel) -> list[str]:
    return rule.allow or rule.deny or []


def _effect(rule: RuleModel) -> str:
    return "deny" if rule.allow is None else "allow"


def _check_matchers(rule: RuleModel) -> Iterator[Problem]:
    for matcher, tools in _TOOLS_OF.items():
        if getattr(rule, matcher) is None:
            continue
        strangers = [(tool, name) for tool in _tools(rule) for name in _strangers(tool, tools)]
        if strangers:
            tool, name = strangers[0]
            hint = _hint(matcher, tool, name, several=len(_tools(rule)) > 1)
            yield (matcher,), f'"{matcher}" is about {_listed(tools)}, not about {name}{hint}'


def _hint(matcher: str, tool: str, name: str, *, several: bool) -> str:
    if tool != name:
        return f", which {quote(tool)} covers: name the tools"
    if several:
        return f": make a rule of its own for {name}"
    if matcher == "path" and name == "bash":
        return ': for the files of commands write "paths"'
    if matcher == "paths" and name in _FILE_TOOLS:
        return ': write "path"'
    return f": write {_INSTEAD[matcher]}" if matcher in _INSTEAD and name not in BUILTIN_TOOLS else ""


@lru_cache(maxsize=1024)
def _strangers(pattern: str, tools: tuple[str, ...]) -> tuple[str, ...]:
    """Tools that the pattern is about and that are none of these."""
    names = _names(pattern)
    return tuple(name for name in names if name not in tools) if names else (pattern,)


@lru_cache(maxsize=1024)
def _names(pattern: str) -> tuple[str, ...]:
    """The tools that a pattern is about, as far as they can be known: spelled ones, or the built-in ones it covers."""
    parsed = parse_tool_pattern(pattern)
    if parsed.literals is not None:
        return parsed.literals
    return tuple(tool for tool in sorted(BUILTIN_TOOLS) if parsed.covers(tool))


def _check_bash(rule: RuleModel) -> Iterator[Problem]:
    if rule.command is not None:
        return
    covering = next((tool for tool in _tools(rule) if "bash" in _names(tool)), None)
    if covering and rule.allow is not None:
        cover = "" if covering == "bash" else f", and {quote(covering)} covers bash"
        yield ("allow",), f'an allow rule for bash needs "command"{cover}: name the commands, or ["**"] for any'
    for matcher in ("paths", "env", "has"):
        if getattr(rule, matcher) is not None:
            yield (matcher,), f'"{matcher}" narrows "command", which is missing: name the commands, or ["**"] for any'


def _check_commands(rule: RuleModel) -> Iterator[Problem]:
    commands = rule.command or []
    for index, words in enumerate(commands):
        if tuple(words) == (REST,) and len(commands) > 1:
            problem = '"**" alone covers any command: to write one command word by word, nest the list ([[git, "**"]])'
            yield ("command", index), problem


def _check_effect(rule: RuleModel) -> Iterator[Problem]:
    if rule.allow is None:
        for key in ("env", "only", "max_calls"):
            if getattr(rule, key):
                yield (key,), f'"{key}" says what an allow rule grants; in a deny rule it has no meaning'
    elif rule.has is not None:
        yield ("has",), '"has" looks for what a deny rule forbids; an allow rule spells the words in "command"'
    elif rule.on_denied is not None and rule.max_calls is None:
        yield ("on_denied",), '"on_denied" is about denials, and an allow rule denies only by "max_calls"'


def _check_examples(rule: RuleModel) -> Iterator[Problem]:
    if rule.examples is None:
        return
    for key, examples in (("match", rule.examples.match), ("no_match", rule.examples.no_match)):
        for index, example in enumerate(examples or []):
            try:
                example_calls(_tools(rule), example)
            except ValueError as error:
                yield ("examples", key, index), str(error)


def _listed(words: Collection[str]) -> str:
    *init, last = words
    return f"{', '.join(init)} and {last}" if init else last
