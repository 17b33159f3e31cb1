"""`git diff -- . ':!docs'`: of the folders that git's pathspecs name, what is tracked and not excluded is read."""

import os
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

RULES = """
- id: any
  allow: bash
  command: ["{git,cd,make,echo,xargs,find} **"]
  paths: [".", "**"]
  env: [GIT_LITERAL_PATHSPECS, X]
- {id: spelled, allow: bash, command: ["git diff --no-index **", "git grep --no-index **"], paths: [".", "**"]}
- {id: secrets, deny: read, path: ["**/.env", "**/private.txt"]}
"""


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def root(put: Put, workspace: Workspace) -> Path:
    for name in ("src/a.py", "src/deep/b.py", "docs/x.md", "README.md", "package-lock.json"):
        put(name)
    put(".gitignore", ".env\n")
    _git(workspace.root, "init", "-q", ".")
    _git(workspace.root, "add", "-A")
    put(".env")
    put("src/.env")
    return workspace.root


@pytest.fixture
def decided(policy: MakePolicy, root: Path) -> Policy:
    assert root.is_dir()
    return policy(RULES)


def _rule(policy: Policy, command: str) -> str | None:
    decision = policy.decide("bash", {"command": command})
    return None if decision.effect == "allow" else decision.rule_id or decision.code


NAMED = [
    "git diff -- .",
    "git diff .",
    "git diff HEAD -- . ':!package-lock.json'",
    "git diff main -- . ':(exclude)*.lock' ':^docs'",
    "git diff --stat -p HEAD~1 -- src",
    "git diff HEAD^ HEAD -- ':(top)' ':(exclude)docs'",
    "git log -p -- . ':!docs'",
    "git log -p -- src",
    "git show HEAD -- . ':!package-lock.json'",
    "git grep -n TODO -- . ':!*.min.js'",
    "git grep -n TODO src",
    "cd src && git diff HEAD -- . ':!deep'",
    "git -C src diff HEAD -- .",
    "git diff ':/'",
    "git diff-index --quiet HEAD -- . || make",
    "make && git diff --exit-code -- . ':!docs'",
]


@pytest.mark.parametrize("command", NAMED)
def test_what_lies_beside_the_tracked_files_is_not_read(decided: Policy, command: str) -> None:
    assert _rule(decided, command) is None


@pytest.mark.parametrize("command", NAMED)
def test_a_tracked_file_is_read_although_the_disk_does_not_hold_it(decided: Policy, root: Path, command: str) -> None:
    _git(root, "add", "-f", ".env", "src/.env")
    assert _rule(decided, command) == "secrets"
    (root / ".env").unlink()
    (root / "src/.env").unlink()
    assert _rule(decided, command) == "secrets"
    assert _rule(decided, f"git stash pop; {command}") == "secrets"


LEFT_OUT = [
    "git diff HEAD -- . ':!.env' ':!src/.env'",
    "git diff HEAD -- ':!.env' ':!src/.env'",
    "git diff HEAD -- . ':(exclude,glob)**/.env'",
    "git diff HEAD -- . ':!*.env'",
    "git diff HEAD -- docs README.md ':!.env'",
    "git diff main...HEAD -- . ':!.env' ':!src'",
    "git log -p -- . ':!.env' ':!src/'",
    "git log -p -- ':!*.env'",
    "git show HEAD~1 -- . ':^*.env'",
    "git grep x -- ':!*.env'",
    "git grep -e x HEAD -- ':!*.env'",
    "git diff $(git merge-base main HEAD) -- ':!*.env'",
    "cd src && git diff HEAD -- . ':!.env'",
    "cd docs && git diff HEAD -- ':(exclude,top)*.env' .",
    "git -C src diff HEAD -- . ':!.env'",
    "git diff HEAD -- ':!./.env' ':!src'",
]


@pytest.mark.parametrize("command", LEFT_OUT)
def test_what_is_excluded_is_not_printed(decided: Policy, root: Path, command: str) -> None:
    _git(root, "add", "-f", ".env", "src/.env")
    assert _rule(decided, command) is None


STILL_PRINTED = [
    "git diff HEAD -- . ':!.env'",
    "git diff HEAD -- . ':!src'",
    "git diff HEAD -- . ':!**/.env'",
    "git diff HEAD -- . ':(exclude,glob)*.env'",
    "git diff HEAD -- . ':(exclude,icase).ENV' ':!src'",
    "git diff HEAD -- . ':!/.ENV' ':!src'",
    "git diff HEAD -- . ':(exclude,attr:x)*.env'",
    "git diff HEAD -- . ':!_.env' ':!src'",
    "git diff HEAD -- . ':![.]env' ':!src'",
    "git diff HEAD -- . ':!\\.env' ':!src'",
    "git diff HEAD -- . ':!x/../.env' ':!src'",
    "git diff HEAD -- . ':!.env/' ':!src'",
    "git diff ':!*.env' HEAD",
    "git diff HEAD ':!*.env'",
    "git diff ':!*.env' .",
    "git grep x . ':!*.env'",
    "git --literal-pathspecs diff HEAD -- . ':!*.env'",
    "git --noglob-pathspecs diff HEAD -- . ':!*.env'",
    "GIT_LITERAL_PATHSPECS=1 git diff HEAD -- . ':!*.env'",
    "git diff abc1234 -- ':!*.env'",
    "git show abc1234 -- ':!*.env'",
    "git show HEAD HEAD:.env -- ':!*.env'",
    "git diff HEAD:src main:src -- ':!src/.env'",
    "git show $(git rev-parse abc1234) -- ':!*.env'",
    "git show \"$X\" -- ':!*.env'",
    "git log -p --full-diff -- . ':!*.env'",
    "echo HEAD:.env | git log -p --stdin -- . ':!*.env'",
    "echo HEAD:.env | git show --stdin -- ':!*.env'",
    "git diff HEAD -- .env ':!docs'",
    "cd src && git diff HEAD -- ':(exclude).env' ':/'",
    "cd docs && git diff HEAD -- . ':/' ':!*.env'",
]


@pytest.mark.parametrize("command", STILL_PRINTED)
def test_what_is_not_excluded_for_certain_is_printed(decided: Policy, root: Path, command: str) -> None:
    _git(root, "add", "-f", ".env", "src/.env")
    assert _rule(decided, command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "git diff --no-index -- . docs",
        "git diff -- . docs",
        "git diff . docs",
        "git diff HEAD -- src . docs",
        "git grep --untracked x -- .",
        "git grep --untrack x src",
        "git grep --no-index x -- .",
        "git grep --recurse-submodules x -- .",
        "git add -f .env && git diff --cached -- .",
        "git stash pop; git diff HEAD -- .",
        "echo .env | xargs git add -f; git diff --cached -- .",
        "find . -name .env -exec git add -f {} +; git diff --cached -- .",
        "git update-index --add .env; git diff HEAD -- .",
        "X=1 git diff HEAD -- .",
    ],
)
def test_where_git_may_read_other_files_than_the_tracked_ones_all_are_meant(decided: Policy, command: str) -> None:
    assert _rule(decided, command) == "secrets"


@pytest.mark.parametrize("exported", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES"])
def test_another_repository_may_be_meant(policy: MakePolicy, root: Path, exported: str) -> None:
    assert root.is_dir()
    assert _rule(policy(RULES, exported=frozenset({exported})), "git diff HEAD -- .") == "secrets"


def test_variables_may_say_that_an_exclusion_is_a_name(policy: MakePolicy, root: Path) -> None:
    _git(root, "add", "-f", ".env", "src/.env")
    told = policy(RULES, exported=frozenset({"GIT_LITERAL_PATHSPECS"}))
    assert _rule(told, "git diff HEAD -- . ':!*.env'") == "secrets"


@pytest.mark.parametrize("broken", ["HEAD", "objects", "index", "refs"])
def test_a_repository_that_git_passes_over_is_none(decided: Policy, root: Path, broken: str) -> None:
    (root / ".git" / broken).rename(root / ".git/gone")
    assert _rule(decided, "git diff HEAD -- .") == "secrets"


def test_a_folder_that_only_looks_like_a_repository_is_none(decided: Policy, root: Path) -> None:
    _git(root, "add", "-f", "src/.env")
    assert _rule(decided, "cd src && git diff HEAD -- .") == "secrets"
    (root / "src/.git").mkdir()
    assert _rule(decided, "cd src && git diff HEAD -- .") == "secrets"


@pytest.mark.parametrize("others", [0, 300])
def test_another_name_of_a_forbidden_file_is_seen(decided: Policy, root: Path, put: Put, others: int) -> None:
    for number in range(others):
        put(f"src/more/f{number}.py")
    (root / "src/notes.txt").hardlink_to(root / ".env")
    _git(root, "add", "-A")
    assert _rule(decided, "git diff HEAD -- .") == "secrets"
    assert _rule(decided, "git diff HEAD -- src") == "secrets"
    assert _rule(decided, "git diff HEAD -- src ':!src/notes.txt'") is None
    assert _rule(decided, "git diff HEAD -- docs") is None


def test_of_a_link_git_reads_where_it_leads_and_no_further(decided: Policy, root: Path) -> None:
    os.symlink(".env", root / "notes.txt")
    _git(root, "add", "-A")
    assert _rule(decided, "git diff HEAD -- .") is None
    assert _rule(decided, "git stash pop; git diff HEAD -- .") == "secrets"


def test_of_a_submodule_git_reads_its_commit(decided: Policy, root: Path) -> None:
    (root / "lib").mkdir()
    (root / "lib/private.txt").write_text("x")
    _git(root / "lib", "init", "-q", ".")
    _git(root / "lib", "add", "-A")
    _git(root / "lib", "commit", "-qm", "x")
    _git(root, "add", "-A")
    assert _rule(decided, "git diff HEAD -- .") is None
    assert _rule(decided, "git diff --submodule=diff HEAD -- .") == "secrets"
    assert _rule(decided, "git grep --recurse-submodules x -- .") == "secrets"
    (root / ".gitmodules").write_text("")
    assert _rule(decided, "git diff HEAD -- .") == "secrets"


def test_a_link_to_a_folder_is_not_followed(decided: Policy, root: Path) -> None:
    (root / "kept").mkdir()
    (root / "kept/.env").write_text("x")
    os.symlink("kept", root / "docs/link")
    _git(root, "add", "-A")
    assert _rule(decided, "git diff HEAD -- docs") is None


def test_names_that_differ_in_their_case_are_not_excluded(decided: Policy, root: Path, put: Put) -> None:
    put("docs/.ENV")
    _git(root, "add", "-f", "docs/.ENV")
    assert _rule(decided, "git diff HEAD -- . ':!docs/.env'") == "secrets"
    assert _rule(decided, "git diff HEAD -- . ':!docs/.ENV'") is None
