"""However many rules ask about an argument, what it means is found out once, and within the bounds of one call."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ci_agent import Policy
from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import Dialect, ShellProgram

ALLOW = "- {id: others, allow: srv__tool}\n"


@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_a_text_is_read_as_a_command_line_once(policy: Callable[..., Policy], effect: str) -> None:
    rules = "".join(
        f"- {{id: r{number}, {effect}: srv__tool, args: {{script: {{command: ['x{number} **']}}}}}}\n"
        for number in range(100)
    )
    read: list[str] = []

    def noting(text: str, environment: Mapping[str, str], dialect: Dialect, *_: Any, **__: Any) -> ShellProgram:
        read.append(text)
        return analyse(text, environment, dialect)

    decided = policy(rules + (ALLOW if effect == "deny" else ""))
    decided = replace(decided, site=replace(decided.site, analyse=noting))
    decision = decided.decide("srv__tool", {"script": "ls; x99 a"})
    assert (decision.effect, decision.rule_id, read) == ("deny", "r99" if effect == "deny" else None, ["ls; x99 a"])


def test_the_paths_of_all_values_count_together(policy: Callable[..., Policy]) -> None:
    decided = policy("- {id: d, deny: srv__tool, args: {'paths[]': {path: ['secret/**']}}}\n" + ALLOW)
    few = decided.decide("srv__tool", {"paths": [f"a{number}" for number in range(250)]})
    many = decided.decide("srv__tool", {"paths": [f"a{number}" for number in range(350)]})
    again = decided.decide("srv__tool", {"paths": ["a"] * 900})
    assert (few.effect, many.effect, many.code, again.effect) == ("allow", "deny", "limit", "allow")


@pytest.mark.parametrize(
    ("tests", "last"),
    [
        ("{enum: [x]}", "x"),
        ("{enum: [x]}", 1),
        ("{min: 5}", 7),
        ("{host: a.org}", "https://a.org/"),
        ("{host: a.org}", "no address"),
        ("{type: integer}", 1),
        ("{regex: x}", "x"),
    ],
)
def test_one_value_among_many_is_found(policy: Callable[..., Policy], tests: str, last: Any) -> None:
    decided = policy(f"- {{id: d, deny: srv__tool, args: {{'items[]': {tests}}}}}\n{ALLOW}")
    others: dict[str, Any] = {"{min: 5}": 1, "{host: a.org}": "https://b.org/"}
    many = [others.get(tests, "y")] * 900
    assert decided.decide("srv__tool", {"items": many}).effect == "allow"
    assert decided.decide("srv__tool", {"items": [*many, last]}).rule_id == "d"


def test_a_value_that_did_not_pass_one_rule_may_pass_the_next(policy: Callable[..., Policy]) -> None:
    rules = [f"- {{id: {name}, allow: srv__tool, args: {{'items[]': {{enum: [{name}, z]}}}}}}\n" for name in "abc"]
    decided = policy("".join(rules))
    for name in "abc":
        assert decided.decide("srv__tool", {"items": ["z"] * 10 + [name]}).rule_id == name
    assert decided.decide("srv__tool", {"items": ["a", "b"]}).effect == "deny"
