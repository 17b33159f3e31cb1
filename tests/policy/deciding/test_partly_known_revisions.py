"""Revisions of which only the beginning is known: a `--` behind them says that they are no files."""

import subprocess

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

_RULES = """
- {id: git, allow: bash, command: ["git **"], paths: [".", "**"]}
- {id: secrets, deny: read, path: "**/.env"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    put("README.md")
    put(".env")
    subprocess.run(["git", "init", "-q"], cwd=workspace.root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=workspace.root, check=True)
    return policy(_RULES)


@pytest.mark.parametrize(
    "command",
    [
        'git log --oneline "v$X..HEAD" --',
        'git log --oneline "refs/tags/$(git describe --tags --abbrev=0)..HEAD" --',
        'git log "origin/$BRANCH" -- README.md',
        'git diff --stat "origin/$BRANCH" --',
        'git blame "v$X" -- README.md',
    ],
)
def test_a_revision_before_a_double_dash_is_no_file(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize(
    "command",
    [
        'git log --oneline "v$X..HEAD"',
        'git log "$X" --',
        'git log "-$X" --',
        'git log "--$X" --',
        'git log ":$X" --',
        'git log "HEAD:$X" --',
        "git log v$X --",
        'git log "v$X" -- "$Y"',
        'git show "HEAD$X" --',
        'git show "HEAD$X" -- README.md',
        'git diff "v$X" --',
        'git diff "v$X" -- README.md',
        'git log -p "v$X" --',
        'git cat-file -p "HEAD$X"',
        'git grep x "v$X" -- README.md',
        'git archive "v$X" -- README.md',
        'git diff --no-index "v$X" README.md',
    ],
)
def test_it_may_be_an_option_a_file_or_a_path_in_a_revision(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ('git show "$(git rev-parse HEAD):README.md"', "allow"),
        ('git show "HEAD:keys/$(date +%Y).txt"', "deny"),
        ('git show "HEAD:keys/$(date +%Y).txt" --', "deny"),
        ('git show "HEAD:keys/a-$(git rev-parse HEAD).txt"', "deny"),
        ('for s in $(git rev-list HEAD); do git show "$s:README.md"; done', "allow"),
        ('for s in $(git rev-list HEAD); do git show "HEAD:keys/$s"; done', "deny"),
    ],
)
def test_a_path_in_a_revision_must_be_known(policy: MakePolicy, put: Put, command: str, effect: str) -> None:
    put("README.md")
    put("keys/2026.txt")
    decided = policy(
        """
        - {id: git, allow: bash, command: ["git **", "date *"], paths: [".", "**"]}
        - {id: key, deny: read, path: keys/2026.txt}
        """
    )
    assert decided.decide("bash", {"command": command}).effect == effect


def test_the_denial_tells_what_helps(decided: Policy) -> None:
    assert "put `--` behind it" in str(decided.decide("bash", {"command": 'git log "v$X..HEAD"'}))


NARROW = """
- {id: git, allow: bash, command: ["git {diff,log,show} **", "cd *"], paths: ["src", "src/**"]}
- {id: kept, deny: read, path: ["private/**", ".env"]}
"""


@pytest.mark.parametrize(
    "command", ["git diff HEAD~1 --stat", "git diff main...HEAD --stat", "cd src && git log v1 v2"]
)
def test_a_revision_is_no_file_where_nothing_has_its_name(policy: MakePolicy, put: Put, command: str) -> None:
    put("src/x")
    put(".git/HEAD")
    decision = policy(NARROW).decide("bash", {"command": command})
    assert decision.effect == "allow"
    assert [fact.kind for fact in decision.facts if fact.kind == "read"] == []


@pytest.mark.parametrize(
    "command",
    ["git log README.md", "git log private/gone", "git log .env", "git log ../x", "git log /etc/x", "git log -- gone"],
)
def test_what_is_there_is_denied_or_lies_elsewhere_counts_as_a_file(policy: MakePolicy, put: Put, command: str) -> None:
    put("README.md")
    put("src/x")
    assert policy(NARROW).decide("bash", {"command": command}).effect == "deny"
