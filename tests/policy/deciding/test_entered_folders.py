"""Loops that enter the folders which a glob becomes."""

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy

RULES = """
- {id: programs, allow: bash, command: ["{npm,cat,ls,echo,rm} **", "cd *"], paths: [".", "packages/**", "src/**", src]}
- {id: secrets, deny: read, path: "**/.env"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("packages/web/package.json", "packages/api/.env", "packages/README.md", "src/a.py", "other/b/.env"):
        put(name)
    return policy(RULES)


@pytest.mark.parametrize(
    "line",
    [
        'for p in packages/*; do (cd "$p" && npm test); done',
        "for p in packages/*/; do (cd $p && npm test); done",
        'for p in packages/* src; do (cd "$p" && ls); done',
        'for p in packages/w*; do (cd "$p" && cat package.json); done',
    ],
)
def test_each_folder_is_followed(decided: Policy, line: str) -> None:
    assert decided.decide("bash", {"command": line}).reason == "Allowed by policy rule programs."


@pytest.mark.parametrize(
    "line",
    [
        'for p in packages/*; do (cd "$p" && cat .env); done',
        'for p in packages/*; do (cd "$p" && cat ../../other/b/.env); done',
        'for p in other/*; do (cd "$p" && ls); done',
        'for p in packages/*; do (cd "$p"; npm test); done',
        'for p in packages/*; do cd "$p" && npm test; done',
        'for p in packages/*; do (cd "$p/.." && rm -rf web); cat "$p/.env"; done',
        "for p in /etc/*; do (cd $p && ls); done",
        'for p in $x packages/*; do (cd "$p" && npm test); done',
        'for p in packages/*; do p=/etc; (cd "$p" && ls); done',
    ],
)
def test_what_is_denied_in_one_of_them_is_denied(decided: Policy, line: str) -> None:
    assert decided.decide("bash", {"command": line}).effect == "deny"


def test_a_link_among_them_leads_where_it_leads(decided: Policy, put: Put) -> None:
    folder = put("packages/web/package.json").parent.parent
    (folder / "link").symlink_to("/etc")
    line = 'for p in packages/*; do (cd "$p" && ls); done'
    assert decided.decide("bash", {"command": line}).effect == "deny"


def test_more_than_a_few_are_not_followed_one_by_one(decided: Policy, put: Put) -> None:
    for number in range(20):
        put(f"packages/p{number}/package.json")
    line = 'for p in packages/*; do (cd "$p" && npm test); done'
    assert decided.decide("bash", {"command": line}).code == "unparsable"
