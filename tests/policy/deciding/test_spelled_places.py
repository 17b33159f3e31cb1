"""A rule that spells `{}` means the files that `find` puts there: it covers its own line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

LINE = "find . -name '*.py' -exec grep -l TODO {} +"


def _effect(policy: MakePolicy, pattern: str, command: str) -> str:
    rules = f'[{{"id": "own", "allow": "bash", "command": {json.dumps(pattern)}}}]'
    secrets = '{"id": "secrets", "deny": "read", "path": "**/.env"}'
    return policy(f"{rules[:-1]}, {secrets}]").decide("bash", {"command": command}).effect


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        (LINE, LINE),
        ("find * -name * -exec grep -l * {} +", "find src -name '*.py' -exec grep -l def {} +"),
        ("find . -name *.py -exec wc -l {} \\;", "find . -name '*.py' -exec wc -l {} \\;"),
        ("find . -name *.py -exec wc -l {} \\;", "find . -name '*.py' -exec wc -l '{}' ';'"),
        ("find src -exec grep -l a {} + -exec wc -l {} +", "find src -exec grep -l a {} + -exec wc -l {} +"),
        ("find src -exec timeout 5 wc -l {} +", "find src -exec timeout 5 wc -l {} +"),
        ("find src -exec wc **", "find src -exec wc -l {} +"),
    ],
)
def test_a_rule_covers_the_line_that_it_spells(policy: MakePolicy, put: Put, pattern: str, command: str) -> None:
    put("src/a.py")
    put(".env")
    assert _effect(policy, pattern, command) == "allow"


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        (LINE, "find src -name '*.py' -exec grep -l TODO {} +"),
        (LINE, "find . -name '*.py' -exec grep -l TODO {} \\;"),
        (LINE, "find . -name '*.py' -exec grep -l FIXME {} +"),
        (LINE, "find . -name '*.py' -exec grep -l TODO {} src +"),
        (LINE, "find . -name '*.py' -exec grep -l TODO {} + -delete"),
        (LINE, "find . -name '*.py' -exec grep -l TODO {} + -exec rm {} +"),
        (LINE, "find . -name '*.py' -exec grep -l TODO src/a.py +"),
        (LINE, "grep -l TODO src/a.py"),
        (LINE, "find . -name '*.py' | xargs grep -l TODO"),
        ("find . -exec cat {} +", "find . -exec cat {} +"),
        ("find / -name *.py -exec cat {} +", "find / -name '*.py' -exec cat {} +"),
        ("find src -exec wc -l {} + **", "find src -exec wc -l {} + -exec rm {} +"),
        ("find src -exec grep -l {} a +", "find src -exec grep -l a {} +"),
        ("find src -exec * -l {} +", "find src -exec wc -l {} +"),
        ("find src -exec sh -c {} +", "find src -exec sh -c {} +"),
        ("find src -exec wc {} +", 'x="-l"; find src -exec wc "$x" +'),
    ],
)
def test_it_covers_nothing_else(policy: MakePolicy, put: Put, pattern: str, command: str) -> None:
    put("src/a.py")
    put(".env")
    assert _effect(policy, pattern, command) == "deny"


def test_the_inner_command_may_have_a_pattern_of_its_own(policy: MakePolicy, put: Put) -> None:
    put("src/a.py")
    decided = policy('- {id: own, allow: bash, command: ["find **", "wc -l {}"]}')
    assert decided.decide("bash", {"command": "find src -exec wc -l {} +"}).effect == "allow"
    assert decided.decide("bash", {"command": "wc -l src/a.py"}).effect == "deny"
