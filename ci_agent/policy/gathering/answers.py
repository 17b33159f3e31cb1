"""What some commands print, looked up on the disk; and whether the call itself may make it something else."""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci_agent.json_types import parse_json
from ci_agent.policy.facts import ExecFact, Fact, possible_files_in
from ci_agent.policy.gathering.open_paths import may_meet
from ci_agent.policy.gathering.repositories import git_folder, is_repository, top_of
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.stale_paths import (
    base_name,
    changes_working_tree,
    checks_out_by_another_name,
    unpacked_into,
)
from ci_agent.policy.shell.program import Command, Question
from ci_agent.policy.shell.questions import new_branch
from ci_agent.policy.shell.static_words import word_set
from ci_agent.text_files import read_regular_file
from ci_agent.workspace import InvalidPathError

_DIRECTING: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES"})
_REFERENCE: Final = re.compile(r"ref: refs/heads/(?!.*(?:\.\.|@\{|//))([A-Za-z0-9][A-Za-z0-9_./@+#-]*)\n?")
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}\n?")
_MAX_BYTES: Final = 256_000
_VALUES: Final = {
    "version": re.compile(r"(?=.{1,60}$)v?[0-9]{1,8}(?:\.[0-9]{1,8}){0,3}(?:[-+.][0-9A-Za-z]+(?:[.+-][0-9A-Za-z]+)*)?"),
    "name": re.compile(r"(?=.{1,100}$)@?[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)?"),
}
"""What is told of a file: a decision may be shown to whoever may not read the file, and holds no more than this."""

_KEEP_BRANCH: Final = word_set(
    "add apply blame cat-file check-ignore cherry cherry-pick clean commit config describe diff diff-tree fetch "
    "for-each-ref format-patch grep log ls-files ls-remote ls-tree merge merge-base mv name-rev notes pull push remote "
    "reset restore rev-list rev-parse revert rm shortlog show show-ref status tag"
)
"""Git's commands after which the same branch is checked out, under the same name, or none."""
_MAKE_REPOSITORIES: Final = frozenset({"init", "clone", "worktree", "submodule"})
_REWRITE_MANIFESTS: Final = word_set(
    "npm pnpm yarn bun lerna nx npx poetry uv pdm hatch cargo composer standard-version semantic-release "
    "release-it bump2version bumpversion bump-my-version cz"
)

Asked = tuple[Question, Path, tuple[str, ...]]
"""A question, the file or folder that it is about, and its answer."""


def answer(site: Site, question: Question, folder: Path) -> Asked | None:
    """Every text that may be printed in the folder as the disk is now; None when that cannot be told."""
    if not _DIRECTING.isdisjoint(site.around.exported):
        return None
    if question.file:
        return _in_file(site, question, folder)
    top = top_of(folder)
    if top is None or not is_repository(top):
        return None
    if question.about == "top":
        return question, top, (str(top),)
    texts = _branch(top, shortened=question.about == "short branch")
    return (question, top, (*texts, *question.made)) if texts else None


def _branch(top: Path, *, shortened: bool) -> tuple[str, ...]:
    head = _text(git_folder(top) / "HEAD")
    match = _REFERENCE.fullmatch(head or "")
    if match is not None:
        # A rebase that stops half way leaves no branch checked out.
        return (match[1], f"heads/{match[1]}", "HEAD") if shortened else (match[1],)
    detached = head is not None and _COMMIT.fullmatch(head)
    return ("HEAD" if shortened else "",) if detached else ()


def _in_file(site: Site, question: Question, folder: Path) -> Asked | None:
    written = os.path.normpath(folder / question.file)
    try:
        path = site.workspace.resolve(question.file, start=folder)
    except InvalidPathError:
        return None
    text = _text(path) if str(path) == written and site.workspace.contains(path) else None
    value = _member(text, question.about) if question.file.endswith(".json") else text and text.removesuffix("\n")
    known = isinstance(value, str) and _VALUES[question.about].fullmatch(value)
    return (question, path, (value,)) if known and isinstance(value, str) else None


def _member(text: str | None, key: str) -> object:
    try:
        document = parse_json(text or "")
    except ValueError:
        return None
    return document.get(key) if isinstance(document, dict) else None


def _text(path: Path) -> str | None:
    """The content of a file that has one name alone."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size > _MAX_BYTES:
            return None
        return read_regular_file(path, _MAX_BYTES).decode()
    except (OSError, ValueError):
        return None


def is_stale(asked: Sequence[Asked], facts: Sequence[Fact]) -> bool:
    """Whether the call itself may change what it is told."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    branches = {text for question, _, texts in asked if "branch" in question.about for text in texts}
    abouts = {question.about for question, _, _ in asked}
    return (
        (bool(branches) and any(_may_move_head(command, branches) for command in commands))
        or _may_bring_repository({path for question, path, _ in asked if not question.file}, facts, commands)
        or ("top" in abouts and any(_git_command(command) in _MAKE_REPOSITORIES for command in commands))
        or any(_may_change(path, facts, commands) for question, path, _ in asked if question.file)
    )


def _git_command(command: ExecFact) -> str:
    name, _, subcommand = base_name(command).partition(" ")
    return subcommand if name == "git" else ""


def _may_move_head(command: ExecFact, known: set[str]) -> bool:
    subcommand, texts = _git_command(command), [word.literal for word in command.words]
    if checks_out_by_another_name(base_name(command), command):
        return True
    if base_name(command) != f"git {subcommand}" or subcommand in _KEEP_BRANCH:
        return False
    if subcommand == "stash":
        return "branch" in texts or None in texts
    if subcommand == "branch":
        return texts[2:] != ["--show-current"]
    if subcommand == "symbolic-ref":
        return texts[2:] != ["--short", "HEAD"]
    return new_branch(Command(command.words, (), (), "", (0, 0))) not in known


def _may_bring_repository(tops: set[Path], facts: Sequence[Fact], commands: Sequence[ExecFact]) -> bool:
    """Whether a folder may get a repository of its own, or lose the one that it has, or another HEAD."""
    if not tops:
        return False
    written = [file for file in possible_files_in(facts) if file.effect in ("write", "delete")]
    brings = (file for file in written if file.recursive and ".git" not in file.selection.without)
    return (
        any(file.effect == "write" or not all(_outlasts(top, file.path) for top in tops) for file in brings)
        or any(".git" in file.path.parts for file in written)
        or any(unpacked_into(base_name(command), command) for command in commands)
    )


def _outlasts(top: Path, deleted: Path) -> bool:
    """Whether a working tree is the same when a folder is gone: then it lies beneath its top or elsewhere, and neither
    `.git` nor what makes git believe it is a link to somewhere."""
    folder = top / ".git"
    held = [folder, *(folder / name for name in ("HEAD", "objects", "refs"))]
    is_whole = folder.is_dir() and not any(map(os.path.islink, held)) and not os.path.lexists(folder / "commondir")
    is_above = len(deleted.parts) <= len(top.parts) and may_meet(deleted, top)
    return is_whole and not is_above


def _may_change(path: Path, facts: Sequence[Fact], commands: Sequence[ExecFact]) -> bool:
    rewritten = any(base_name(command) in _REWRITE_MANIFESTS for command in commands)
    return rewritten or may_be_written(path, facts, commands)


def may_be_written(path: Path, facts: Sequence[Fact], commands: Sequence[ExecFact]) -> bool:
    """Whether anything that the call does may put other content at a path."""
    folders = {path, *path.parents}
    written = [file for file in possible_files_in(facts) if file.effect in ("write", "delete")]
    return (
        any(may_meet(file.path, path) or not folders.isdisjoint((file.path, file.written)) for file in written)
        or any(not folders.isdisjoint(unpacked_into(base_name(command), command)) for command in commands)
        or any(changes_working_tree(base_name(command), command) for command in commands)
    )
