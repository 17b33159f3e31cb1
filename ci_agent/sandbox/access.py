"""What one command may do to the machine, in words that every kind of sandbox understands."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

MAX_FOLLOWED: Final = 256
"""So many hidden files are followed when a command moves them; the others must not be moved to another folder."""


@dataclass(frozen=True, slots=True)
class Access:
    """Paths are absolute and free of symlinks; a folder stands for all beneath it. The rest may be read and run."""

    writable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Those of `writable` that are folders which are not there yet. Made before the command is confined, or else they
    cannot be written."""
    hidden: tuple[str, ...] = ()
    """What must not be read; only what is there counts."""
    readable: tuple[str, ...] = ()
    """What may be read although it lies in something hidden."""
    protected: tuple[str, ...] = ()
    """What must not be written although it lies in something writable. Bubblewrap holds it, Landlock cannot."""
    network: bool = False
    """It may use more of it than sockets within the machine."""

    def with_writable(self, path: str) -> "Access":
        """The same, and this may be written too."""
        return replace(self, writable=(*self.writable, path))


def may_be_there(path: str | os.PathLike[str]) -> bool:
    """Unlike `os.path.lexists`, True where a folder above is closed to this user, who may own it and open it again."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def places_to_hide(paths: Iterable[str]) -> Iterator[str]:
    """Those that are there; for one that cannot be looked at, the lowest folder above it that can."""
    for path in filter(may_be_there, paths):
        place = path
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        yield place


def hides_more_than_is_followed(access: Access) -> bool:
    """Whether there are too many hidden files where the command may write."""
    movable = [path for path in access.hidden if any(lies_in(path, place) for place in access.writable)]
    beneath = chain.from_iterable(map(_everything_in, movable))
    return bool(movable) and len(access.hidden) + sum(1 for _ in islice(beneath, MAX_FOLLOWED)) > MAX_FOLLOWED


def _everything_in(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:  # it is a file, or not there
        for entry in entries:
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                yield from _everything_in(entry.path)


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is the folder or something beneath it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
