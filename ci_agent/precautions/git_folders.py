"""Which repositories git may use that starts in some folder: those that the folder lies in, and their submodules.

Read from the files themselves: git would be asked hundreds of times, and for each command.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ci_agent.errors import ConfigurationError

MAX_REPOSITORIES: Final = 2_000
MAX_SEARCH_S: Final = 10.0
"""More are not looked through for one command: it is refused."""

_CHUNK_BYTES: Final = 1 << 20
_MAX_INDEX_CHUNKS: Final = 1_000
_MAX_LINK_BYTES: Final = 8_192

_SUBMODULE_MODE: Final = b"\0\0\xe0\0"
"""What a submodule's entry in an index holds (git's `index-format`): mode 160000 in four bytes."""


@dataclass(frozen=True, slots=True)
class Repository:
    folder: Path
    """Its `.git`, or that of a linked worktree; free of links."""
    top: Path | None
    """The folder whose `.git` leads to it; None: it was found by itself."""
    is_set_aside: bool = False
    """It is kept for a submodule that is perhaps not checked out; git sets its working tree before it uses it."""


ListSubmodules: TypeAlias = Callable[[Repository], Iterable[str]]
"""The paths of the submodules that an index names, relative to the top. May raise ConfigurationError."""


def repositories_in_reach(folders: Iterable[Path], list_submodules: ListSubmodules) -> Iterator[Repository]:
    """Each once. ConfigurationError when there are too many, or looking takes too long.

    `folders` are absolute. `list_submodules` is asked about those alone whose index may have any.
    """
    deadline = time.monotonic() + MAX_SEARCH_S
    seen: set[Repository] = set()
    waiting = list(_around(folders))
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        if len(seen) == MAX_REPOSITORIES or time.monotonic() > deadline:
            raise ConfigurationError(
                f"git may use more repositories here than {MAX_REPOSITORIES:,}, or more than can be looked through in "
                f"{MAX_SEARCH_S:g} seconds"
            )
        seen.add(found)
        yield found
        waiting += _absorbed(found)
        if found.top is not None and _may_have_submodules(found.folder):
            waiting += [inner for path in list_submodules(found) for inner in _at(found.top / path)]


def configuration_files(repository: Repository) -> list[Path]:
    """Where its own settings stand, whether these files are there or not."""
    common = _linked_text(repository.folder / "commondir")
    shared = repository.folder if common is None else _real(repository.folder / common)
    return [shared / "config", repository.folder / "config.worktree"]


def is_elsewhere(repository: Repository, work_tree: str) -> bool:
    """Whether `core.worktree` says that its files are where no `.git` leads back to it."""
    git_link = repository.folder / work_tree / ".git"
    return not repository.is_set_aside and _git_folder(Path(os.path.normpath(git_link))) != repository.folder


def _around(folders: Iterable[Path]) -> Iterator[Repository]:
    """Of all that they lie in and not of the innermost alone: what is broken git passes over."""
    looked_at: set[Path] = set()
    for folder in folders:
        for above in (folder, *folder.parents):
            if above in looked_at:
                break
            looked_at.add(above)
            yield from _at(above)


def _at(folder: Path) -> Iterator[Repository]:
    if os.path.lexists(folder / ".git"):
        yield Repository(_git_folder(folder / ".git"), folder)
    if os.path.lexists(folder / "HEAD") and os.path.lexists(folder / "objects"):
        yield Repository(_real(folder), None)


def _git_folder(path: Path) -> Path:
    """What `.git` means: a folder, or where a file says that it is, as in a worktree or a submodule."""
    text = _linked_text(path)
    return _real(path if text is None else path.parent / text.removeprefix("gitdir:").lstrip())


def _linked_text(path: Path) -> str | None:
    """The one line of a small file that names another place; None: it is no such file."""
    try:
        with open(path, "rb", opener=_open_waiting_for_nothing) as file:
            return os.fsdecode(file.read(_MAX_LINK_BYTES)).rstrip("\r\n").replace("\0", "")
    except OSError:
        return None


def _open_waiting_for_nothing(path: str, flags: int) -> int:
    """The file may be a pipe that nobody writes to."""
    return os.open(path, flags | os.O_NONBLOCK)


def _absorbed(repository: Repository) -> Iterator[Repository]:
    """Those that lie in another's folder, where git keeps submodules, checked out or not. Their names may have
    slashes."""
    waiting = [repository.folder / "modules"]
    for count in range(MAX_REPOSITORIES):
        if count == len(waiting):
            return
        for folder in _folders_in(waiting[count]):
            if os.path.lexists(folder / "HEAD"):
                yield Repository(_real(folder), None, is_set_aside=True)
            else:
                waiting.append(folder)
    raise ConfigurationError(f"{str(repository.folder / 'modules')!r} holds too many folders to look through")


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []


def _may_have_submodules(git_folder: Path) -> bool:
    return any(_holds_submodule_mode(path) for path in (git_folder / "index", *git_folder.glob("sharedindex.*")))


def _holds_submodule_mode(path: Path) -> bool:
    """So does a file that is too large to be looked through."""
    before = b""
    try:
        with open(path, "rb", opener=_open_waiting_for_nothing) as file:
            for _ in range(_MAX_INDEX_CHUNKS):
                data = file.read(_CHUNK_BYTES)
                if _SUBMODULE_MODE in before + data:
                    return True
                if not data:
                    return False
                before = (before + data)[1 - len(_SUBMODULE_MODE) :]
    except OSError:
        return False
    return True


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
