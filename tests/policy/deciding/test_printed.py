"""What git prints of tracked files that no word names: a rule that denies reading one of them denies the command."""

import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

RULES = """
- {id: any, allow: bash, command: ["git **", "cd *", "xargs **", "wc **", "cat **"]}
- {id: src, allow: [read, write]}
- {id: secrets, deny: read, path: ["**/.env", "**/*.key", "private/**"]}
"""

LISTED = """
- {id: any, allow: bash, command: ["{git,cd,xargs,wc,cat,head,make,grep,read} **"], paths: [".", "**"], env: IFS}
- {id: secrets, deny: read, path: ["**/.env"]}
"""


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "init.defaultBranch=main", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(put: Put, workspace: Workspace) -> Path:
    for name in ("src/a.py", "src/deep/b.py", "README.md", "docs/x.txt"):
        put(name)
    _git(workspace.root, "init", "-q", ".")
    _git(workspace.root, "add", "-A")
    return workspace.root


@pytest.fixture
def decided(policy: MakePolicy, repository: Path) -> Policy:
    return policy(RULES)


PRINTING = [
    "git diff",
    "git diff HEAD~1",
    "git diff --cached",
    "git diff main...HEAD",
    "git diff --stat -p",
    "git diff --word-diff",
    "git diff -- ':!README.md'",
    "git diff ':!README.md'",
    "git diff ':^README.md'",
    "git diff ':(exclude)README.md'",
    "git diff HEAD -- ':!README.md'",
    "git diff abc1234 -- src/a.py",
    "git diff abc1234 src/a.py",
    "git show abc1234 -- src",
    "git show 'ABC1234^{blob}' -- src",
    "git show v1.0-4-gabc1234 -- src",
    "git tag s abc1234",
    "git tag -a s -m x abc1234",
    "git show abc1234 src def5678",
    "git show $(git rev-parse abc1234) -- src",
    "git grep x abc1234 -- src",
    "git grep x ':!README.md'",
    "git log -p --full-diff -- src",
    "git log -p --stdin -- src < README.md",
    "git show --stdin -- src < README.md",
    "git log -p --stdin -- ':!*.key' < README.md",
    "git diff -- :/",
    "git diff HEAD~1 --",
    "git log -p",
    "git log -U5 -3",
    "git log --pat",
    "git log --cc",
    "git whatchanged -p",
    "git show",
    "git show HEAD~2",
    'git show "$SHA"',
    "git show HEAD HEAD:README.md",
    "git show :/fix",
    "git stash show -p",
    "git stash list -p",
    "git reflog -p",
    "git status -v",
    "git commit --dry-run -v",
    "git add -p",
    "git checkout -p",
    "git grep x",
    "git grep -n x HEAD",
    "git grep -e x HEAD",
    "git archive HEAD",
    "git format-patch --stdout main",
    "git cat-file -p abc123",
    "git -C src diff",
    "git worktree add copy",
    "git clone . copy",
    "cd src && git diff",
    "cd src && git diff -- :/",
    "cd src && git diff -- ':(top)private'",
    "git show HEAD -- '*/token'",
    "git show HEAD -- '**/token'",
    "git show HEAD -- 'priv?te/token'",
    "git grep x HEAD -- 'p*/token'",
    "git log -p -- '**/token'",
    "git show abc1234:token",
    "git show 'abc1234^{tree}:./token'",
    "git grep x abc1234:token",
    "git grep x abc1234:",
    "git diff HEAD..abc1234 -- token",
    "git diff abc1234.. -- token",
    "git diff def5678 ^abc1234 -- token",
    "git diff HEAD:src..abc1234 -- token",
    "git diff HEAD:src/a.py..abc1234:token",
    'for x in HEAD abc1234; do git show "$x" -- README.md; done',
    'for x in HEAD abc1234; do git diff HEAD.."$x" -- token; done',
    'for x in HEAD abc1234; do git diff "$x".. -- token; done',
    'for x in HEAD abc1234; do git diff def5678 ^"$x" -- token; done',
    'for x in HEAD abc1234; do git diff HEAD:src.."$x" -- token; done',
    'for x in HEAD abc1234; do git diff HEAD:src/a.py.."$x":token; done',
    'for x in HEAD abc1234; do git tag s "$x"; done',
    'git tag s "$(cat README.md)"',
    "git cat-file -p abc1234:token",
    "git push . abc1234:refs/tags/t",
    "git push . +HEAD:private:refs/tags/t",
    'git push . "+$(cat README.md):refs/tags/t"',
    'git push . "HEAD:$(cat README.md)"',
    'git push . "abc1234:refs/tags/$(cat README.md)"',
    'git push . "HEAD:private:refs/tags/$(cat README.md)"',
    "git push . HEAD:refs/tags/$(cat README.md)",
    'for x in HEAD abc1234; do git push . "$x:refs/tags/t"; done',
    'for x in HEAD HEAD:private; do git push . "+$x:refs/tags/t"; done',
    'git push . "$(git rev-parse abc1234):refs/tags/t"',
    "git push src main",
    "git push --repo=src main",
    "git push ./src main:x",
    "git rm --cached private/token",
    "git rm --cached -r .",
]


@pytest.mark.parametrize("command", PRINTING)
def test_nothing_is_printed_of_a_forbidden_file_that_is_tracked(
    decided: Policy, repository: Path, command: str
) -> None:
    (repository / "private").mkdir()
    (repository / "private/token").write_text("t")
    _git(repository, "add", "-A")
    # As it is now, it differs from what is in the index.
    (repository / "private/token").write_text("other")
    assert decided.decide("bash", {"command": command}).rule_id == "secrets"


@pytest.mark.parametrize(
    "command",
    [
        "git show [a]bc* -- README.md",
        'for x in HEAD [a]bc*; do git show "$x" -- README.md; done',
        "git tag s [a]bc*",
    ],
)
def test_a_file_may_be_called_as_an_object_is(decided: Policy, put: Put, repository: Path, command: str) -> None:
    put("abc1234")
    put("private/token")
    _git(repository, "add", "-A")
    assert decided.decide("bash", {"command": command}).rule_id == "secrets"


QUIET = [
    "git diff --stat",
    "git diff --name-only main...HEAD",
    "git diff --quiet",
    "git diff -s",
    "git diff src",
    "git diff HEAD -- src docs",
    "git diff -- 'src/*.py'",
    "git diff 'src/*.py'",
    "git log",
    "git log --oneline --stat -5",
    "git log -S needle --name-only",
    "git log -p -- src",
    "git log -p abc1234 -- src",
    "git show 'abc1234^{commit}' -- src",
    "git show abc1234~1 -- src",
    "git tag v1",
    "git tag v1 HEAD",
    "git tag -a v1 -m abc1234 'abc1234^{commit}'",
    "git tag --contains abc1234",
    "git log --full-diff --stat -- src",
    "git show $(git rev-parse HEAD) -- src",
    "git diff $(git merge-base main HEAD) -- src",
    "git log -p src/a.py",
    "git show --stat",
    "git show --name-only HEAD",
    "git show HEAD:README.md",
    "git show HEAD:src/a.py main:src/a.py",
    "git status",
    "git status --short",
    "git grep -l x",
    "git grep x -- src",
    "git grep -n x src docs",
    "git add -A",
    "git commit -m x",
    "git checkout main",
    "git blame src/a.py",
    "git cat-file -t HEAD",
    "git stash list",
    "git ls-files",
    "cd src && git diff -- a.py",
    "cd src && git diff -- :/docs",
    "git archive HEAD src",
    "git worktree list",
    "git show HEAD -- '*/a.py'",
    "git show abc1234:README.md",
    "git show $(git rev-parse HEAD):src/a.py",
    "git push",
    "git push origin main",
    "git push -u origin HEAD:main",
    'for x in HEAD main; do git show "$x" -- README.md; done',
    'for x in HEAD main; do git diff "$x"..v1.0 -- src; done',
    'for x in HEAD main; do git tag "on-$x" "$x"; done',
    'git push origin "$(git rev-parse HEAD):refs/heads/x"',
    'git push origin "$(git rev-parse --short HEAD)"',
    'git push origin "HEAD:refs/heads/$(cat README.md)"',
    'for x in main next; do git push origin "$x:$x"; done',
    "git symbolic-ref HEAD",
]


@pytest.mark.parametrize("command", QUIET)
def test_names_and_other_files_are_free(decided: Policy, repository: Path, command: str) -> None:
    (repository / "private").mkdir()
    (repository / "private/token").write_text("t")
    _git(repository, "add", "-A")
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize("command", ["git diff", "git log -p", "git show HEAD", "git grep x", "git stash show -p"])
def test_a_file_that_is_not_tracked_is_never_printed(decided: Policy, put: Put, command: str) -> None:
    put(".env")
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize("said", ["", ", because: stay out, instead: ask"])
def test_a_denial_says_that_the_file_is_tracked_and_how_to_leave_it_out(
    policy: MakePolicy, put: Put, repository: Path, said: str
) -> None:
    put(".env")
    _git(repository, "add", ".env")
    decided = policy(f'[{{id: a, allow: bash, command: "git **"}}, {{id: b, deny: read, path: .env{said}}}]')
    reason = decided.decide("bash", {"command": "git diff main"}).reason
    way_out = "because it is tracked: use --stat or --name-only, or name paths without it, as in -- src"
    assert f"reading {repository}/.env, {way_out}" in reason
    assert reason.endswith("Instead: ask") == bool(said)


def test_a_rule_need_not_reach_all_that_may_be_printed(policy: MakePolicy, repository: Path) -> None:
    decided = policy('- {id: diff, allow: bash, command: "git {diff,show,log} **", paths: "src/**"}')
    assert decided.decide("bash", {"command": "git diff"}).effect == "allow"


def test_an_index_that_cannot_be_read_means_every_file(decided: Policy, put: Put, repository: Path) -> None:
    put(".env")
    (repository / ".git/index").write_bytes(b"DIRC rubbish")
    assert decided.decide("bash", {"command": "git diff"}).rule_id == "secrets"


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_an_index_is_read(decided: Policy, put: Put, repository: Path, version: str) -> None:
    for number in range(40):
        put(f"src/long/name{number}.py")
    put("zz/server.key")
    put("zz/new")
    _git(repository, "add", "src", "zz/server.key")
    _git(repository, "add", "-N", "zz/new")
    _git(repository, "update-index", "--index-version", version)
    denial = decided.decide("bash", {"command": "git diff --cached"})
    assert denial.rule_id == "secrets"
    (repository / "zz/server.key").unlink()
    _git(repository, "add", "-u")
    assert decided.decide("bash", {"command": "git diff --cached"}).effect == "allow"


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("git ls-files '*.py' | xargs wc -l", "allow"),
        ("git ls-files src | xargs wc -l", "allow"),
        ("git ls-files -- '*.py' ':!docs' | xargs wc -l", "allow"),
        ("git ls-files | xargs wc -l", "deny"),
        ("git ls-files ':!docs' | xargs wc -l", "deny"),
        ("git ls-files '*' | xargs wc -l", "deny"),
        ("git ls-files '*.env' | xargs cat", "deny"),
        ("cd src && git ls-files .. | xargs cat", "deny"),
        ("cd src && git ls-files :/ | xargs cat", "deny"),
        ("cd src && git ls-files --full-name '*.py' | xargs cat", "allow"),
    ],
)
def test_the_names_that_git_lists_are_those_of_its_pathspecs(
    decided: Policy, put: Put, workspace: Workspace, command: str, effect: str
) -> None:
    put(".env")
    _git(workspace.root, "add", ".env")
    assert decided.decide("bash", {"command": command}).effect == effect


LISTING = [
    "git ls-files | xargs wc -l",
    "git ls-files . | xargs cat",
    "git ls-files -z | xargs -0 cat",
    "git ls-files '*' | xargs wc -l",
    "git ls-files | head -5 | xargs cat",
    "wc -l $(git ls-files)",
    "for f in $(git ls-files); do wc -l $f; done",
    'git ls-files | while IFS= read -r f; do wc -l "$f"; done',
    'git ls-files | while read -r f; do wc -l < "$f"; done',
    "git diff --name-only --diff-filter=d origin/main | xargs wc -l",
    "git diff --name-only --diff-filter=ACM HEAD~1 | xargs wc -l",
    "git diff --name-only | xargs cat",
    "cd src && git ls-files | xargs cat",
    "cd src && git diff --name-only | xargs cat",
]


@pytest.mark.parametrize("command", LISTING)
def test_a_file_that_git_does_not_track_is_not_among_the_names_that_it_lists(
    policy: MakePolicy, put: Put, repository: Path, command: str
) -> None:
    decided = policy(LISTED)
    put(".env")
    put("src/.env")
    put("node_modules/x/.env")
    assert decided.decide("bash", {"command": command}).effect == "allow"
    _git(repository, "add", "-f", ".env", "src/.env")
    assert decided.decide("bash", {"command": command}).rule_id == "secrets"


@pytest.mark.parametrize(
    "command",
    [
        "git ls-files -o | xargs cat",
        "git ls-files --others --exclude-standard | xargs cat",
        "git ls-files -c -o | xargs cat",
        "git ls-files --with-tree=HEAD~1 | xargs cat",
        "git add -A && git ls-files | xargs cat",
        "git stash pop; git ls-files | xargs cat",
        "make index; git ls-files | xargs cat",
        "git ls-files src | xargs make; git ls-files | xargs cat",
        "git ls-files | xargs grep -r x .",
        "git diff --name-only main | xargs cat",
        "git diff --name-only --diff-filter=A* main | xargs cat",
        "git diff --name-only --diff-filter=d main...HEAD | xargs cat",
        "git diff --name-only --diff-filter=d HEAD^! | xargs cat",
    ],
)
def test_what_may_name_other_files_than_the_index_is_denied(policy: MakePolicy, put: Put, command: str) -> None:
    put(".env")
    assert policy(LISTED).decide("bash", {"command": command}).effect == "deny"


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("make", ["link", "link to a folder", "second name", "repository"])
def test_a_tracked_name_that_leads_to_a_forbidden_file_is_seen(
    policy: MakePolicy, put: Put, workspace: Workspace, make: str
) -> None:
    secret, name = put("private/.env"), workspace.root / "src/a.py"
    if make == "link":
        name.unlink()
        name.symlink_to("../private/.env")
    elif make == "link to a folder":
        (workspace.root / "src/deep").rename(workspace.root / "gone")
        (workspace.root / "src/deep").symlink_to("../private")
    elif make == "second name":
        name.unlink()
        name.hardlink_to(secret)
    else:
        _git(workspace.root / "private", "init", "-q", ".")
        _git(
            workspace.root / "private", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x", "--allow-empty"
        )
        _git(workspace.root, "add", "private")
    assert policy(LISTED).decide("bash", {"command": "git ls-files | xargs cat"}).rule_id == "secrets"


def test_an_index_that_another_variable_names_is_not_read(policy: MakePolicy, put: Put, repository: Path) -> None:
    put(".env")
    decided = policy(LISTED, exported=frozenset({"GIT_INDEX_FILE"}))
    assert decided.decide("bash", {"command": "git ls-files | xargs cat"}).rule_id == "secrets"


@pytest.mark.parametrize("command", ["git checkout -- ':!docs'", "git restore ':!docs'", "git rm ':(exclude)docs'"])
def test_exclusions_alone_mean_everything_else(policy: MakePolicy, put: Put, repository: Path, command: str) -> None:
    decided = policy('- {id: undo, allow: bash, command: "git **", paths: "docs/**"}')
    assert decided.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize(
    "command",
    ["git show $(git rev-parse HEAD)", 'sha=$(git rev-parse HEAD); git diff "$sha"', "git log $(git rev-parse HEAD)"],
)
def test_a_commit_that_is_substituted_is_shown_as_no_file(policy: MakePolicy, command: str) -> None:
    decision = policy("[{id: a, allow: bash, command: 'git **'}]").decide("bash", {"command": command})
    assert decision.effect == "allow"
    assert "0" * 40 not in str(decision)
