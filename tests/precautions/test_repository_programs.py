"""A repository whose configuration makes git run programs: none of them runs for a command of a tool."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.precautions.repository_programs import (
    MAX_PROGRAMS,
    NO_PROGRAMS,
    RepositoryPrograms,
    find_repository_programs,
)
from ci_agent.process import child_environment, open_processes

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

POISON = {
    "core.fsmonitor": "touch {canary}; false",
    "core.hooksPath": ".poison",
    "core.pager": "touch {canary}; cat",
    "pager.log": "touch {canary}; cat",
    "core.editor": "touch {canary}",
    "sequence.editor": "touch {canary}",
    "core.sshCommand": "touch {canary}; false",
    "core.askPass": "{script}",
    "credential.helper": "!touch {canary}; false",
    "credential.https://127.0.0.1.helper": "!touch {canary}; false",
    "diff.external": "touch {canary}; true",
    "diff.poison.command": "touch {canary}; true",
    "diff.poison.textconv": "touch {canary}; cat",
    "filter.poison.clean": "touch {canary}; cat",
    "filter.poison.smudge": "touch {canary}; cat",
    "filter.poison.process": "touch {canary}; false",
    "merge.poison.driver": "touch {canary}; true",
    "gpg.program": "{script}",
    "alias.st": "!touch {canary}",
    "trailer.x.cmd": "touch {canary}",
    "tar.x.command": "touch {canary}; cat",
    "interactive.diffFilter": "touch {canary}; cat",
    "core.gitProxy": "{script}",
    "remote.local.uploadpack": "touch {canary}; git-upload-pack",
    "remote.local.receivepack": "touch {canary}; git-receive-pack",
}

READS = [
    "git status",
    "git status --short",
    "git diff",
    "git diff HEAD~1",
    "git diff --stat HEAD~1",
    "git log -p",
    "git log --show-signature",
    "git show HEAD",
    "git show HEAD:a.x",
    "git blame a.x",
    "git grep -n one",
    "git ls-files -m",
    "git branch -a",
    "git stash list",
    "git describe --always",
    "git rev-parse HEAD",
    "git shortlog HEAD",
    "git diff-tree -p HEAD~1 HEAD",
    "git cat-file -p HEAD:a.x",
    "git st",
]

WRITES = [
    "git add a.x",
    "git commit -am more",
    "git stash",
    "git checkout -- a.x",
    "git merge --no-edit side",
    "git rebase -i HEAD~1",
    "git interpret-trailers --trailer 'x: y' a.x",
    "git archive --format=x HEAD",
    "git fetch ext",
    "git fetch ssh",
    "git push ssh",
    "git fetch proxied",
    "git fetch local",
    "git push local HEAD:refs/heads/new",
    "printf 'protocol=https\\nhost=127.0.0.1\\n\\n' | git credential fill",
    "git add -p < /dev/null",
]

HOOKS = ["post-index-change", "pre-commit", "post-checkout", "post-commit", "commit-msg", "reference-transaction"]


@pytest.fixture
def usual(tmp_path: Path) -> dict[str, str]:
    """What commands get where no repository has been looked at."""
    return child_environment({"PATH": os.environ["PATH"], "HOME": str(tmp_path)})


Poisoned = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def poisoned(tmp_path: Path) -> Poisoned:
    """Makes a repository with one poison, or with all; gives it, and the file that appears when one has run."""

    def make(key: str) -> tuple[Path, Path]:
        repository, canary, script = tmp_path / "work", tmp_path / "canary", tmp_path / "script.sh"
        script.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n")
        script.chmod(0o755)
        commands = [
            "git init -q . && git config user.name a && git config user.email a@b.invalid",
            "echo one > a.x; echo one > b; git add . && git commit -qm one",
            "git checkout -q -b side && echo side >> a.x && git commit -qam side && git checkout -q -",
            "echo two >> a.x; git commit -qam two",
            "echo '*.x diff=poison filter=poison merge=poison' > .gitattributes; git add . && git commit -qm three",
            "git remote add ext 'ext::sh -c touch% %c'; git config protocol.ext.allow always".replace(
                "%c", str(canary)
            ),
            "git clone -q --bare . ../local.git; git remote add local ../local.git",
            "git remote add proxied git://127.0.0.1:9/x",
            "git remote add ssh ssh://127.0.0.1:9/x; echo three >> a.x; echo three >> b",
            *(
                f"git config {name} {shlex.quote(value.format(canary=canary, script=script))}"
                for name, value in chosen(key)
            ),
        ]
        repository.mkdir()
        subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=repository, check=True, capture_output=True)
        (repository / ".poison").mkdir()
        for hook in HOOKS:
            shutil.copy(script, repository / ".poison" / hook)
        canary.unlink(missing_ok=True)
        return repository, canary

    return make


def chosen(key: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in POISON.items() if key in ("all", name)]


def found_in(folder: Path, environment: Mapping[str, str]) -> RepositoryPrograms:
    with open_processes() as processes:
        return find_repository_programs([folder], environment, processes)


def run_all(commands: list[str], folder: Path, environment: Mapping[str, str], canary: Path) -> list[str]:
    """The commands that let a poison out."""
    guilty = []
    for command in commands:
        os.utime(folder / "b", (0, 0))  # or git has no reason to look at the file
        subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, check=False, timeout=110
        )
        if canary.exists():
            guilty.append(command)
            canary.unlink()
    return guilty


@pytest.mark.parametrize("key", ["all", *POISON])
def test_no_program_of_a_poisoned_repository_runs(poisoned: Poisoned, usual: dict[str, str], key: str) -> None:
    repository, canary = poisoned(key)
    environment = found_in(repository, usual).environment(usual)
    commands = [*READS, *WRITES] if key == "all" else READS
    assert run_all(commands, repository, environment, canary) == []


def test_git_by_itself_does_run_them(poisoned: Poisoned, tmp_path: Path) -> None:
    """A control: the poison is one."""
    repository, canary = poisoned("all")
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    commands = [
        "git status",
        "git diff",
        "git blame a.x",
        "git st",
        "git fetch proxied",
        "git fetch local",
        "git push local",
    ]
    assert run_all(commands, repository, own, canary) == commands


def test_what_git_prints_stays_what_it_was(poisoned: Poisoned, usual: dict[str, str]) -> None:
    """Where there is something to put in a program's place, the commands work, as if it had not been there."""
    repository, _ = poisoned("filter.poison.clean")
    for name, value in chosen("diff.poison.textconv"):
        subprocess.run(["git", "config", name, value], cwd=repository, check=True)
    environment = found_in(repository, usual).environment(usual)
    done = subprocess.run(["git", "diff"], cwd=repository, env=environment, capture_output=True, text=True, check=True)
    assert "+three" in done.stdout


@pytest.mark.parametrize("name", ["git status", "git diff"])
def test_an_included_configuration_counts_too(poisoned: Poisoned, usual: dict[str, str], name: str) -> None:
    repository, canary = poisoned("nothing")
    (repository / ".git" / "more").write_text(f'[filter "poison"]\n\tclean = "touch {canary}; cat"\n')
    subprocess.run(["git", "config", "include.path", "more"], cwd=repository, check=True)
    programs = found_in(repository, usual)
    assert programs == RepositoryPrograms({"filter.poison.clean": ""})
    assert run_all([name], repository, programs.environment(usual), canary) == []


def test_git_lfs_and_what_the_person_has_configured_stay(tmp_path: Path, usual: dict[str, str]) -> None:
    (tmp_path / ".gitconfig").write_text('[diff "mine"]\n\ttextconv = mine\n[alias]\n\tst = status\n')
    repository = tmp_path / "work"
    commands = """
        git init -q .
        git config filter.lfs.clean 'git-lfs clean -- %f'
        git config filter.lfs.smudge 'git-lfs smudge -- %f'
        git config filter.lfs.process 'git-lfs filter-process'
        git config filter.lfs.required true
        git config submodule.x.update merge
    """
    repository.mkdir()
    subprocess.run(["bash", "-ec", commands], cwd=repository, check=True, capture_output=True)
    assert found_in(repository, usual) == NO_PROGRAMS
    subprocess.run(["git", "config", "filter.lfs.clean", "git-lfs clean -- %f; evil"], cwd=repository, check=True)
    subprocess.run(["git", "config", "submodule.x.update", "!evil"], cwd=repository, check=True)
    assert found_in(repository, usual) == RepositoryPrograms({"filter.lfs.clean": "", "submodule.x.update": "checkout"})


LARGE_FILES = {
    "lfs.extension.x.clean": "evil",
    "lfs.extension.x.smudge": "evil",
    "lfs.customtransfer.x.path": "evil",
    "lfs.standalonetransferagent": "x",
    "lfs.https://127.0.0.1/x.standalonetransferagent": "x",
}


def test_attack_have_git_lfs_run_something(tmp_path: Path, usual: dict[str, str]) -> None:
    """It reads git's configuration, this too, and is a program of the machine that may run."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for key, value in LARGE_FILES.items():
        subprocess.run(["git", "config", key, value], cwd=tmp_path, check=True)
    assert found_in(tmp_path, usual) == RepositoryPrograms(dict.fromkeys(LARGE_FILES, ""))


def test_a_hook_that_no_later_value_takes_back_is_refused(tmp_path: Path, usual: dict[str, str]) -> None:
    """Since git 2.42 `git gc`, which other commands start by themselves, runs all of them."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "config", "gc.recentObjectsHook", "evil"], cwd=tmp_path, check=True)
    with pytest.raises(ConfigurationError, match="names a program that nothing keeps git from running"):
        found_in(tmp_path, usual)


def test_the_usual_programs_of_a_remote_stay(tmp_path: Path, usual: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "config", "remote.x.uploadpack", "git-upload-pack"], cwd=tmp_path, check=True)
    assert found_in(tmp_path, usual) == NO_PROGRAMS


def test_outside_of_a_repository_there_is_nothing(tmp_path: Path, usual: dict[str, str]) -> None:
    assert found_in(tmp_path, usual) == NO_PROGRAMS
    assert found_in(tmp_path, {**usual, "PATH": str(tmp_path)}) == NO_PROGRAMS
    assert NO_PROGRAMS.environment(usual) == usual


def test_more_programs_than_can_be_kept_from_running_are_refused(tmp_path: Path, usual: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    lines = "".join(f'[filter "f{number}"]\n\tclean = evil\n' for number in range(MAX_PROGRAMS + 1))
    with (tmp_path / ".git" / "config").open("a") as file:
        file.write(lines)
    with pytest.raises(ConfigurationError, match="names more than 500 programs"):
        found_in(tmp_path, usual)
