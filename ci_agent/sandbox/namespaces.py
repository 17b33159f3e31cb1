"""What the kernel keeps for processes beyond their lives, as a command's own: it goes with the command's last process.

Needs CAP_SYS_ADMIN, which root has on a machine and rarely in a container. A user namespace would give it to anybody,
and take too much: in it every file of another user, root's too, belongs to nobody, which ssh, for one, refuses. Numbers
are those of linux/sched.h and linux/mount.h.
"""

import ctypes
import sys
from functools import cache
from typing import Final

from ci_agent.sandbox.ruleset import SHARED_MEMORY

_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWIPC: Final = 0x08000000

_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 2, 4, 1 << 14, 1 << 19


def leave_shared_ipc() -> bool:
    """From now on System V shared memory, semaphores and queues, and POSIX message queues, are those of this process
    and of all that it starts; False where the kernel does not permit it."""
    return sys.platform == "linux" and bool(_libc().unshare(_CLONE_NEWIPC) == 0)


def take_own_shared_memory() -> bool:
    """The same for files in SHARED_MEMORY, which is empty then; False where the kernel does not permit it.

    Mounts of this process and of all that it starts are their own from now on; those of the machine still reach them.
    """
    if sys.platform != "linux" or _libc().unshare(_CLONE_NEWNS) != 0:
        return False
    if _libc().mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None) != 0:
        return False
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    return bool(_libc().mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", flags, b"mode=1777") == 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
