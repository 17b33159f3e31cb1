"""Replacing a file in one step: whoever looks sees the old file or the new one, never a part."""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.tools.beneath import enter_folder
from ci_agent.tools.file_access import FileAccess, kind_of, os_errors_explained

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileVersion:
    """What tells one state of a file from another without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int


def version_of(status: os.stat_result) -> FileVersion:
    return FileVersion(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def write_atomically(
    files: FileAccess, path: Path, data: bytes, cancel: CancelToken, *, expected: FileVersion | None = None
) -> bool:
    """Put `data` at a resolved path; True when there was no file before. ToolError says why it could not be done.

    The new file is complete and on disk before it takes the old one's name. A file keeps its mode, and its owner
    where this user may give files away; a new one obeys the umask. Missing folders are created. A link is never
    followed: one that took the file's place is refused. Other hard links keep the old content.

    With `expected` the file must still be in that state, so that no one else's change is lost.
    """
    shown = files.show(path)
    files.require("write", path)
    if path.parent == path:
        raise ToolError(f"{shown} is a folder; give the path of a file.")
    with (
        os_errors_explained(files, path, "cannot be written"),
        enter_folder(path.parent, files.enter, create=True) as folder,
    ):
        before = _existing_file(path.name, folder, shown)
        if expected is not None and (before is None or version_of(before) != expected):
            raise ToolError(f"{shown} was changed by someone else meanwhile; read it again, then repeat the edit.")
        _replace(path.name, folder, data, before, cancel)
    return before is None


def _existing_file(name: str, folder: int, shown: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{shown} is a folder; give the path of a file in it.")
    if stat.S_ISLNK(status.st_mode):
        raise ToolError(f"{shown} became a symlink while it was being opened; try again.")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{shown} is {kind_of(status.st_mode)}; only regular files are written.")
    if os.fstatvfs(folder).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError(
            f"{shown} is read-only (mode {stat.S_IMODE(status.st_mode):04o}); leave it, or change its mode."
        )
    return status


def _replace(name: str, folder: int, data: bytes, before: os.stat_result | None, cancel: CancelToken) -> None:
    temporary = f".ci-agent-{os.urandom(16).hex()}.tmp"
    descriptor = os.open(temporary, _NEW_FILE, 0o666 if before is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            _write_all(file.fileno(), data, cancel)
            if before is not None:
                _take_over(file.fileno(), before)
            os.fsync(file.fileno())
        cancel.raise_if_cancelled()
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:  # a cancelled call leaves nothing behind either
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    _sync_folder(folder)


def _write_all(descriptor: int, data: bytes, cancel: CancelToken) -> None:
    rest = memoryview(data)
    while rest:
        cancel.raise_if_cancelled()
        rest = rest[os.write(descriptor, rest[: 1 << 20]) :]


def _take_over(descriptor: int, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode)
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # under another owner these bits would grant something else
    os.fchmod(descriptor, mode)


def _sync_folder(folder: int) -> None:
    """Make the new name durable. Some file systems and folders refuse; the content is on disk all the same."""
    try:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)
