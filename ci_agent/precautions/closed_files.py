"""Files that no program may read stay known while a run goes on, whatever they are called by then.

Landlock closes names. A program that may write a folder may rename or link what it may not read there; it cannot read
the new name itself, but the next call could.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from ci_agent.hooks import Decision, ProposedToolCall
from ci_agent.sandbox.access import MAX_FOLLOWED
from ci_agent.spelling import listed

MAX_FILES: Final = MAX_FOLLOWED
"""So many are looked at, and held open; what lies in closed folders comes last. Where there are more, the sandbox lets
no file be moved to another folder."""

_STANDS_FOR: Final = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens nothing that could be read, and follows the file wherever it is moved (Linux)."""


@dataclass(frozen=True, slots=True)
class _Held:
    descriptor: int
    links: int
    """How many names it had; 0 for a folder, which has one."""


@dataclass(slots=True)
class ClosedFiles:
    """Looks once before each call: calls that could move a file run one at a time."""

    places: tuple[Path, ...]
    """Free of symlinks; a folder stands for what is in it."""
    _held: dict[str, _Held] = field(default_factory=dict)
    _displaced: dict[str, None] = field(default_factory=dict)

    def displaced(self) -> list[Path]:
        """Those that have been moved or linked since they were first seen. Not those that were deleted or replaced."""
        for path, held in list(self._held.items()):
            if _is_gone(held):
                os.close(self._held.pop(path).descriptor)
            elif not _is_in_place(path, held):
                self._displaced[path] = None
        for path in islice(_files_of(self.places), MAX_FILES):
            self._hold(path)
        return list(map(Path, self._displaced))

    def before_tool_call(self, call: ProposedToolCall, /) -> Decision | None:
        """No call runs, and the run ends, when nobody can tell any more by which names such a file is read."""
        del call
        displaced = self.displaced()
        if not displaced:
            return None
        names = listed(list(map(str, displaced)))
        reason = f"a command moved or linked what no program may read, so no call can be held to that: {names}"
        return Decision("deny", "unparsable", reason, on_denied="stop")

    def release(self) -> None:
        while self._held:
            os.close(self._held.popitem()[1].descriptor)

    def _hold(self, path: str) -> None:
        if path in self._held:
            return
        with suppress(OSError):  # it is not there
            descriptor = os.open(path, _STANDS_FOR)
            status = os.fstat(descriptor)
            self._held[path] = _Held(descriptor, 0 if stat.S_ISDIR(status.st_mode) else status.st_nlink)


@contextmanager
def watch_closed_files(places: Iterable[Path]) -> Iterator[ClosedFiles]:
    """From how they are now."""
    with ExitStack() as stack:
        closed = ClosedFiles(tuple(places))
        stack.callback(closed.release)
        closed.displaced()
        yield closed


def _files_of(places: Iterable[Path]) -> Iterator[str]:
    """The places, then what is in them."""
    folders = []
    for place in places:
        yield str(place)
        if os.path.isdir(place):  # False for one that a command has closed to us, too
            folders.append(place)
    for folder in folders:
        for above, names, files in os.walk(folder):
            yield from (os.path.join(above, name) for name in (*names, *files))


def _is_gone(held: _Held) -> bool:
    return os.fstat(held.descriptor).st_nlink == 0


def _is_in_place(path: str, held: _Held) -> bool:
    is_linked = held.links and os.fstat(held.descriptor).st_nlink > held.links
    return not is_linked and os.readlink(f"/proc/self/fd/{held.descriptor}") == path
