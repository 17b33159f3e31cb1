"""`git diff` prints nothing of a file that is as the index has it, so that a rule denies it lets it be."""

import os
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.policy.gathering.repositories import is_unchanged
from ci_agent.workspace import Workspace

_RULES = """
- id: any
  allow: bash
  command: ["git **", "{cat,head,echo,touch,mv,cp,sed,tee,ln,rm} **", "cd *", "sed -i **",
    "git --work-tree=* --git-dir=* **"]
  env: [GIT_DIR, GIT_INDEX_FILE]
  paths: [".", "**"]
- {id: files, allow: write}
- {id: secrets, deny: read, path: ["**/*.pem"]}
"""
_OLD_NS = 1_600_000_000 * 1_000_000_000


@pytest.fixture
def root(put: Put, workspace: Workspace) -> Path:
    """A repository with a secret that is older than its index by a second and more."""
    for name in ("README.md", "src/a.py", "tests/key.pem"):
        os.utime(put(name), ns=(_OLD_NS, _OLD_NS))
    _git(workspace.root, "init", "-q")
    _git(workspace.root, "add", "-A")
    return workspace.root


@pytest.fixture
def decided(policy: MakePolicy, root: Path) -> Policy:
    return policy(_RULES)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def _effect(policy: Policy, command: str) -> str:
    return policy.decide("bash", {"command": command}).effect


FREE = [
    "git diff",
    "git diff --stat -p",
    "git diff -w --color | head -50",
    "git diff -- ':!README.md'",
    "git status -sb && git diff",
    "git diff > change.patch",
    "echo x >> README.md && git diff",
    "sed -i s/t/u/ src/a.py; git add -A; git diff",
    "cd src && git diff",
]


@pytest.mark.parametrize("command", FREE)
def test_what_is_as_the_index_has_it_is_not_printed(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "allow"


PRINTED = [
    "git diff HEAD",
    "git diff --cached",
    "git diff --staged",
    "git diff main...HEAD",
    'git diff "$X"',
    "git diff -C --find-copies-harder",
    "git diff --find-copies-harder",
    "git diff -R",
    "git diff --ita-visible-in-index",
    "git show",
    "git log -p",
    "git grep x",
    "echo x >> tests/key.pem; git diff",
    "touch tests/key.pem && git diff",
    "git diff; echo x >> tests/key.pem",
    "mv tests other; git diff",
    "rm -r tests && git diff",
    "cp README.md tests/key.pem; git diff",
    "sed -i s/t/u/ tests/*; git diff",
    "ln tests/key.pem y; echo x >> y; git diff",
    "ln -s tests/key.pem y; echo x >> y; git diff",
    "git reset HEAD~1; git diff",
    "git checkout main; git diff",
    "git checkout HEAD~1 -- . && git diff",
    "git rm --cached -r tests; git add -N tests; git diff",
    "git update-index --cacheinfo 100644,abc,tests/key.pem; git diff",
    "git read-tree HEAD~1 && git diff",
    "git stash; git diff",
    "git apply --cached x.patch; git diff",
    'echo x > "tests/$(date +%F)"; git diff',
    "GIT_INDEX_FILE=x git diff",
    "export GIT_DIR=x; git diff",
    "git --work-tree=src --git-dir=.git diff",
    "git -C tests diff",
]


@pytest.mark.parametrize("command", PRINTED)
def test_what_may_differ_or_is_compared_with_something_else_may_be_printed(decided: Policy, command: str) -> None:
    assert _effect(decided, command) == "deny"


def test_a_changed_file_is_printed(decided: Policy, root: Path) -> None:
    (root / "README.md").write_text("changed")
    assert _effect(decided, "git diff") == "allow"
    (root / "tests/key.pem").write_text("other")
    assert decided.decide("bash", {"command": "git diff"}).rule_id == "secrets"


def test_a_file_of_the_same_size_and_time_is_told_by_its_content(decided: Policy, root: Path) -> None:
    (root / "tests/key.pem").write_text("TEXT\n")
    os.utime(root / "tests/key.pem", ns=(_OLD_NS, _OLD_NS))
    assert _effect(decided, "git diff") == "deny"


@pytest.mark.parametrize("age_s", [-1, 0, 1])
def test_of_a_file_as_young_as_the_index_the_content_tells(decided: Policy, root: Path, age_s: int) -> None:
    """So it is right after a checkout."""
    index_ns = _OLD_NS + age_s * 1_000_000_000
    os.utime(root / ".git/index", ns=(index_ns, index_ns))
    assert _effect(decided, "git diff") == "allow"
    (root / "tests/key.pem").write_text("TEXT\n")
    os.utime(root / "tests/key.pem", ns=(_OLD_NS, _OLD_NS))
    os.utime(root / ".git/index", ns=(index_ns, index_ns))
    assert _effect(decided, "git diff") == "deny"


def test_a_file_that_was_copied_with_its_repository_is_as_it_was(policy: MakePolicy, root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path)
    (root / "tests/key.pem").chmod(0o600)
    assert _effect(policy(_RULES), "git diff") == "allow"
    assert _effect(policy(_RULES, exported=frozenset({"XDG_CONFIG_HOME"})), "git diff") == "deny"
    assert _effect(policy(_RULES, home=None), "git diff") == "deny"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".gitattributes", "*.pem filter=lfs\n"),
        ("tests/.gitattributes", "* working-tree-encoding=UTF-16\n"),
        (".git/info/attributes", "*.pem filter=x\n"),
        ("../home/.config/git/attributes", "*.pem filter=x\n"),
        (".git/config", "[core]\nattributesFile = x\n"),
        ("../home/.gitconfig", "[core]\nATTRIBUTESFILE = x\n"),
        (".git/config", '[includeIf "gitdir:x"]\npath = x\n'),
        (".git/commondir", "..\n"),
    ],
)
def test_where_git_may_store_something_else_than_a_file_holds_nothing_is_certain(
    policy: MakePolicy, root: Path, file: str, content: str
) -> None:
    os.utime(root / ".git/index", ns=(_OLD_NS, _OLD_NS))
    assert _effect(policy(_RULES), "git diff") == "allow"
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(content)
    assert _effect(policy(_RULES), "git diff") == "deny"


def test_attributes_that_are_gone_from_the_disk_or_are_a_link_are_not_certain(decided: Policy, root: Path) -> None:
    (root / "tests/.gitattributes").write_text("* ident\n")
    _git(root, "add", "-A")
    os.utime(root / ".git/index", ns=(_OLD_NS, _OLD_NS))
    assert _effect(decided, "git diff") == "allow"
    (root / "tests/.gitattributes").unlink()
    assert _effect(decided, "git diff") == "deny"
    (root / "tests/.gitattributes").symlink_to("../src/a.py")
    assert _effect(decided, "git diff") == "deny"


@pytest.mark.parametrize("content", ["a\r\n", "$Id: x$\n", "x" * 300_000])
def test_content_that_git_may_convert_is_not_certain(decided: Policy, root: Path, content: str) -> None:
    with (root / "tests/key.pem").open("w", newline="") as file:
        file.write(content)
    _git(root, "add", "-A")
    os.utime(root / ".git/index", ns=(_OLD_NS, _OLD_NS))
    assert _effect(decided, "git diff") == "deny"


def test_attributes_that_the_call_brings_are_not_certain(decided: Policy, root: Path) -> None:
    os.utime(root / ".git/index", ns=(_OLD_NS, _OLD_NS))
    assert _effect(decided, "echo '* ident' > x.txt; git diff") == "allow"
    assert _effect(decided, "echo '* working-tree-encoding=UTF-16' > .gitattributes; git diff") == "deny"
    assert _effect(decided, "echo '* working-tree-encoding=UTF-16' > .GitAttributes; git diff") == "deny"


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_indexes_of_every_version_are_read(root: Path, version: str) -> None:
    _git(root, "update-index", "--index-version", version)
    assert is_unchanged(root, "tests/key.pem")
    assert is_unchanged(root, "src/a.py")
    assert not is_unchanged(root, "src/b.py")


def test_entries_of_a_kind_of_their_own_are_not_certain(root: Path) -> None:
    _git(root, "update-index", "--skip-worktree", "tests/key.pem")
    assert not is_unchanged(root, "tests/key.pem")
    _git(root, "rm", "-q", "--cached", "src/a.py")
    _git(root, "add", "-N", "src/a.py")
    assert not is_unchanged(root, "src/a.py")


def test_git_agrees_that_nothing_changed(root: Path) -> None:
    told = subprocess.run(["git", "diff"], cwd=root, check=True, capture_output=True)
    assert told.stdout == b""
    assert is_unchanged(root, "tests/key.pem")
