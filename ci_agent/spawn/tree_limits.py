"""How large a command may grow with all that it starts."""

from collections.abc import Collection
from dataclasses import dataclass

from ci_agent.spawn.process_tree import Process

THREADS_PER_PROCESS = 10
"""On average over as many processes as there may be. To the kernel each thread is as good as a process."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    max_processes: int
    max_memory_bytes: int
    max_user_processes: int | None = None
    """Of all that the user runs, threads included, at which the kernel refuses more; None: as it was. Root has none."""


def exceeded(members: Collection[Process], limits: TreeLimits) -> str | None:
    """Which limit a tree is past, as the end of 'was killed: '; None: none."""
    living = [member for member in members if not member.is_zombie]
    if len(living) > limits.max_processes:
        return f"it had more than {limits.max_processes:,} processes"
    if sum(member.threads for member in living) > limits.max_processes * THREADS_PER_PROCESS:
        return f"it had more than {limits.max_processes * THREADS_PER_PROCESS:,} threads"
    if _use_more_than(limits.max_memory_bytes, living):
        return f"it used more than {_size(limits.max_memory_bytes)} of memory"
    return None


def _use_more_than(max_bytes: int, processes: Collection[Process]) -> bool:
    """What processes share counts for each of them in the first sum, which is cheap, and once in the second."""
    return (
        sum(process.resident_bytes for process in processes) > max_bytes
        and sum(map(_own_share_bytes, processes)) > max_bytes
    )


def _own_share_bytes(process: Process) -> int:
    """Resident memory, of which what is shared counts in parts; all of it where that is not told."""
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
            kib = next(line.split()[1] for line in file if line.startswith(b"Pss:"))
    except (OSError, StopIteration):
        return process.resident_bytes
    return int(kib) << 10


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
