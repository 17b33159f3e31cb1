"""What a process shows of the environment that it was started with, to every process of the same user."""

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from typing import TypeAlias

from ci_agent.secret_names import may_name_a_secret, password_in_url

MARKS = frozenset(
    {
        "BUILD_ID",
        "HUDSON_COOKIE",
        "HUDSON_SERVER_COOKIE",
        "JENKINS_NODE_COOKIE",
        "JENKINS_SERVER_COOKIE",
        "RUNNER_TRACKING_ID",
        "VSTS_PROCESS_LOOKUP_ID",
    }
)
"""By these a CI system finds the processes of a job that it has to end."""

_LOADER = ("LD_", "DYLD_")
"""The loader of musl keeps no copy of what these say."""

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_ENV_START, _ENV_END = 47, 48  # proc_pid_stat(5): fields 50 and 51, counted from the third

Span: TypeAlias = tuple[int, int]
"""Address and size."""

Entry: TypeAlias = tuple[int, bytes]
"""Address and text of a `NAME=value`."""


def withdraw_environment() -> dict[str, str]:
    """The environment that the process was started with; from now on nobody else can read it.

    The kernel keeps showing the memory in which a process found its environment (`/proc/PID/environ`, `ps -E`), so
    the values there are overwritten. Whatever may be a secret leaves `os.environ` too; the rest stays there, in memory
    of its own. To be called before there is a second thread.
    """
    given = dict(os.environ)
    for address, size in _values_at_start():
        ctypes.memset(address, 0, size)
    for name, value in given.items():
        if name and _is_overwritten(name):
            del os.environ[name]  # first: some libraries write a value of the same length where the old one stood
            if not _is_secret(name, value):
                os.environ[name] = value
    return given


def refuse_inspection() -> None:
    """Let no process without privileges read this one's memory (Linux), and leave no memory in a core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _is_secret(name: str, value: str) -> bool:
    # Options of our own are read from the environment later; what they name is no secret.
    return (may_name_a_secret(name) and not name.startswith("CI_AGENT_")) or password_in_url(value) is not None


def _is_overwritten(name: str) -> bool:
    return name not in MARKS and not name.startswith(_LOADER)


def _values_at_start() -> Iterator[Span]:
    """Where the values are that are to be overwritten."""
    for address, entry in _entries_of_kernel() or _entries_of_libc():
        name, equals, value = entry.partition(b"=")
        if _is_overwritten(os.fsdecode(name)):
            yield (address + len(name) + 1, len(value)) if equals else (address, len(name))


def _entries_of_kernel() -> list[Entry]:
    """What the kernel shows; empty where it does not say where that is."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return []
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    entries: list[Entry] = []
    for entry in ctypes.string_at(start, end - start).split(b"\0") if start else []:
        entries.append((start, entry))
        start += len(entry) + 1
    return entries


def _entries_of_libc() -> list[Entry]:
    """The same from the C library's own list, as long as nothing has been set or removed."""
    libc = ctypes.CDLL(None)
    if sys.platform == "darwin":
        libc._NSGetEnviron.restype = ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))
        addresses = libc._NSGetEnviron().contents
    else:
        addresses = ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ")
    entries: list[Entry] = []
    while (address := addresses[len(entries)]) is not None:
        entries.append((address, ctypes.string_at(address)))
    return entries
