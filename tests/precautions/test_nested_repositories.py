"""Repositories within the workspace whose configuration names programs: no command that the policy allows runs one."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.policy.call_access import folders_of_git, judge_again
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.precautions import git_folders
from ci_agent.precautions.repository_programs import NO_PROGRAMS, RepositoryPrograms, find_repository_programs
from ci_agent.process import Processes, child_environment, open_processes
from ci_agent.workspace import open_workspace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

RULES = """
policy: 1
rules:
  - id: all
    allow: bash
    command:
      - git status **
      - git diff **
      - git add **
      - git log **
      - git stash **
      - git checkout **
      - git commit **
      - git grep **
      - git submodule status **
      - git submodule update **
      - git submodule update --init
      - git submodule update --init --force
      - git submodule update --init --checkout
      - git submodule summary **
      - git ls-files **
      - git -C * status **
      - git -C * diff **
      - git -C * add **
      - git -C * log **
      - cd **
      - timeout **
      - env **
"""

ATTRIBUTES = "*.x diff=poison filter=poison merge=poison\n*.y diff=text\n"

POISON = """
[core]
    fsmonitor = "touch {canary}; false"
    hooksPath = .poison
    pager = "touch {canary}; cat"
    editor = "touch {canary}"
    sshCommand = "touch {canary}; false"
[diff]
    external = "touch {canary}; true"
[diff "poison"]
    command = "touch {canary}; true"
[diff "text"]
    textconv = "touch {canary}; cat"
[filter "poison"]
    clean = "touch {canary}; cat"
    smudge = "touch {canary}; cat"
    required = true
[filter "p2"]
    process = "touch {canary}; false"
[gpg]
    program = {script}
[log]
    showSignature = true
[credential]
    helper = "!touch {canary}; false"
[merge "poison"]
    driver = "touch {canary}; true"
[alias]
    st = "!touch {canary}"
"""

NESTED = [
    "git -C sub status",
    "git -C sub diff",
    "git -C sub add a.x",
    "git -C sub log -p",
    "git -C sub/deep status",
    "cd sub && git status",
    "cd sub && git diff",
    "cd sub && git add a.x && git commit -m x",
    "cd sub && git stash",
    "cd sub/deep && git diff",
    "cd sub/deep && git checkout -- ../a.x",
    "cd sub && timeout 9 git diff",
    "(cd sub && env git diff)",
]

AT_THE_TOP = [
    "git status",
    "git status --ignore-submodules=none",
    "git diff",
    "git diff --submodule=diff",
    "git diff --submodule=log",
    "git log -p --submodule=diff",
    "git add -A",
    "git commit -am x",
    "git stash",
    "git submodule status",
    "git submodule summary",
    "git submodule update",
    "git submodule update --init --force",
    "git submodule update --init --checkout",
    "git ls-files --recurse-submodules",
    "git grep --recurse-submodules one",
    "git checkout --recurse-submodules -f HEAD~1",
    "git checkout --recurse-submodules -f HEAD~0",
]


@pytest.fixture
def processes() -> Iterator[Processes]:
    with open_processes() as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return made(tmp_path / "ws")


@pytest.fixture
def policy(workspace: Path) -> Policy:
    return compile_policy(load_policy_source(None, text=RULES), open_workspace(workspace))


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def usual(tmp_path: Path) -> dict[str, str]:
    names = ("AUTHOR", "COMMITTER")
    who = {f"GIT_{name}_{what}": "a@b.invalid" for name in names for what in ("NAME", "EMAIL")}
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **who}
    return child_environment(own, list(who))


Run = Callable[[str], list[str]]


@pytest.fixture
def guilty(policy: Policy, workspace: Path, usual: dict[str, str], canary: Path, processes: Processes) -> Run:
    """Runs a command as a call would; names it if it let a poison out."""

    def run(command: str) -> list[str]:
        verdicts = judge_again(policy, {"command": command})
        assert verdicts is not None, f"denied: {command}"
        environment = find_repository_programs(folders_of_git(verdicts), usual, processes).environment(usual)
        for file in workspace.rglob("*.[xy]"):
            os.utime(file, (0, 0))  # or git has no reason to look at it
        bash(command, workspace, environment)
        was_there = canary.exists()
        canary.unlink(missing_ok=True)
        return [command] if was_there else []

    return run


def bash(command: str, folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, check=False, timeout=110
    )
    assert environment is not None or done.returncode == 0, done.stderr


def made(folder: Path) -> Path:
    """A repository with two commits and a change."""
    (folder / "deep").mkdir(parents=True)
    bash(
        f"""
        git init -q . && git config user.name a && git config user.email a@b.invalid
        printf '{ATTRIBUTES}' > .gitattributes
        for file in a.x b.y deep/c.x; do echo one > $file; done
        git add . && git commit -qm one
        echo two >> a.x; git commit -qam two
        echo three >> a.x; echo three >> b.y
        """,
        folder,
    )
    return folder


def poison(configuration: Path, canary: Path) -> None:
    script = canary.parent / "script.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n")
    script.chmod(0o755)
    with configuration.open("a") as file:
        file.write(POISON.format(canary=canary, script=script))
    hooks = configuration.parent / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "post-checkout", "pre-commit", "post-commit", "reference-transaction"):
        shutil.copy(script, hooks / name)


def with_submodule(workspace: Path, name: str = "sub") -> Path:
    """A submodule with a change; its `.git` folder."""
    source = made(workspace.parent / f"source-of-{name.replace('/', '-')}")
    bash(
        f"git -c protocol.file.allow=always submodule -q add {source} {name} && git commit -qam sub"
        f" && cd {name} && git config user.name a && git config user.email a@b.invalid"
        " && echo four >> a.x && git commit -qam four && echo five >> a.x && echo five >> b.y",
        workspace,
    )
    return workspace / ".git" / "modules" / name


def test_by_itself_git_runs_them(workspace: Path, canary: Path, usual: dict[str, str]) -> None:
    """A control: the poison is one, and the settings that every command gets do not take it away."""
    poison(made(workspace / "sub") / ".git" / "config", canary)
    bash("git -C sub diff", workspace, usual)
    assert canary.exists()


def test_attack_bring_a_repository_of_ones_own(workspace: Path, canary: Path, guilty: Run) -> None:
    poison(made(workspace / "sub") / ".git" / "config", canary)
    assert [command for each in NESTED for command in guilty(each)] == []


def test_attack_make_a_folder_a_worktree_of_a_repository_elsewhere(
    workspace: Path, tmp_path: Path, canary: Path, guilty: Run
) -> None:
    other = made(tmp_path / "other")
    bash(
        f"git stash -q; git worktree add -q {workspace / 'sub'} HEAD && git config extensions.worktreeConfig true",
        other,
    )
    (workspace / "sub" / "a.x").write_text("changed\n")
    poison(other / ".git" / "worktrees" / "sub" / "config.worktree", canary)
    assert [command for each in NESTED for command in guilty(each)] == []


def test_attack_name_them_for_a_worktree_in_the_repository_it_belongs_to(
    workspace: Path, tmp_path: Path, canary: Path, guilty: Run
) -> None:
    other = made(tmp_path / "other")
    bash(f"git stash -q; git worktree add -q {workspace / 'sub'} HEAD", other)
    (workspace / "sub" / "a.x").write_text("changed\n")
    poison(other / ".git" / "config", canary)
    assert [command for each in NESTED for command in guilty(each)] == []


@pytest.mark.parametrize("name", ["sub", "third_party/sub"])
def test_attack_configure_a_submodule(workspace: Path, canary: Path, guilty: Run, name: str) -> None:
    poison(with_submodule(workspace, name) / "config", canary)
    nested = [command.replace("sub", name) for command in NESTED]
    assert [command for each in [*AT_THE_TOP, *nested] for command in guilty(each)] == []


def test_a_submodule_does_run_them_by_itself(workspace: Path, canary: Path, usual: dict[str, str]) -> None:
    """A control."""
    poison(with_submodule(workspace) / "config", canary)
    bash("git diff --submodule=diff", workspace, usual)
    assert canary.exists()


def test_attack_configure_a_submodule_of_a_submodule(workspace: Path, canary: Path, guilty: Run) -> None:
    outer = with_submodule(workspace)
    with_submodule(workspace / "sub", "inner")
    poison(outer / "modules" / "inner" / "config", canary)
    assert [command for each in [*AT_THE_TOP, "cd sub && git status"] for command in guilty(each)] == []


def test_attack_configure_a_submodule_that_has_its_own_git_folder(workspace: Path, canary: Path, guilty: Run) -> None:
    """As one that was added by hand, without `.gitmodules`."""
    made(workspace / "sub")
    bash("git add sub && git commit -qm sub && echo more >> sub/b.y", workspace)
    poison(workspace / "sub" / ".git" / "config", canary)
    assert [command for each in AT_THE_TOP for command in guilty(each)] == []


def test_attack_leave_a_submodule_that_is_not_checked_out(workspace: Path, canary: Path, guilty: Run) -> None:
    poison(with_submodule(workspace) / "config", canary)
    bash("git commit -qam x && git submodule -q deinit -f sub", workspace)
    assert guilty("git submodule update --init") == []


@pytest.mark.parametrize(
    "condition", ["include", 'includeIf "onbranch:evil"', 'includeIf "hasconfig:remote.*.url:x://evil"', "INCLUDE"]
)
def test_attack_hide_them_in_a_file_that_is_included_later(
    workspace: Path, canary: Path, guilty: Run, condition: str
) -> None:
    sub = made(workspace / "sub")
    (sub / ".git" / "first").write_text("[include]\n\tpath = ../second\n")
    (sub / "second").write_text("")
    poison(sub / "second", canary)
    bash(f"git branch evil; printf '[{condition}]\\npath=first\\n' >> .git/config", sub)
    bash("git config remote.x.url x://evil", sub)
    assert guilty("cd sub && git checkout -f evil && git status && git diff HEAD~1") == []


def test_attack_change_the_configuration_while_the_run_goes_on(workspace: Path, canary: Path, guilty: Run) -> None:
    assert guilty("git status") == []
    poison(workspace / ".git" / "config", canary)
    assert guilty("git status; git diff; git add a.x") == []


def test_attack_break_the_repository_in_between(workspace: Path, canary: Path, guilty: Run) -> None:
    """Git passes over what is no repository, to the next one above."""
    poison(workspace / ".git" / "config", canary)
    (workspace / "deep" / ".git").mkdir()
    assert guilty("cd deep && git diff") == []
    (workspace / "deep" / ".git" / "HEAD").write_text("nothing")
    assert guilty("cd deep && git diff") == []


def test_attack_lead_to_it_by_a_link(workspace: Path, tmp_path: Path, canary: Path, guilty: Run) -> None:
    other = made(tmp_path / "other")
    poison(other / ".git" / "config", canary)
    (workspace / "sub").mkdir()
    shutil.copytree(other, workspace / "sub", dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    (workspace / "sub" / ".git").symlink_to(other / ".git")
    (workspace / "link").symlink_to("sub")
    assert guilty("cd link && git diff") == []
    assert guilty("git -C link diff") == []


def found_in(folder: Path, environment: dict[str, str], processes: Processes) -> RepositoryPrograms:
    return find_repository_programs([folder], environment, processes)


def test_plain_repositories_cost_no_program(workspace: Path, usual: dict[str, str], tmp_path: Path) -> None:
    """Git is not asked about them: here it could not be."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    environment = {**usual, "PATH": str(tmp_path / "bin")}
    made(workspace / "sub")
    with open_processes() as processes:
        assert found_in(workspace / "sub", environment, processes) == NO_PROGRAMS


def test_attack_bring_more_repositories_than_can_be_looked_through(
    workspace: Path, usual: dict[str, str], processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (workspace / ".git" / "modules" / f"m{number}" / "objects").mkdir(parents=True)
        (workspace / ".git" / "modules" / f"m{number}" / "HEAD").touch()
    assert found_in(workspace, usual, processes) == NO_PROGRAMS
    monkeypatch.setattr(git_folders, "MAX_REPOSITORIES", 10)
    with pytest.raises(ConfigurationError, match="git may use more repositories here than 10"):
        found_in(workspace, usual, processes)


def test_attack_bring_folders_without_end(workspace: Path, usual: dict[str, str], processes: Processes) -> None:
    modules = workspace / ".git" / "modules"
    modules.mkdir()
    (modules / "again").symlink_to(".")
    (modules / "and-again").symlink_to(".")
    started = time.process_time()
    with pytest.raises(ConfigurationError, match="too many folders to look through"):
        found_in(workspace, usual, processes)
    assert time.process_time() - started < git_folders.MAX_SEARCH_S


def test_attack_make_it_a_pipe(workspace: Path, usual: dict[str, str], processes: Processes) -> None:
    for path in ("sub/.git", "other/.git/config", "third/.git/index"):
        (workspace / path).parent.mkdir(parents=True)
        os.mkfifo(workspace / path)
        assert found_in(workspace / path.partition("/")[0], usual, processes) == NO_PROGRAMS


def test_attack_include_oneself(workspace: Path, usual: dict[str, str], processes: Processes) -> None:
    with (workspace / ".git" / "config").open("a") as file:
        file.write("[include]\npath = config\npath = ~/none\npath = ~nobody-here/x\npath\n[alias]\na = !x\n")
    assert found_in(workspace, usual, processes) == RepositoryPrograms({"alias.a": ""})


def test_attack_have_git_read_and_write_somewhere_else(
    workspace: Path, tmp_path: Path, usual: dict[str, str], processes: Processes
) -> None:
    sub = made(workspace / "sub")
    elsewhere = made(tmp_path / "elsewhere")
    for value in (str(elsewhere), "../../../elsewhere", "../..", "/"):
        bash(f"git --git-dir=.git config core.worktree {value}", sub)
        with pytest.raises(ConfigurationError, match="says that its files are elsewhere"):
            found_in(sub, usual, processes)
    assert found_in(workspace, usual, processes) == NO_PROGRAMS
    for value in (str(sub), ".."):
        bash(f"git --git-dir=.git config core.worktree {value}", sub)
        assert found_in(sub, usual, processes) == NO_PROGRAMS


def test_submodules_and_linked_worktrees_are_where_they_say(
    workspace: Path, tmp_path: Path, usual: dict[str, str], processes: Processes
) -> None:
    with_submodule(workspace)
    linked = tmp_path / "linked"
    bash(f"git worktree add -q {linked} HEAD && git config extensions.worktreeConfig true", workspace)
    bash(f"git config --worktree core.worktree {linked}", linked)
    for folder in (workspace, workspace / "sub", workspace / ".git", workspace / ".git" / "modules" / "sub", linked):
        assert found_in(folder, usual, processes) == NO_PROGRAMS
    bash("git submodule -q deinit -f sub", workspace)
    assert found_in(workspace, usual, processes) == NO_PROGRAMS
