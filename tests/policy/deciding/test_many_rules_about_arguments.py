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
