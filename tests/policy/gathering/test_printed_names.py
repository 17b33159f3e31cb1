"""Words that are names of files which another command of the line prints: `$(git ls-files)`, `| while read -r f`."""

import subprocess
from pathlib import Path

import pytest

from ci_agent import Policy, load_policy

RULES = """
policy: 1
rules:
  - id: programs
    allow: bash
    command: ["{git,ls,cat,xargs,wc,head,cd,echo,find,rm,read,true,false,mv,cp,touch,mkdir,grep,sed,rg} **",
      "{basename,test,dirname,eval,env,sort,set,shopt,tr,sh,bash,ln,source,python,make,cut} **"]
    paths: [".", "**"]
    env: [IFS, LC_ALL, PATH, GIT_DIR]
  - {id: files, allow: write, path: "**"}
  - {id: secrets, deny: read, path: "**/.env"}
"""
LINES = (Path(__file__).parent / "printed_names.txt").read_text(encoding="utf-8")
ALLOWED, DENIED = (part.splitlines() for part in LINES.removeprefix("# Allowed\n").split("# Denied\n"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    for name in ("src/a.py", "src/b.py", "README.md", "sub/x.py", "list"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("text\n")
    (folder / ".env").write_text("secret\n")
    (folder / "outside.py").symlink_to("/etc/passwd")
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    return folder


@pytest.fixture(scope="module")
def policy(workspace: Path) -> Policy:
    return load_policy(text=RULES, workspace=workspace)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


@pytest.mark.parametrize("line", ALLOWED)
def test_names_that_lie_in_reach_are_files_like_others(line: str, policy: Policy) -> None:
    assert policy.decide("bash", {"command": line}).reason.startswith("Allowed")


@pytest.mark.parametrize("line", DENIED)
def test_what_may_be_another_name_is_denied(line: str, policy: Policy) -> None:
    assert policy.decide("bash", {"command": line}).effect == "deny"


@pytest.mark.parametrize(
    "name", ["a b.md", "a*.md", "a[b].md", "a'b.md", 'a"b.md', "a\\b.md", "\u00e9.md", "~a.md", "@a.md", "+a.md"]
)
def test_a_name_that_the_shell_would_change_is_no_word_of_a_list(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    policy = load_policy(text=RULES, workspace=tmp_path)
    for line in ("cat $(find . -name '*.md')", "for f in $(find . -name '*.md'); do cat \"$f\"; done"):
        assert policy.decide("bash", {"command": line}).effect == "deny"
    assert policy.decide("bash", {"command": "cat $(find . -name '*.txt')"}).effect == "allow"


def test_a_whole_line_may_hold_blanks(tmp_path: Path) -> None:
    (tmp_path / "a b.md").write_text("x")
    policy = load_policy(text=RULES, workspace=tmp_path)
    answers = {
        line: policy.decide("bash", {"command": line}).effect
        for line in (
            "find . -name '*.md' | while IFS= read -r f; do cat \"$f\"; done",
            "find . -name '*.md' | while read -r f; do cat \"$f\"; done",
            "find . -name '*.md' | while IFS= read -r f; do cat $f; done",
            "find . -name '*.md' | xargs -d '\\n' cat",
        )
    }
    assert list(answers.values()) == ["allow", "deny", "deny", "allow"]


def test_names_that_only_the_index_holds_count_too(tmp_path: Path) -> None:
    (tmp_path / "x .md").write_text("x")
    (tmp_path / "-v.txt").write_text("x")
    (tmp_path / "b.md").write_text("x")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    policy = load_policy(text=RULES, workspace=tmp_path)
    (tmp_path / "x .md").unlink()
    (tmp_path / "-v.txt").unlink()
    for line in ("cat $(git ls-files '*.md')", "git ls-files '*.md' | xargs cat", "git ls-files '*.txt' | xargs sort"):
        assert policy.decide("bash", {"command": line}).effect == "deny"
