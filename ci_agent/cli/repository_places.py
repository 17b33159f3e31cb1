"""Places in a checkout that no result of a run may take: one file written there breaks the repository, or runs."""

import os
from pathlib import Path
from typing import Final

import click

from ci_agent.policy.matchers.reach import fold_names
from ci_agent.policy.protected import GIT, WORKFLOWS

_PARTS_OF_A_REPOSITORY: Final = ("objects", "refs")
_PART_OF_A_WORKTREE: Final = "commondir"


def refuse_repository_place(path: str | Path, option: str) -> None:
    """Raise UsageError for a path that leads into a git folder, or among the workflows of GitHub, or is none."""
    try:
        problem = repository_place(path)
    except ValueError as error:
        raise click.UsageError(f"{option} is no path: {str(path)!r} ({error}).") from error
    if problem is not None:
        raise click.UsageError(f"{option} cannot go there: {path} {problem}. Name another place.")


def repository_place(path: str | Path) -> str | None:
    """What a path leads to that no result may take, as the end of a sentence; None: it may be taken.

    A git folder is known by its name, in any case, and by what it holds: that of a worktree or of a bare repository
    has any name, and a mounted file system may have other names for one.
    """
    place = Path(os.path.realpath(path))
    names = fold_names(tuple(name.rstrip(". ") or name for name in place.parts))
    folder = next((folder for folder in (place, *place.parents) if _is_git_folder(folder)), None)
    if GIT[0] in names or folder is not None:
        return "lies where git keeps a repository, which would be broken by it"
    if any(names[at : at + 2] == WORKFLOWS for at in range(len(names) - 1)):
        return "lies among the workflows, which GitHub runs"
    return None


def _is_git_folder(folder: Path) -> bool:
    if not os.path.lexists(folder / "HEAD"):
        return False
    return os.path.lexists(folder / _PART_OF_A_WORKTREE) or all(
        os.path.isdir(folder / name) for name in _PARTS_OF_A_REPOSITORY
    )
