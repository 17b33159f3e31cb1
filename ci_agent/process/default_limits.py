"""How large a command may grow on this machine, when nobody says."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ci_agent.spawn.tree_limits import TreeLimits

MAX_PROCESSES = 1_000
PROCESSES_PER_CPU = 20
"""Whichever is more: a build starts a few for each."""

MEMORY_SHARE = 0.75
"""Of the machine's memory, or of what its container may use. The rest is for ci-agent and for what runs beside it."""

_KERNEL_REFUSES_AT = 4
"""Times the limit: what a bomb can reach before it is looked at again. To the kernel a thread counts as a process."""


def default_limits() -> TreeLimits:
    """Looks at the machine: to be called once for a run."""
    max_processes = max(MAX_PROCESSES, PROCESSES_PER_CPU * (os.cpu_count() or 1))
    return TreeLimits(
        max_processes=max_processes,
        max_memory_bytes=int(min(_memory_sizes()) * MEMORY_SHARE),
        max_user_processes=_max_user_processes(_KERNEL_REFUSES_AT * max_processes),
    )


def _memory_sizes() -> Iterator[int]:
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _cgroup_limits():
        with suppress(OSError, ValueError):  # there is none: the file is missing, or says "max"
            yield int(file.read_text())


def _cgroup_limits() -> Iterator[Path]:
    """Files that may hold a limit: of the own group and those around it, in both versions of the file system."""
    root = Path("/sys/fs/cgroup")
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            folder = root / group.lstrip("/") if not controllers else root / "memory" / group.lstrip("/")
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            if not controllers or "memory" in controllers.split(","):
                yield from (around / name for around in (folder, *folder.parents) if around.is_relative_to(root))


def _max_user_processes(more: int) -> int | None:
    """So many more than the user has now; the kernel counts the threads of all processes. None: cannot be known."""
    own = os.getuid()
    try:
        with os.scandir("/proc") as entries:
            processes = [entry for entry in entries if entry.name.isdigit()]
    except OSError:  # macOS, or no descriptor is free
        return None
    return more + sum(_threads(process, own) for process in processes)


def _threads(process: os.DirEntry[str], user: int) -> int:
    with suppress(OSError):  # it has ended
        if process.stat().st_uid == user:
            return len(os.listdir(f"{process.path}/task"))
    return 0
