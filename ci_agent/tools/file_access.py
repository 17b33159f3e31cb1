"""Opening the very file that was permitted, whatever another process does to links meanwhile."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from ci_agent.errors import ToolError
from ci_agent.terminal import printable
from ci_agent.tools.beneath import EnterFolder, best_way_in, enter_folder
from ci_agent.workspace import InvalidPathError, Workspace, enters_kernel_folder, is_kernel_path

FileEffect: TypeAlias = Literal["list", "read", "write"]

Permits: TypeAlias = Callable[[FileEffect, Path], bool]
"""The policy's answer about one resolved path that is about to be opened. Called from several threads."""


class NotPermittedError(ToolError):
    """The policy refuses this one path."""


@dataclass(frozen=True, slots=True)
class FileAccess:
    """What a file tool needs to know: how paths are read, and which files it may open."""

    workspace: Workspace
    permits: Permits
    enter: EnterFolder = field(default_factory=best_way_in)

    def resolve(self, text: str) -> Path:
        """The one interpretation of the model's path; ToolError for text that is no path."""
        try:
            path = self.workspace.resolve(text)
        except InvalidPathError as error:
            raise ToolError(f"{error}. Give a plain path, relative to the workspace or absolute.") from error
        if enters_kernel_folder(self.workspace.root, text):
            raise _out_of_reach(printable(text))
        return path

    def require(self, effect: FileEffect, path: Path) -> None:
        """Ask the policy about a resolved path once more, now that it is about to be opened; ToolError for a no."""
        _refuse_kernel_folders(self, path)
        if not self.permits(effect, path):
            raise NotPermittedError(f"{self.show(path)} may not be {_DONE[effect]}: the policy does not allow it.")

    def show(self, path: Path) -> str:
        """The path for people and models: relative inside the workspace, invisible characters escaped."""
        return printable(self.workspace.display(path))


_DONE: dict[FileEffect, str] = {"list": "listed", "read": "read", "write": "written"}

_LIST_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe that took the file's place must not block the open.
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symlink",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFREG: "a file",
}


def kind_of(mode: int) -> str:
    """What a mode from `stat` describes, in words: `a named pipe`."""
    return _KINDS.get(stat.S_IFMT(mode), "something unknown")


@contextmanager
def open_file(files: FileAccess, path: Path, effect: FileEffect = "read") -> Iterator[BinaryIO]:
    """A regular file at a resolved path, to be read without a buffer; ToolError for anything else that is there.

    `effect` is what the policy is asked about: an edit opens a file for reading on its permission to write.
    """
    files.require(effect, path)
    with os_errors_explained(files, path, "cannot be read"):
        descriptor = _open_regular_file(files, path)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            yield file


@contextmanager
def open_folder(files: FileAccess, path: Path) -> Iterator[int]:
    """A descriptor of the folder at a resolved path, fit for listing it.

    Whoever begins there asks for the permission to list it; what lies beneath, no link leads out of.
    """
    _refuse_kernel_folders(files, path)
    with os_errors_explained(files, path, "cannot be listed"), enter_folder(path, files.enter) as folder:
        descriptor = os.open(".", _LIST_FOLDER, dir_fd=folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def os_errors_explained(files: FileAccess, path: Path, what: str) -> Iterator[None]:
    """Turn an OSError into a ToolError that says what failed, why, and what to do about it."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{files.show(path)} {what}: {_explain(error)}") from error


def _refuse_kernel_folders(files: FileAccess, path: Path) -> None:
    """No file tool opens what the kernel makes up on the fly: the environment of processes is among it."""
    if is_kernel_path(path):
        raise _out_of_reach(files.show(path))


def _out_of_reach(shown: str) -> ToolError:
    return ToolError(f"{shown} is out of reach: the file tools never open /proc, /sys or /dev.")


def _explain(error: OSError) -> str:
    reason = os.strerror(error.errno) if error.errno else str(error)
    advice = _ADVICE.get(error.errno or 0)
    return f"{reason}. {advice}" if advice else f"{reason}."


_ADVICE = {
    errno.ENOENT: "Look with ls or find.",
    errno.ENOTDIR: "One of the folders in the path is not a folder.",
    errno.ELOOP: "A symlink appeared in the path; try again.",
    errno.EACCES: "This user lacks the permission; choose another place.",
    errno.EPERM: "This user lacks the permission; choose another place.",
    errno.EROFS: "The file system is read-only; choose another place.",
    errno.ENAMETOOLONG: "Use shorter names: at most 255 bytes each.",
    errno.ENOSPC: "Free some space, or write less.",
    errno.EDQUOT: "Free some space, or write less.",
}


def _open_regular_file(files: FileAccess, path: Path) -> int:
    with enter_folder(path.parent, files.enter) as folder:
        # Looked at before it is opened, because opening a device can already do something.
        _require_regular_file(os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False), files, path)
        descriptor = os.open(path.name, _READ_FILE, dir_fd=folder)
    try:
        _require_regular_file(os.fstat(descriptor), files, path)
    except ToolError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular_file(status: os.stat_result, files: FileAccess, path: Path) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    shown = files.show(path)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{shown} is a folder, not a file: use ls.")
    if stat.S_ISLNK(status.st_mode):
        raise ToolError(f"{shown} became a symlink while it was being opened; try again.")
    raise ToolError(f"{shown} is {kind_of(status.st_mode)}, not a regular file; it is not opened.")
