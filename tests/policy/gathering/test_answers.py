"""What commands print that the disk tells: the branch, the top of the tree, versions; and when it may be another."""

import os
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

_RULES = """
- id: exact
  allow: bash
  command: ["git push origin {main,heads/main,HEAD,fix-1,''}", "docker build -t {'app:1.2.3',app:} .", "make {app,''}"]
- id: tools
  allow: bash
  command: ["git {branch,rev-parse,symbolic-ref,add,commit,fetch,pull,stash,checkout,switch,status,init} **",
    "{cat,head,jq,tee,ln,mv,cp,echo,sleep,true,printf,tar} **", "npm **", "node {-p,-e} **", "ls **", "cd **",
    "sed -i **", "export **", "tar xf * **", "gh pr **"]
  env: [LC_ALL, GIT_DIR, NODE_OPTIONS]
  paths: [".", "**", "**/.git/**", "**/.github/workflows/**"]
- {id: files, allow: write}
"""


@pytest.fixture
def root(put: Put, workspace: Workspace) -> Path:
    put("VERSION", "1.2.3\n")
    put("package.json", '{"name": "app", "version": "1.2.3"}\n')
    put("src/a.py")
    subprocess.run(["git", "-c", "init.defaultBranch=main", "init", "-q"], cwd=workspace.root, check=True)
    return workspace.root


@pytest.fixture
def decided(policy: MakePolicy, root: Path) -> Policy:
    return policy(_RULES)


def _effect(policy: Policy, command: str) -> str:
    return policy.decide("bash", {"command": command}).effect


KNOWN = [
    'git push origin "$(git branch --show-current)"',
    'b=$(git branch --show-current); git push origin "$b"',
    'b="$(git rev-parse --abbrev-ref HEAD 2>/dev/null)" && git push origin "$b"',
    'git push origin "$(git symbolic-ref --short HEAD)"',
    'git add -A && git commit -m x && git pull && git push origin "$(git branch --show-current)"',
    'git stash && git push origin "$(git branch --show-current)"',
    'git checkout -b fix-1 && git push origin "$(git branch --show-current)"',
    'git switch -c fix-1 && git commit -am x && git push origin "$(git rev-parse --abbrev-ref HEAD)"',
    'docker build -t "app:$(cat VERSION)" .',
    "docker build -t app:$(cat VERSION) .",
    "V=$(cat VERSION); docker build -t app:$V .",
    'docker build -t "app:$(head -n 1 VERSION)" .',
    'docker build -t "app:$(jq -r .version package.json)" .',
    "docker build -t \"app:$(jq -r '.version' ./package.json)\" .",
    'v=$(node -p "require(\'./package.json\').version"); docker build -t "app:$v" .',
    'v=$(node -e "console.log(require(\'./package.json\').version)"); docker build -t "app:$v" .',
    'make "$(jq -r .name package.json)"',
    'cd "$(git rev-parse --show-toplevel)" && ls src',
    'echo x > other.txt; docker build -t "app:$(cat VERSION)" .',
]


@pytest.mark.parametrize("command", KNOWN)
def test_what_the_disk_tells_is_held_against_rules_that_name_it(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "allow"


CHANGED = [
    'gh pr checkout 1 && git push origin "$(git branch --show-current)"',
    'git checkout other && git push origin "$(git branch --show-current)"',
    'git checkout -b evil && git push origin "$(git branch --show-current)"',
    'git init -q -b evil src && cd src && git push origin "$(git branch --show-current)"',
    'tar xf x.tar && cd src && git push origin "$(git branch --show-current)"',
    'cp -r src copy && cd src && git push origin "$(git branch --show-current)"',
    'echo "ref: refs/heads/evil" > .git/HEAD; git push origin "$(git branch --show-current)"',
    'git checkout -b "$X" && git push origin "$(git branch --show-current)"',
    'git branch -m evil && git push origin "$(git branch --show-current)"',
    'git symbolic-ref HEAD refs/heads/evil && git push origin "$(git branch --show-current)"',
    'git stash branch evil && git push origin "$(git branch --show-current)"',
    'for i in 1 2; do git push origin "$(git branch --show-current)"; git switch -c evil; done',
    '(sleep 1; git checkout other) & git push origin "$(git branch --show-current)"',
    'GIT_DIR=x git branch --show-current; git push origin "$(GIT_DIR=x git branch --show-current)"',
    'export GIT_DIR=src; git push origin "$(git branch --show-current)"',
    'git() { echo evil; }; command git push origin "$(git branch --show-current)"',
    'git push origin "$(git branch --show-current; echo evil)"',
    'git push origin "$(git branch --show-current | tee x)"',
    'git push origin "$(git -C src branch --show-current)"',
    'b=$(git branch --show-current); b=$X; git push origin "$b"',
    'echo "2 --file=x" > VERSION; docker build -t "app:$(cat VERSION)" .',
    'echo evil | tee VERSION; docker build -t "app:$(cat VERSION)" .',
    'for i in 1 2; do docker build -t "app:$(cat VERSION)" .; echo evil >> VERSION; done',
    'mv src/a.py VERSION; docker build -t "app:$(cat VERSION)" .',
    'cp src/a.py VERSION; docker build -t "app:$(cat VERSION)" .',
    'sed -i s/1/x/ VERSION; docker build -t "app:$(cat VERSION)" .',
    'ln -s VERSION w; echo evil > w; docker build -t "app:$(cat VERSION)" .',
    'ln VERSION w; echo evil > w; docker build -t "app:$(cat VERSION)" .',
    'git checkout other -- .; docker build -t "app:$(cat VERSION)" .',
    'git stash pop; docker build -t "app:$(cat VERSION)" .',
    'tar xf x.tar; docker build -t "app:$(cat VERSION)" .',
    'npm pkg set version=evil; docker build -t "app:$(jq -r .version package.json)" .',
    'export NODE_OPTIONS=-rx; docker build -t "app:$(node -p "require(\'./package.json\').version")" .',
    'cat() { echo evil; }; docker build -t "app:$(cat VERSION)" .',
    'cd src; docker build -t "app:$(cat VERSION)" .',
]


@pytest.mark.parametrize("command", CHANGED)
def test_what_the_call_may_change_is_not_known(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "deny"


@pytest.mark.parametrize(
    "content", ["1.2.3 --file=x", "-f", "main", "1.2.3\n4", "1.2.3\r\n", "", "x" * 300, "1.2.3;id", "hunter2", "1.2 3"]
)
def test_a_file_that_holds_no_version_tells_nothing(decided: Policy, root: Path, content: str) -> None:
    (root / "VERSION").write_text(content)
    decision = decided.decide("bash", {"command": 'docker build -t "app:$(cat VERSION)" .'})
    assert decision.effect == "deny"
    assert not content.strip() or content not in str(decision)


def test_no_other_file_tells_what_it_holds(policy: MakePolicy, put: Put) -> None:
    put("secret", "31415926\n")
    put(".env", "31415926\n")
    decided = policy('- {id: any, allow: bash, command: ["cat **"]}\n- {id: env, deny: read, path: "**/.env"}')
    for file in ("secret", ".env"):
        decision = decided.decide("bash", {"command": f'x=$(cat {file}); make "$x"; echo "$x" > "out/$x"'})
        assert decision.effect == "deny"
        assert "31415926" not in str(decision)


def test_a_link_tells_nothing(policy: MakePolicy, put: Put, workspace: Workspace) -> None:
    put("secret", "31415926\n")
    os.symlink("secret", workspace.root / "VERSION")
    os.link(workspace.root / "secret", workspace.root / "version.txt")
    decided = policy('- {id: any, allow: bash, command: ["cat **"]}')
    for file in ("VERSION", "version.txt"):
        decision = decided.decide("bash", {"command": f'make "$(cat {file})"'})
        assert decision.effect == "deny"
        assert "31415926" not in str(decision)


@pytest.mark.parametrize("head", ["ref: refs/heads/-f\n", "ref: refs/heads/+main\n", "ref: refs/heads/a b\n", "x", ""])
def test_an_odd_branch_is_not_known(policy: MakePolicy, root: Path, head: str) -> None:
    (root / ".git/HEAD").write_text(head)
    decided = policy('- {id: git, allow: bash, command: ["git {push,branch} **"]}')
    assert _effect(decided, 'git push origin "$(git branch --show-current)"') == "deny"


def test_a_rule_that_denies_the_branch_forbids_to_push_it(policy: MakePolicy, root: Path) -> None:
    rules = """
    - {id: git, allow: bash, command: ["git {push,branch} **"]}
    - {id: main, deny: bash, command: "git push **", has: [main]}
    """
    push = 'git push origin "$(git branch --show-current)"'
    assert policy(rules).decide("bash", {"command": push}).rule_id == "main"
    (root / ".git/HEAD").write_text("ref: refs/heads/topic\n")
    assert _effect(policy(rules), push) == "allow"


def test_no_branch_is_known_where_git_is_told_where_to_look(policy: MakePolicy, root: Path) -> None:
    push = 'git push origin "$(git branch --show-current)"'
    rules = '- {id: git, allow: bash, command: ["git {push,branch} **"]}'
    assert _effect(policy(rules), push) == "allow"
    assert _effect(policy(rules, exported=frozenset({"GIT_DIR"})), push) == "deny"


def test_a_folder_that_git_may_fail_to_name_is_not_left(decided: Policy) -> None:
    assert _effect(decided, 'cd src && cd "$(git rev-parse --show-toplevel)" && ls') == "deny"
    assert _effect(decided, "cd $(git rev-parse --show-toplevel) && ls") == "deny"


_CLEAN = """
- {id: tools, allow: bash, command: ["git {rev-parse,init} **", "{rm,mkdir,mv,cp,ls} **", "cd **"], paths: [".", "**"]}
- {id: files, allow: write}
"""


def test_a_deletion_beneath_the_top_leaves_the_top_what_it_is(policy: MakePolicy, root: Path, put: Put) -> None:
    put("build-of-a-test/x")
    decided = policy(_CLEAN)
    for command in (
        'rm -rf "$(git rev-parse --show-toplevel)/build-of-a-test"',
        'cd src && rm -rf "$(git rev-parse --show-toplevel)/build-of-a-test"',
        'top=$(git rev-parse --show-toplevel) && rm -rf "$top/build-of-a-test" && ls "$top"',
        'cd "$(git rev-parse --show-toplevel)" && rm -rf build-of-a-test',
    ):
        assert (command, _effect(decided, command)) == (command, "allow")


@pytest.mark.parametrize(
    "command",
    [
        'rm -rf "$(git rev-parse --show-toplevel)"',
        'rm -rf "$(git rev-parse --show-toplevel)/"',
        'rm -rf "$(git rev-parse --show-toplevel)/.git"',
        'rm -rf "$(git rev-parse --show-toplevel)/etc"',
        'rm -rf "$(git rev-parse --show-toplevel)/../x"',
        'rm -rf "$(git rev-parse --show-toplevel)/x/$X"',
        'rm -rf .; rm -rf "$(git rev-parse --show-toplevel)/x"',
        'rm -rf .git; rm -rf "$(git rev-parse --show-toplevel)/x"',
        'mv .git y; rm -rf "$(git rev-parse --show-toplevel)/x"',
        'git init -q src; cd src && rm -rf "$(git rev-parse --show-toplevel)/x"',
        'cp -r src y && cd src && rm -rf "$(git rev-parse --show-toplevel)/x"',
        'mkdir /x; rm -rf "$(git rev-parse --show-toplevel)/x"',
        'rm -rf "$(git -C .. rev-parse --show-toplevel)/x"',
        'rm -rf "$(GIT_DIR=src git rev-parse --show-toplevel)/x"',
    ],
)
def test_no_deletion_goes_where_another_top_would_lead(policy: MakePolicy, root: Path, command: str) -> None:
    assert _effect(policy(_CLEAN), command) == "deny"


@pytest.mark.parametrize("part", ["", "HEAD", "objects", "refs"])
def test_a_repository_that_hangs_on_a_link_may_go_with_a_folder(policy: MakePolicy, root: Path, part: str) -> None:
    command = 'rm -rf store; rm -rf "$(git rev-parse --show-toplevel)/x"'
    decided = policy(_CLEAN)
    assert _effect(decided, command) == "allow"
    (root / "store").mkdir()
    (root / ".git" / part).rename(root / "store/it")
    (root / ".git" / part).symlink_to(root / "store/it")
    assert _effect(decided, command) == "deny"


def test_a_folder_that_git_takes_for_no_repository_is_no_top(policy: MakePolicy, root: Path) -> None:
    (root / "src/.git").mkdir()
    decided = policy(_CLEAN)
    assert _effect(decided, 'cd src && ls "$(git rev-parse --show-toplevel)/a.py"') == "deny"
    assert _effect(decided, 'ls "$(git rev-parse --show-toplevel)/src/a.py"') == "allow"
