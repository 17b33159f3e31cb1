"""Files that a run leaves its result in: found before it starts, since its commands may put links in their place."""

import errno
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_agent.cli.streams import PATIENCE_S, write_all
from ci_agent.errors import ConfigurationError
from ci_agent.transcript.document import replace_file

RESULTS: Final = {
    "transcript": "--transcript",
    "lock": "--lock",
    "answer_file": "--answer-file",
    "proposals": "--proposals",
}
"""Options that name a file which a run writes, besides those of `--report`, by their parameters' names."""

_READER_WITHIN_S = 10.0
"""How long a named pipe waits for somebody to open its other end."""


@dataclass(frozen=True, slots=True)
class Destination:
    given: Path
    path: Path
    """Where `given` led before the run; free of links."""
    in_place: os.stat_result | None
    """What is there and is written to as it is: a device, a pipe, a file in a folder that is not ours to change. None:
    a file is put there in one step."""


def find_destination(given: Path, what: str) -> Destination:
    """`what` names it in messages ("answer file"). ConfigurationError when it cannot be written, in whose words one
    would say it."""
    if str(given) == "-":
        problem = "it would be a file of that name and not stdout: write /dev/stdout, or another name"
        raise ConfigurationError(f"the {what} '-' is not written: {problem}")
    try:
        path, status = Path(os.path.realpath(given)), _status(given)
    except ValueError as error:
        raise ConfigurationError(f"the {what} {str(given)!r} cannot be written: {error}") from error
    is_plain = (stat.S_ISREG(status.st_mode) and not _is_of_the_system(given)) if status else _takes_files(path.parent)
    if is_plain and path.parent.is_dir() and os.access(path.parent, os.W_OK):
        return Destination(given, path, None)
    if status is None or stat.S_ISDIR(status.st_mode) or not os.access(given, os.W_OK):
        raise ConfigurationError(
            f"the {what} {str(given)!r} cannot be written: name a file in an existing folder that takes one"
        )
    return Destination(given, path, status)


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def put(destination: Destination, chunks: Iterable[str]) -> None:
    """Write it there and nowhere else; OSError when that is not possible any more."""
    if destination.in_place is None:
        replace_file(destination.path, chunks)
        return
    descriptor = _open(destination.given)
    try:
        if not os.path.samestat(os.fstat(descriptor), destination.in_place):
            raise OSError(0, "it is not what it was when the run began")
        if stat.S_ISREG(destination.in_place.st_mode) and not _is_of_the_system(destination.given):
            os.ftruncate(descriptor, 0)
        write_all(descriptor, "".join(chunks), PATIENCE_S)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Opened for writing. A pipe is not waited for without end, as an ordinary open would, when nobody reads it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    give_up_at = time.monotonic() + _READER_WITHIN_S
    while True:
        try:
            return os.open(path, flags)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() >= give_up_at:
                raise OSError(errno.ENXIO, "nobody reads it") from error
            time.sleep(0.05)


def _takes_files(folder: Path) -> bool:
    """The kernel says of its own folders that they can be written to, and makes nothing in them."""
    return folder.parts[1:2] not in (("proc",), ("sys",))


def _is_of_the_system(path: Path) -> bool:
    """`/dev/stdout` may lead to a file, with all that others have written there."""
    return path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",))
