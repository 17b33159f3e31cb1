"""Rules that let something go out of this machine come with a word of caution."""

from dataclasses import replace

import pytest

from ci_agent.policy.rules import Rule
from ci_agent.policy.suggest.cautions import caution_for

RULE = Rule(id="a", effect="allow", tools=("bash",), source="")


@pytest.mark.parametrize(
    ("rule", "cautioned"),
    [
        (replace(RULE, command=(("git", "push", "origin", "main"),)), True),
        (replace(RULE, command=(("ls", "**"), ("npm", "{test,publish}"))), True),
        (replace(RULE, command=(("gh", "pr", "list"),)), True),
        (replace(RULE, command=(("curl", "https://a.test/"),), host=("a.test",), method=("POST",)), True),
        (replace(RULE, command=(("git", "pushd"),)), False),
        (replace(RULE, command=(("npm", "test"),)), False),
        (replace(RULE, tools=("fetch",), host=("a.test",)), False),
        (replace(RULE, tools=("fetch",), host=("a.test",), method=("PUT",)), True),
    ],
)
def test_what_publishes_is_cautioned(rule: Rule, cautioned: bool) -> None:
    assert (caution_for(rule) is not None) == cautioned
