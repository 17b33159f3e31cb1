"""Files that are named by dates, commits and counts: granted for every name that it may be, forbidden for any."""

import os
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.policy.facts import FileFact
from ci_agent.policy.matchers.open_names import OPEN
from ci_agent.workspace import Workspace

_RULES = """
- id: any
  allow: bash
  command: ["{cp,mv,cat,tar,ls,touch,mkdir,rm,ln,echo,date,tee,git,nproc,frobnicate,git} **", "tar czf * **", "cd *",
    "tar xf * **"]
  paths: [".", "**"]
- {id: files, allow: write, path: "**"}
- id: secrets
  deny: [read, write]
  path: ["**/.env", "**/*.key", "build/2026-*", "x/20*/deep.txt", "logs/*secret*", "kept-dead*"]
"""
_DAY = "$(date +%F)"
_SHA = "$(git rev-parse --short HEAD)"


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    for name in ("README.md", "VERSION", "src/a.py", "build/x", "build/old-11.txt", "x/1999/a", "logs/a"):
        put(name)
    put("data/dir/my.key")
    put(".env")
    os.symlink(".env", workspace.root / "r-123.txt")
    os.symlink("../.env", workspace.root / "build/l-55")
    os.symlink("/etc", workspace.root / "etc-2000-01-01")
    return policy(_RULES)


GRANTED = [
    f'cp README.md "build/old-{_DAY}.txt"',
    f'echo > "{_DAY}"',
    f'echo x > "logs/log-{_DAY}.txt"',
    f"tar czf out-{_DAY}.tgz src",
    f'tar czf "build/app-{_SHA}.tar.gz" -C src .',
    f'sha={_SHA}; echo "$sha" > "build/$sha.txt"',
    f'mkdir -p "y/{_DAY}" && cp README.md "y/{_DAY}/"',
    f'mkdir "x/{_DAY}/deep"',
    f'cat "logs/{_DAY}.log"',
    'mv README.md "README-$(date +%Y%m%d-%H%M%S).md"',
    f'echo x | tee "logs/{_DAY}-{_SHA}.log"',
]


@pytest.mark.parametrize("command", GRANTED)
def test_a_file_whose_name_differs_in_digits_alone_is_granted_by_wildcards(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


DENIED = [
    f'cp README.md "build/{_DAY}"',
    f'echo x > "build/{_DAY}.log"',
    f'echo > "x/{_DAY}/deep.txt"',
    f'cp README.md "x/{_DAY}/deep.txt"',
    f'echo > "kept-{_SHA}"',
    'cp README.md "r-$(date +%s).txt"',
    'cat "r-$(date +%j).txt"',
    'cat < "r-$(date +%j).txt"',
    'frobnicate "r-$(date +%j).txt"',
    'cat "build/l-$(date +%S)"',
    f'echo > "etc-{_DAY}/x"',
    f'echo > "{_DAY}/../.env"',
    f'echo > "../out-{_DAY}"',
    f'echo > "/etc/{_DAY}"',
    f'ln -s .env "q-{_DAY}"; cat q-2026-01-01',
    'ln -s .env q-2026; cat "q-$(date +%Y)"',
    'ln -s .env q-2026; echo > "q-$(date +%Y)"',
    f'ln -s .env "q-{_DAY}.md"; cat *.md',
    f'cp -r data/dir "copy-{_DAY}"',
    f'mkdir "copy-{_DAY}"; cp -r data/dir "copy-{_DAY}/"',
    f'tar xf a.tar -C "e-{_DAY}"; cat e-2026-01-01/x',
    f'tar xf a.tar -C e-2026-01-01; cat "e-{_DAY}/x"',
    f'echo > "logs/{_DAY}secret"',
    "echo > /dev/tcp/127.0.0.$(nproc)/80",
    f'echo > ".git/x-{_DAY}"',
    f'echo > ".github/workflows/{_DAY}.yml"',
    f'rm -rf "r{_DAY}/../.git"',
    f'git -C "sub-{_DAY}" log -p',
    f'cd "sub-{_DAY}" && ls',
    f"echo > logs/{_DAY}.$X",
    "echo > logs/$(date +%F%n)",
    'echo > "logs/$(date +%A)"',
    'echo > "logs/$(date +%F; echo /x)"',
    'date() { echo /etc/x; }; echo > "logs/$(date +%F)"',
    f'cp .env "a-{_DAY}"',
]


@pytest.mark.parametrize("command", DENIED)
def test_no_name_that_is_forbidden_or_leads_elsewhere_may_be_among_them(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"


def test_a_rule_must_cover_whatever_the_digits_are(policy: MakePolicy) -> None:
    copy = {"command": 'echo x > "build/log-$(date +%Y).txt"'}
    rules = '- {{id: say, allow: bash, command: ["echo *", "date *"]}}\n- {{id: out, allow: write, path: "{}"}}'
    answers = {
        glob: policy(rules.format(glob)).decide("bash", copy).effect
        for glob in ("build/log-*.txt", "build/log-2*.txt", "build/log-2000.txt", "build/*", "build/**", "out/**")
    }
    assert answers == {
        "build/log-*.txt": "allow",
        "build/log-2*.txt": "deny",
        "build/log-2000.txt": "deny",
        "build/*": "allow",
        "build/**": "allow",
        "out/**": "deny",
    }


def test_a_file_of_the_run_may_not_be_among_them(policy: MakePolicy, workspace: Workspace) -> None:
    decided = policy(_RULES, records=(workspace.root / "runs/run-20260101",))
    assert decided.decide("bash", {"command": 'echo > "runs/run-$(date +%Y%m%d)"'}).effect == "deny"
    assert decided.decide("bash", {"command": 'echo > "runs/x-$(date +%Y%m%d)"'}).effect == "allow"


def test_a_file_that_bears_the_mark_itself_is_not_taken_for_the_others(decided: Policy, workspace: Workspace) -> None:
    os.symlink("/etc", workspace.root / f"mark-{OPEN}")
    assert decided.decide("bash", {"command": 'echo > "mark-$(date +%Y)"'}).effect == "deny"
    assert decided.decide("bash", {"command": f"echo > mark-{OPEN}"}).effect == "deny"


def test_what_is_not_known_of_a_name_is_shown_as_a_star(decided: Policy) -> None:
    decision = decided.decide("bash", {"command": 'echo > "../out-$(date +%Y).txt"'})
    assert any(fact.value.endswith("/out-*.txt") for fact in decision.facts)
    assert FileFact("read", Path("/a/b"), Path("/a/b")).shown == "/a/b"
