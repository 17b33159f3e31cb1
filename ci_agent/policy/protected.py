"""What no wildcard may reach, whatever a rule says: repositories' own files, the record, the kernel, the runner."""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ci_agent.policy.disk import DiskBudget, Entry, walk
from ci_agent.policy.matchers.reach import Names, fold, fold_names, names_of
from ci_agent.policy.words import EVERYTHING, Selection
from ci_agent.workspace import KERNEL_FOLDERS, is_kernel_path, lies_in

Run: TypeAlias = Names
"""Folded names that follow one another in a path; a glob that spells them may reach it."""

GIT: Final[Run] = (".git",)
WORKFLOWS: Final[Run] = (".github", "workflows")

_LAST_NAMES: Final = frozenset({GIT[-1], WORKFLOWS[-1]})

_HEAD: Final = "HEAD"

_TELLING_NAMES: Final = _LAST_NAMES | {fold(_HEAD)}

_GIT_PARTS: Final = frozenset({"config", "config.worktree", "commondir", "hooks", "objects", "refs"})
"""What makes a folder that holds a HEAD a repository of its own, under whatever name, or says what git runs in it."""

_NEVER_READ: Final = frozenset(
    {"environ", "mem", "kmem", "kcore", "kmsg", "port", "auxv", "maps", "smaps", "pagemap", "syscall", "stack"}
    | {"fd", "fdinfo", "map_files", "root", "cwd", "exe"}
)
"""Names beneath the kernel's folders that open the memory, the environment or the files of a process."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies around a workspace and bears on decisions. All paths absolute and free of symlinks."""

    home: Path | None = None
    """Of the user who runs the tools; None: `~` is not known and what it names is denied."""
    records: tuple[Path, ...] = ()
    """The transcript, its journal and the lock of this run; nothing that a tool does may change them."""
    runner_files: tuple[Path, ...] = ()
    """What speaks to the CI runner: its folder of command files, and each of them; not there for tools."""
    exported: frozenset[str] = frozenset()
    """Names of variables in the environment of tools, beside those that are always special."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a rule would have to spell to reach a path, and why no rule can, if none can."""

    must_spell: frozenset[Run] = frozenset()
    sealed: str | None = None


FREE: Final = Guarded()


def guard_write(  # noqa: PLR0913 - half of them by name
    path: Path,
    workspace: Path,
    around: Surroundings,
    *,
    beneath: Iterable[Names] | None = None,
    by_tool: bool = False,
    deleted: bool = False,
    selection: Selection = EVERYTHING,
    budget: DiskBudget | None = None,
) -> Guarded:
    """For a path that is written or deleted.

    `beneath`: the names, relative to the path, that are meant as well; None: it is meant alone.
    `deleted`: that is all; what the file holds stays under its other names. `selection`: of what lies beneath.
    """
    sealed = _sealed_for_all(path, around, by_tool) or _at_stake(path, around, selection, whole=beneath is not None)
    if sealed is not None:
        return Guarded(sealed=sealed)
    inside = _below(path, workspace)
    runs = set(_runs_in(_as_elsewhere(inside))) | _kernel_run(path)
    for names in beneath or ():
        runs.update(_runs_in((*inside, *fold_names(names))))
        if names[-1] == _HEAD and ".git" not in (*inside, *fold_names(names)):
            runs.add((fold(_HEAD),))
    if ".git" not in inside:
        runs.update(_runs_of_bare_repository(path, inside))
    if inside[-1:] == WORKFLOWS[:1] and (deleted or not _holds_anything(path)):
        # Where it is gone, another folder may take its name, with content of which the disk knows nothing yet.
        runs.add(WORKFLOWS[:1])
    if not runs and not deleted:
        runs.update(_runs_by_second_link(path, workspace, budget or DiskBudget()))
    return Guarded(must_spell=frozenset(runs)) if runs else FREE


def guard_read(path: Path, around: Surroundings, *, recursive: bool = False, by_tool: bool = False) -> Guarded:
    """For a path that is read or listed."""
    if not (recursive or around.runner_files or is_kernel_path(path)):
        return FREE
    sealed = _sealed_for_all(path, around, by_tool)
    if sealed is not None:
        return Guarded(sealed=sealed)
    runs = _kernel_run(path)
    for file in around.runner_files:
        if lies_in(path, file) or (recursive and lies_in(file, path)):
            runs.add(fold_names(names_of(file)))
    if recursive and not names_of(path):
        runs.update((name,) for name in KERNEL_FOLDERS)
    return Guarded(must_spell=frozenset(runs)) if runs else FREE


UNKNOWN_NAMES: Final[tuple[Names, ...]] = (GIT, WORKFLOWS)
"""What may come to lie beneath a folder into which nobody knows what is put."""


def protected_beneath(folder: Path, budget: DiskBudget, *, deleted: bool = False) -> Iterator[Names]:
    """The names, relative to a folder, of what lies beneath it and may be protected.

    `deleted`: it is deleted with the folder, so that a HEAD makes no repository of it.
    """
    for above, listing in walk(folder, budget):
        if _TELLING_NAMES.isdisjoint(listing.names):
            continue
        for entry, name in zip(listing.entries, listing.names, strict=True):
            if name in _LAST_NAMES or (not deleted and _is_head(entry)):
                yield (*above, entry.name)


def _is_head(entry: Entry) -> bool:
    return entry.name == _HEAD and not entry.is_dir(follow_symlinks=False)


def _sealed_for_all(path: Path, around: Surroundings, by_tool: bool) -> str | None:
    if is_kernel_path(path) and (by_tool or any(name in _NEVER_READ for name in path.parts)):
        return "the kernel's folders are out of reach"
    if by_tool and any(lies_in(path, file) for file in around.runner_files):
        return "the CI runner's own files are out of reach"
    return None


def is_in_selection(names: Names, selection: Selection) -> bool:
    """Whether what lies at folded names beneath a path belongs to a selection, or may come with a folder that does."""
    return not selection.endings or any(name.endswith(selection.endings) for name in names)


def _at_stake(path: Path, around: Surroundings, selection: Selection, *, whole: bool) -> str | None:
    names = fold_names(names_of(path)) if around.records else ()
    for file in around.records:
        record = fold_names(names_of(file))
        below = record[: len(names)] == names and is_in_selection(record[len(names) :], selection)
        if names[: len(record)] == record or (whole and below):
            return "the policy and the record of the run are never written by a tool"
        if _same_file(file, path):
            return "it is another name of the policy or of the record of the run"
    if any(lies_in(path, file) or (whole and lies_in(file, path)) for file in around.runner_files):
        return "only the CI runner writes its own files"
    return None


def _same_file(left: Path, right: Path) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:
        return False


def _below(path: Path, workspace: Path) -> Names:
    """The folded names of a path, without those of the workspace that it lies in."""
    names, root = names_of(path), names_of(workspace)
    return fold_names(names[len(root) :] if names[: len(root)] == root else names)


def _as_elsewhere(names: Names) -> Names:
    """The folded names as file systems of other systems take them, which a mounted one may be."""
    return tuple(".git" if name == "git~1" else name.rstrip(". ") or name for name in names)


def _runs_in(names: Names) -> Iterator[Run]:
    if ".git" in names:
        yield GIT
    if any(names[at : at + 2] == WORKFLOWS for at in range(len(names) - 1)):
        yield WORKFLOWS


def _runs_of_bare_repository(path: Path, inside: Names) -> Iterator[Run]:
    """Any folder with a HEAD, objects and refs is a repository to git, which runs what its config and hooks say.

    So a HEAD is written by no wildcard, nor are the other parts beside one. On some systems a `Head` is one too; as it
    is a fair name for a folder, it counts only where the rest is.
    """
    if path.name == _HEAD or (inside[-1:] == (fold(_HEAD),) and _holds_git_parts(path.parent)):
        yield (fold(_HEAD),)
    for depth, name in enumerate(reversed(inside)):
        if name in _GIT_PARTS and os.path.lexists(path.parents[depth] / _HEAD):
            yield (name,)


def _holds_anything(path: Path) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _holds_git_parts(folder: Path) -> bool:
    return os.path.lexists(folder / "commondir") or all(os.path.isdir(folder / name) for name in ("objects", "refs"))


def _kernel_run(path: Path) -> set[Run]:
    return {(path.parts[1],)} if is_kernel_path(path) else set()


def _runs_by_second_link(path: Path, workspace: Path, budget: DiskBudget) -> Iterator[Run]:
    """A file with several links may be known under a protected name too, there or anywhere in the workspace."""
    try:
        status = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
        return
    for folder in path.parents:
        for run in (GIT, WORKFLOWS):
            if _holds(folder.joinpath(*run), path, status, budget):
                yield run
    for names in protected_beneath(workspace, budget):
        for run in _runs_in(fold_names(names)):
            if _holds(workspace.joinpath(*names), path, status, budget):
                yield run


def _holds(place: Path, file: Path, status: os.stat_result, budget: DiskBudget) -> bool:
    if not os.path.isdir(place):
        return _same_file(place, file)
    return any(
        entry.inode() == status.st_ino and _same_file(Path(entry.path), file)
        for _, listing in walk(place, budget)
        for entry in listing.entries
    )
