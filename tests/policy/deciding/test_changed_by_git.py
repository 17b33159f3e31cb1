"""Files that git changes, deletes or takes in without a word that names them: rules that deny it bind the command."""

import os
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

RULES = """
- {id: any, allow: bash, command: ["git **", "cd *", "echo **", "make", "rm **", "mkdir **"], paths: [".", "**"]}
- {id: made, allow: write, path: "**"}
- {id: locked, deny: write, path: ["locked.txt", "private/**"]}
- {id: secrets, deny: read, path: "**/.env"}
"""


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(put: Put, workspace: Workspace) -> Path:
    """A commit whose files are surely as the index has them."""
    for name in ("locked.txt", "a.py", "private/key", "src/b.py"):
        os.utime(put(name), (1_000_000_000, 1_000_000_000))
    _git(workspace.root, "init", "-q", ".")
    _git(workspace.root, "add", "-A")
    _git(workspace.root, "commit", "-qm", "x")
    return workspace.root


@pytest.fixture
def decided(policy: MakePolicy, repository: Path) -> Policy:
    assert repository.is_dir()
    return policy(RULES)


def _answer(policy: Policy, command: str) -> tuple[str, str | None]:
    decision = policy.decide("bash", {"command": command})
    return decision.effect, decision.rule_id


MAY_CHANGE_ANY_TRACKED_FILE = """
    git checkout main; git checkout -; git checkout -f; git checkout -f main; git checkout main --; git checkout a.py
    git checkout HEAD~1 a.py .; git checkout HEAD~1 -- .; git checkout --orphan x; git checkout -b new HEAD~1
    git checkout -t origin/x; git checkout "$BRANCH"; git checkout ...main; git checkout -p; git checkout HEAD -- .
    git switch main; git switch -; git switch --discard-changes main; git switch -c new HEAD~1; git switch --orphan x
    git restore --source=HEAD~1 .; git restore -s HEAD~1 -- .; git restore -SW .; git restore '*'
    git restore --pathspec-from-file=a.py; git restore -p
    git reset --hard; git reset --hard HEAD~1; git reset --har; git reset --merge; git reset --keep HEAD~1
    git stash; git stash -u; git stash --keep-index; git stash push; git stash push -m x; git stash save x
    git stash pop; git stash apply; git stash branch x; git stash push ':!a.py'; git stash push private
    git am x.patch; git am --abort; git apply x.patch; git cherry-pick abc; git revert HEAD; git revert --abort
    git merge main; git merge --no-commit main; git merge --abort; git rebase main; git rebase --onto a b
    git rebase --continue; git pull; git pull --rebase; git bisect good; git bisect reset; git bisect run make
    git clean -fd private; cd src && git checkout main; cd src && git reset --hard; git -C src stash
    git -C src restore ..; cd src && git pull; git rm -r private; git rm --cached locked.txt
    git rm --cached private; git rm -r --cached .; git rm --cached 'l*'; git mv private x
"""


@pytest.mark.parametrize(
    "command", [each.strip() for each in MAY_CHANGE_ANY_TRACKED_FILE.replace("\n", ";").split(";") if each.strip()]
)
def test_no_command_of_git_changes_a_tracked_file_that_may_not_be_written(
    decided: Policy, put: Put, command: str
) -> None:
    put("private/new")
    assert _answer(decided, command) == ("deny", "locked")


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git reset --hard HEAD~1",
        "git checkout -f main",
        "git switch --discard-changes main",
        "git checkout main -- .",
        "git checkout main -- private",
        "git checkout main '*.txt'",
        "cd src && git checkout main -- ..",
        "git restore --source=main .",
        "git restore -s main 'l*'",
    ],
)
def test_what_git_no_longer_tracks_is_not_overwritten(decided: Policy, repository: Path, command: str) -> None:
    _git(repository, "rm", "-q", "-r", "--cached", "locked.txt", "private")
    assert _answer(decided, command) == ("deny", "locked")


@pytest.mark.parametrize("command", ["git reset --hard", "git checkout -f main", "git restore --source=main ."])
def test_what_is_ignored_or_may_be_written_is_overwritten(
    decided: Policy, put: Put, repository: Path, command: str
) -> None:
    _git(repository, "rm", "-q", "-r", "--cached", "locked.txt", "private")
    (repository / "locked.txt").unlink()
    put("new.txt")
    put(".gitignore", "private\n")
    assert _answer(decided, command) == ("allow", "any")


CHANGES_NO_SUCH_FILE = """
    git checkout -b new; git checkout -B new; git switch -c new; git checkout HEAD; git checkout -- src
    git checkout HEAD~1 -- src; git checkout src/; git checkout ./a.py; git checkout -- a.py; git switch -c new HEAD
    git restore src; git restore --source=HEAD~1 src; git restore --staged .; git restore -S locked.txt
    git reset; git reset HEAD~1; git reset --soft HEAD~1; git reset -- locked.txt
    git stash list; git stash show; git stash drop; git stash clear; git stash push src; git stash push -u -- src
    git merge --quit; git rebase --show-current-patch; git pull --dry-run; git fetch; git push
    git bisect log; git bisect start --no-checkout; git apply --check x.patch; git apply --stat x.patch
    git commit -am x; git branch x; git tag x; git submodule update; git submodule status; git worktree list
    git restore :/; git rm --cached src/b.py; git rm -r --cached src
    git clean -n; git clean -fd; git clean -fd src; cd src && git restore .; git -C src checkout -- .
"""


@pytest.mark.parametrize(
    "command", [each.strip() for each in CHANGES_NO_SUCH_FILE.replace("\n", ";").split(";") if each.strip()]
)
def test_what_leaves_those_files_alone_is_free(decided: Policy, command: str) -> None:
    assert _answer(decided, command) == ("allow", "any")


@pytest.mark.parametrize("command", ["git restore .", "git checkout -- .", "git checkout .", "git checkout -q -- ."])
def test_restoring_by_the_index_leaves_a_file_alone_that_did_not_change(
    decided: Policy, repository: Path, command: str
) -> None:
    assert _answer(decided, f"{command} && echo done") == ("allow", "any")
    (repository / "locked.txt").write_text("changed\n")
    assert _answer(decided, command) == ("deny", "locked")


@pytest.mark.parametrize("before", ["git reset HEAD~1", "git rm --cached -r .", "git read-tree x"])
def test_restoring_by_an_index_that_the_call_changes_may_change_any_file(decided: Policy, before: str) -> None:
    assert _answer(decided, f"{before}; git restore .")[0] == "deny"


def test_the_reason_says_which_file_and_what_to_do_instead(decided: Policy, repository: Path) -> None:
    reason = decided.decide("bash", {"command": "git reset --hard"}).reason
    way_out = "because git tracks it and may change it: name paths without it, as in git restore -- src"
    assert reason == f"Blocked by policy rule locked: it forbids writing {repository}/locked.txt, {way_out}"


def test_submodules_alone_are_changed_by_their_update(policy: MakePolicy, put: Put, repository: Path) -> None:
    put(".gitmodules", '[submodule "lib"]\n\tpath = vendor/lib\n\turl = ../lib\n')
    put("vendor/lib/x.c")
    put("vendor/own.c")
    allow = '{id: any, allow: bash, command: "git **", paths: [".", "**"]}'
    for denied, effect in (("vendor/lib/*.c", "deny"), ("vendor/lib/**", "deny"), ("vendor/own.c", "allow")):
        decided = policy(f"[{allow}, {{id: not, deny: write, path: {denied!r}}}]")
        assert _answer(decided, "git submodule update")[0] == effect, denied
    (repository / ".gitmodules").write_bytes(b"x" * 300_000)
    decided = policy(f"[{allow}, {{id: not, deny: write, path: vendor/own.c}}]")
    assert _answer(decided, "git submodule update")[0] == "deny"


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ('[submodule "lib"]\n\tPath = vendor/lib\n\tignore = dirty\n# end\n', "allow"),
        ('[submodule "lib"] path = vendor\n', "deny"),
        ('[submodule "lib"]\n\tpath = "vendor"\n', "deny"),
        ('[submodule "lib"]\n\tpath = ven\\\ndor\n', "deny"),
        ('[submodule "lib"]\n\tpath = vendor ; a comment\n', "deny"),
        ('[submodule "lib"]\n\tpath = x\n[include]\n\tpath = y\n', "deny"),
        (f'[submodule "lib"]\n\tpath = a{" " * 60_000}b\n', "deny"),
        ("", "allow"),
    ],
)
def test_of_submodules_that_git_may_read_otherwise_all_is_meant(
    policy: MakePolicy, put: Put, repository: Path, text: str, effect: str
) -> None:
    put("vendor/own.c")
    (repository / ".gitmodules").write_text(text)
    allow = '{id: any, allow: bash, command: "git **", paths: [".", "**"]}'
    decided = policy(f"[{allow}, {{id: not, deny: write, path: vendor/own.c}}]")
    assert _answer(decided, "git submodule update")[0] == effect


TAKES_IN = """
    git add -A; git add .; git add -N .; git add --all; git add -A && git diff --cached; git add . ; git commit -v
    git add -A && git diff HEAD; git add conf; git add 'conf/*'; git add '*.env'; git add :/; git add '*'; git add -f .
    git add --interactive; cd src && git add -A; cd src && git add :/; git -C src add -A; git add -v -- conf a.py
    git stage .; git add --no-ignore-removal .; git stash -u -- conf
"""


@pytest.mark.parametrize(
    "command", [each.strip() for each in TAKES_IN.replace("\n", "; ").split(";  ") if each.strip()]
)
def test_git_takes_in_no_file_that_may_not_be_read(decided: Policy, put: Put, command: str) -> None:
    put("conf/.env")
    assert _answer(decided, command) == ("deny", "secrets")


LEAVES_OUT = """
    git add -u; git add -n .; git add src; git add a.py; git add; git add -p src; git add '*.py'; cd src && git add .
    git commit -am x; git diff; git diff --cached; git status; git stash show -p; git add -- src a.py
"""


@pytest.mark.parametrize("command", [each.strip() for each in LEAVES_OUT.replace("\n", ";").split(";") if each.strip()])
def test_a_file_that_git_is_not_told_to_take_in_stands_in_nobodys_way(
    policy: MakePolicy, put: Put, repository: Path, command: str
) -> None:
    put("conf/.env")
    assert repository.is_dir()
    assert _answer(policy(RULES), command)[0] == "allow"


@pytest.mark.parametrize(
    ("patterns", "effect"),
    [
        (".env", "allow"),
        ("*.env", "allow"),
        (".env*", "allow"),
        ("conf/", "allow"),
        ("/conf", "allow"),
        ("conf/*", "allow"),
        ("conf/**", "allow"),
        ("**/.env", "allow"),
        ("/**/.env", "allow"),
        ("conf/.env", "allow"),
        ("# secrets\n\n.env   \n", "allow"),
        (".env\n!a.py\n!.env.example", "allow"),
        ("", "deny"),
        ("#.env", "deny"),
        ("/.env", "deny"),
        (".env/", "deny"),
        ("conf/x/**/.env", "deny"),
        ("other", "deny"),
        (".env\n!.env", "deny"),
        ("*.env\n!conf/*", "deny"),
        ("conf/*\n!conf/.e*", "deny"),
        (r"\.env", "deny"),
        ("[.]env", "deny"),
        ("*.*e*n*v*", "allow"),
        (".ENV", "deny"),
        ("nv", "deny"),
    ],
)
def test_what_an_ignore_file_leaves_out_for_certain_is_not_taken_in(
    decided: Policy, put: Put, repository: Path, patterns: str, effect: str
) -> None:
    put("conf/.env")
    put(".gitignore", patterns)
    (repository / "src/.gitignore").write_text("!*\n")
    assert _answer(decided, "git add -A && git diff --cached")[0] == effect
    if effect == "allow":
        listed = subprocess.run(
            ["git", "ls-files", "-oc", "--exclude-standard"], cwd=repository, capture_output=True, check=True
        )
        assert b"conf/.env" not in listed.stdout


def test_ignore_files_of_folders_and_of_the_repository_count(decided: Policy, put: Put, repository: Path) -> None:
    put("conf/.env")
    put("conf/.gitignore", ".env\n")
    assert _answer(decided, "git add -A")[0] == "allow"
    assert _answer(decided, "cd conf && git add .")[0] == "allow"
    (repository / "conf/.gitignore").unlink()
    (repository / ".git/info/exclude").write_text("conf/.env\n")
    assert _answer(decided, "git add conf")[0] == "allow"
    put("conf/.gitignore", "!.env\n")
    assert _answer(decided, "git add conf")[0] == "deny"


@pytest.mark.parametrize(
    "before",
    [
        "echo > .gitignore",
        "echo '!.env' >> conf/.gitignore",
        "rm .gitignore",
        "git clone . .git/info",
        "git checkout main",
        "git stash pop",
        "git mv .gitignore x",
    ],
)
def test_ignore_files_that_the_call_itself_may_change_are_not_believed(
    policy: MakePolicy, put: Put, repository: Path, before: str
) -> None:
    put("conf/.env")
    put(".gitignore", ".env\n")
    assert repository.is_dir()
    rules = RULES.replace('path: "**"', 'path: ["**", ".git/**"]')
    rules = "\n".join(line for line in rules.splitlines() if "locked" not in line)
    decided = policy(rules)
    assert _answer(decided, "git add -A") == ("allow", "any")
    assert _answer(decided, f"{before}; git add -A") == ("deny", "secrets")
    assert _answer(decided, "git add -A; git commit -m x; git push; make; echo x > out") == ("allow", "any")


def test_a_repository_that_the_call_makes_tracks_nothing_yet(policy: MakePolicy, put: Put, repository: Path) -> None:
    put("src/.env")
    _git(repository, "add", "-f", "src/.env")
    decided = policy(RULES.replace('"**"]}\n- {id: made', '"**", "**/.git/**", "**/.git"]}\n- {id: made'))
    assert _answer(decided, "git add -A") == ("allow", "any")
    assert _answer(decided, "git init src && cd src && git add -A && git diff --cached")[0] == "deny"


def test_what_is_put_away_with_a_stash_may_be_neither_read_nor_deleted(
    policy: MakePolicy, put: Put, repository: Path
) -> None:
    put(".env")
    put("notes/own.md")
    put(".gitignore", "notes\n")
    assert repository.is_dir()
    allow = '{id: any, allow: bash, command: "git **", paths: [".", "**"]}'
    rows = [
        ("read", "**/.env", "deny", "deny"),
        ("write", "notes/**", "allow", "deny"),
        ("write", "x", "allow", "allow"),
    ]
    for effect, path, with_untracked, with_all in rows:
        decided = policy(f"[{allow}, {{id: not, deny: {effect}, path: {path!r}}}]")
        assert _answer(decided, "git stash")[0] == "allow"
        assert _answer(decided, "git stash -u")[0] == with_untracked
        assert _answer(decided, "git stash push --all")[0] == with_all


def test_cleaning_spares_what_is_ignored_and_what_is_tracked(policy: MakePolicy, put: Put, repository: Path) -> None:
    put(".env")
    put(".gitignore", ".env\n")
    assert repository.is_dir()
    allow = '{id: any, allow: bash, command: "git **", paths: [".", "**", "**/.git/**"]}'
    decided = policy(f"[{allow}, {{id: not, deny: write, path: [.env, a.py]}}]")
    assert _answer(decided, "git clean -fd") == ("allow", "any")
    assert _answer(decided, "git clean -fdx") == ("deny", "not")
    (repository / ".gitignore").write_text("")
    assert _answer(decided, "git clean -fd") == ("deny", "not")
