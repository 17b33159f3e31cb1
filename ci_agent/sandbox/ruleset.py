"""An access becomes a Landlock ruleset, which knows grants alone: what is hidden is left out among its siblings."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from ci_agent.sandbox import landlock, seccomp
from ci_agent.sandbox.access import Access, hides_more_than_is_followed, lies_in, places_to_hide
from ci_agent.sandbox.landlock import Grant, Ruleset

MAX_ENTRIES: Final = 4_000
"""So many siblings of hidden files are looked at for one command; each costs the kernel a rule."""

_READ: Final = landlock.READ_FILE | landlock.READ_DIR | landlock.EXECUTE

_CHANGE: Final = (
    landlock.WRITE_FILE
    | landlock.TRUNCATE
    | landlock.REMOVE_DIR
    | landlock.REMOVE_FILE
    | landlock.MAKE_DIR
    | landlock.MAKE_REG
    | landlock.MAKE_SOCK
    | landlock.MAKE_FIFO
    | landlock.MAKE_SYM
    | landlock.REFER
)
"""All but making device files."""

_USE_DEVICE: Final = landlock.READ_FILE | landlock.WRITE_FILE | landlock.TRUNCATE | landlock.IOCTL_DEV

DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx"))
"""What programs open without a thought, and what keeps nothing."""

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the folder that the C library uses

TERMINALS: Final = "/dev/pts"

_DEVICE_FOLDER: Final = "/dev"


class TooManyEntriesError(Exception):
    """What is hidden has more siblings than the sandbox looks at."""


def ruleset_for(access: Access, abi: int) -> Ruleset:
    """The ruleset for one command, with all that this version of the interface can forbid.

    Names of files may be listed everywhere. Of `/dev` only the devices that every program needs are there.
    Raises TooManyEntriesError.
    """
    hidden = list(places_to_hide(access.hidden))
    grants: list[Grant] = [("/", landlock.READ_DIR)]
    grants += [(path, _READ) for path in _readable("/", [*hidden, _DEVICE_FOLDER])]
    grants += [(path, _USE_DEVICE) for path in DEVICES]
    if not terminals_of_others():
        grants.append((TERMINALS, _USE_DEVICE))
    grants.append((SHARED_MEMORY, _CHANGE | _READ))
    change = _CHANGE & ~landlock.REFER if hides_more_than_is_followed(access) else _CHANGE
    grants += [(path, change) for path in access.writable]
    grants += [(path, _READ) for path in access.readable]
    return Ruleset(
        grants=tuple(grants),
        handled_files=landlock.handled_files(abi),
        handled_network=0 if access.network else landlock.handled_network(abi),
        scopes=landlock.handled_scopes(abi),
        refusals=_refusals(access),
    )


def terminals_of_others() -> list[str]:
    """Terminals that this user may open: somebody's shell, or what a CI service makes a log of.

    Whoever opens one writes to it what no redaction has seen, and reads what is typed there. A command that makes a
    terminal of its own finds it beside them, so where there are any it gets none.
    """
    try:
        names = [name for name in os.listdir(TERMINALS) if name.isdigit()]
    except OSError:  # there is no such folder here
        return []
    paths = [os.path.join(TERMINALS, name) for name in names]
    return [path for path in paths if _may_open(path)]


def _may_open(terminal: str) -> bool:
    """Its owner may, whatever its mode is now: a command can close it, to be given it by the next call."""
    try:
        owner = os.stat(terminal).st_uid
    except OSError:  # it has gone
        return False
    return owner == os.geteuid() or os.access(terminal, os.R_OK) or os.access(terminal, os.W_OK)


def ruleset_without_sandbox(abi: int) -> Ruleset | None:
    """For a command that is in no sandbox: it may do all but signal, trace, look into or limit a process outside of its
    call, such as the one that keeps its time. None: this version of the interface cannot forbid that alone."""
    scopes = landlock.handled_scopes(abi) & landlock.SCOPE_SIGNAL
    if not scopes:
        return None
    refusals: tuple[seccomp.Refusal, ...] = ("processes",) if seccomp.is_available() else ()
    return Ruleset(grants=(), handled_files=0, scopes=scopes, keeps_capabilities=True, refusals=refusals)


def _refusals(access: Access) -> tuple[seccomp.Refusal, ...]:
    if not seccomp.is_available():
        return ()
    return ("processes", "keyrings") if access.network else ("processes", "keyrings", "network")


def _readable(top: str, hidden: Sequence[str]) -> list[str]:
    """The fewest paths that hold everything beneath the top but what is hidden."""
    readable: list[str] = []
    for path in _around(top, hidden):
        readable.append(path)
        if len(readable) > MAX_ENTRIES:
            raise TooManyEntriesError(f"there are more than {MAX_ENTRIES:,} files beside those that must not be read")
    return readable


def _around(folder: str, hidden: Sequence[str]) -> Iterator[str]:
    within = [path for path in hidden if lies_in(path, folder)]
    if not within:
        yield folder
        return
    if folder in within:
        return
    for path in _entries(folder):
        yield from _around(path, within)


def _entries(folder: str) -> list[str]:
    """What is in a folder, but for links: they are read as what they lead to, which has a rule of its own or none."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:  # whoever runs the command cannot look into it either
        return []
