"""Arguments that a rule tests, made to be what it does not mean."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.matchers.argument_tests import judge_plainly, parse_argument_selector, parse_argument_test
from ci_agent.policy.rules import Rule
from ci_agent.policy.variants.plainly import lists_host, reaches
from ci_agent.policy.variants.variant import RuleTest, Variant, never

Keys = Sequence[str | None]
"""Where a selector looks; None: the items of a list."""

_GONE: Final = object()


@dataclass(frozen=True, slots=True)
class _Tested:
    """An argument of a call that a rule tests."""

    call: Witness
    selector: str
    tests: Mapping[str, Json]
    value: Json
    """What the call has there; of a list the first item that the selector picks."""

    @property
    def keys(self) -> Keys:
        return _keys(self.selector)

    def variant(self, value: object, says: RuleTest, plain: Witness | None = None) -> Variant:
        return Variant("argument", _with(self.call, self.keys, value), plain, says)


def argument_variants(site: Site, rule: Rule, call: Witness, canary: str) -> Iterator[Variant]:
    """For a call that the rule grants: one argument more; each tested one gone, of another type, with another text."""
    more: JsonObject = {**call.arguments, canary: 1}
    yield Variant("argument", Witness(call.tool, more), says=lambda granting: not granting.only)
    for tested in _tested(rule, call):
        yield Variant("argument", _with(call, _without_items(tested.keys), _GONE), says=_leaves_alone(tested.selector))
        yield from _other_types(tested, canary)
        if isinstance(tested.value, str):
            yield from _other_texts(site, tested, tested.value, canary)


def other_spellings(rule: Rule, call: Witness) -> Iterator[Witness]:
    """For a call that a deny rule with tests of arguments forbids: other types, and other cases of what a regular
    expression finds (`(?i)` makes it find them)."""
    for tested in _tested(rule, call):
        if {"type", "absent"}.isdisjoint(tested.tests):
            value = tested.value
            others: list[Json] = [[value], {"y": value}]
            if isinstance(value, str) and "regex" in tested.tests:
                others += [value.upper(), value.lower(), value.swapcase()]
            yield from (_with(call, tested.keys, other) for other in others)


def _tested(rule: Rule, call: Witness) -> Iterator[_Tested]:
    for selector, tests in (rule.args or {}).items():
        value = _get(call.arguments, _keys(selector))
        if value is not None:
            yield _Tested(call, selector, tests, value)


def _other_types(tested: _Tested, canary: str) -> Iterator[Variant]:
    value = tested.value
    others: tuple[Json, ...] = ([value], {"y": value}, None, True, [canary], {}, 1, -1e308, 1e308, f"{value} ")
    for other in others:
        yield tested.variant(other, _passes(tested.selector, other))
    if tested.keys[-1] is None:
        alone = _with(tested.call, tested.keys[:-1], value)
        yield Variant("argument", alone, says=_leaves_alone(tested.selector))


def _other_texts(site: Site, tested: _Tested, value: str, canary: str) -> Iterator[Variant]:
    """By what the test reads the text as."""
    selector = tested.selector
    if "path" in tested.tests:
        yield from (tested.variant(text, says) for text, says in _paths(site, selector, value, canary))
    elif "host" in tested.tests:
        yield from (tested.variant(text, says) for text, says in _urls(selector, canary))
    elif "command" in tested.tests:
        alone = _with(tested.call, tested.keys, canary)
        for text in (f"{value}; {canary}", f"{value} $({canary})", f"{canary} | {value}", f"{value}\n{canary}"):
            yield tested.variant(text, _leaves_alone(selector), alone)
    else:
        for text in (f"{value}\n{canary}", f"{value}\0", f"{value}\n", f"{canary}{value}", f"{value}{canary}", canary):
            yield tested.variant(text, _passes(selector, text))


def _paths(site: Site, selector: str, value: str, canary: str) -> Iterator[tuple[str, RuleTest]]:
    root = site.workspace.root
    for text, path in (
        (f"../{canary}", root.parent / canary),
        (f"{canary}/../../{canary}", root.parent / canary),
        (f"/{canary}/y", Path(f"/{canary}/y")),
        (f"{canary}{value}", root / f"{canary}{value}"),
    ):
        yield text, _as_rule(selector, reaches(site, path))
    yield from ((text, never) for text in (f"{value}\u202e", "/proc/self/environ", f"~/{canary}"))


def _urls(selector: str, canary: str) -> Iterator[tuple[str, RuleTest]]:
    elsewhere = f"{canary}.example"
    yield f"https://{elsewhere}/", _as_rule(selector, lists_host(elsewhere))
    yield "https://127.0.0.1/", _as_rule(selector, lists_host("127.0.0.1"))
    yield "https://2130706433/", _as_rule(selector, lists_host("127.0.0.1"))
    yield f"https://y@{elsewhere}/", never
    yield "file:///etc/passwd", never


def _as_rule(selector: str, says: RuleTest) -> RuleTest:
    """The question put to what the rule's test of the argument lists."""

    def of_test(rule: Rule) -> bool:
        tests = (rule.args or {}).get(selector, {})
        path, host = _texts(tests.get("path")), _texts(tests.get("host"))
        return _leaves_alone(selector)(rule) or says(replace(rule, path=path, paths=None, host=host))

    return of_test


def _texts(value: Json) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(value) if isinstance(value, list) else (value,)


def _passes(selector: str, value: Json) -> RuleTest:
    """The rule does not look at the argument, or the value by itself passes its test."""

    def says(rule: Rule) -> bool:
        tests = (rule.args or {}).get(selector)
        if tests is None:
            return True
        is_read = not {"path", "host", "command"}.isdisjoint(tests)
        return not is_read and judge_plainly(parse_argument_test(tests), value) == "passes"

    return says


def _leaves_alone(selector: str) -> RuleTest:
    return lambda rule: "absent" in (rule.args or {}).get(selector, {"absent": True})


def _keys(selector: str) -> Keys:
    return [step.key for step in parse_argument_selector(selector).steps]


def _without_items(keys: Keys) -> Keys:
    """The list itself for the items of a list: one that is empty has no item that could fail a test."""
    return _without_items(keys[:-1]) if keys[-1] is None else keys


def _get(value: Json, keys: Keys) -> Json:
    """The first value that a selector picks; None when it picks none."""
    for key in keys:
        if key is None:
            value = value[0] if isinstance(value, list) and value else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _with(call: Witness, keys: Keys, value: object) -> Witness:
    arguments = deepcopy(call.arguments)
    *path, last = [0 if key is None else key for key in keys]
    holder: Json = arguments
    for key in path:
        holder = holder[key]
    if value is _GONE:
        del holder[last]
    else:
        holder[last] = value
    return Witness(call.tool, arguments)
