"""Landlock: a process gives up rights for itself and all that it will start. Needs no privileges, and no program.

Numbers and structures are those of linux/landlock.h; docs.kernel.org/userspace-api/landlock.html explains them.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Final, TypeAlias

from ci_agent.json_types import JsonObject
from ci_agent.sandbox.openat2 import FOLLOW_NO_LINKS, openat2
from ci_agent.sandbox.seccomp import Filter, Refusal, build_filter, enter_filter

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_CHAR: Final = 1 << 6
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
MAKE_SOCK: Final = 1 << 9
MAKE_FIFO: Final = 1 << 10
MAKE_BLOCK: Final = 1 << 11
MAKE_SYM: Final = 1 << 12
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15

BIND_TCP: Final = 1 << 0
CONNECT_TCP: Final = 1 << 1

SCOPE_ABSTRACT_UNIX_SOCKET: Final = 1 << 0
SCOPE_SIGNAL: Final = 1 << 1

KEPT_CAPABILITIES: Final = 0x00000000A00405FB
"""What root keeps, as numbered in linux/capability.h: owners and modes of files, user ids, low ports, chroot. It is
Docker's default set without making device files and without raw sockets, which know no TCP ports."""

_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""All that can be granted on something that is no folder."""

_FILES_BY_ABI = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
_NETWORK_BY_ABI = {4: BIND_TCP | CONNECT_TCP}
_SCOPES_BY_ABI = {6: SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL}

_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture but alpha
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH, _RULE_NET_PORT = 1, 2
_AT_FDCWD = -100
_CAPABILITY_VERSION_3 = 0x20080522
_O_PATH: Final = getattr(os, "O_PATH", 0)

Grant: TypeAlias = tuple[str, int]
"""A path free of symlinks, and the accesses to it and to all beneath it."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """What is forbidden (all that is handled) but for what is granted. Accesses that are not handled are free."""

    grants: tuple[Grant, ...]
    handled_files: int
    handled_network: int = 0
    connect_ports: tuple[int, ...] = ()
    bind_ports: tuple[int, ...] = ()
    scopes: int = 0
    keeps_capabilities: bool = False
    """Whether root keeps all that it has."""
    refusals: tuple[Refusal, ...] = ()
    """What is refused beside it, by a filter of system calls."""


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class _NetPort(ctypes.Structure):
    _fields_ = [("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64)]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilityWord(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def abi() -> int:
    """The version that the running kernel offers; 0: none, or it is switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    version: int = _libc().syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return max(version, 0)


def handled_files(abi_version: int) -> int:
    """The accesses to files that this version can forbid."""
    return _up_to(abi_version, _FILES_BY_ABI)


def handled_network(abi_version: int) -> int:
    """The uses of TCP that this version can forbid."""
    return _up_to(abi_version, _NETWORK_BY_ABI)


def handled_scopes(abi_version: int) -> int:
    """The ways to reach processes outside that this version can close."""
    return _up_to(abi_version, _SCOPES_BY_ABI)


@dataclass(frozen=True, slots=True)
class Domain:
    """A ruleset that the kernel has taken and that holds nobody yet."""

    descriptor: int
    """To be closed by whoever has built it."""
    capabilities: "ctypes.Array[_CapabilityWord] | None"
    """What to keep of them; None: none are to be given up."""
    filter: Filter | None
    """What refuses system calls; None: none are refused."""


def restrict(ruleset: Ruleset) -> None:
    """Give up, for this thread and all that it starts, what the ruleset does not grant: `build`, then `enter`."""
    domain = build(ruleset)
    try:
        enter(domain)
    finally:
        os.close(domain.descriptor)


def build(ruleset: Ruleset) -> Domain:
    """Have the kernel take the ruleset; OSError when it does not.

    Done before a fork, for a process whose every page is copied when it is touched should do little. A path that is
    not there, or has become a link, is not granted.
    """
    libc = _libc()
    attributes = _RulesetAttributes(ruleset.handled_files, ruleset.handled_network, ruleset.scopes)
    descriptor: int = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    _checked(descriptor, "landlock_create_ruleset")
    try:
        for path, accesses in ruleset.grants:
            _grant_path(libc, descriptor, path, accesses & ruleset.handled_files)
        for port, access in _ports(ruleset):
            rule = _NetPort(access, port)
            _checked(libc.syscall(_ADD_RULE, descriptor, _RULE_NET_PORT, ctypes.byref(rule), 0), f"port {port}")
    except OSError:
        os.close(descriptor)
        raise
    capabilities = None if ruleset.keeps_capabilities else _capabilities_to_keep(libc)
    return Domain(descriptor, capabilities, build_filter(ruleset.refusals))


def grant_mounted(domain: Domain, ruleset: Ruleset, path: str) -> None:
    """Grant what the ruleset grants on this path once more, for something was mounted there after it had been built."""
    for granted, accesses in ruleset.grants:
        if granted == path:
            _grant_path(_libc(), domain.descriptor, path, accesses & ruleset.handled_files)


def enter(domain: Domain) -> None:
    """Be held to a ruleset, this thread and all that it starts; there is no way back.

    It is for a process of a single thread that is about to exec. Sets no_new_privs as well, so that no set-user-id
    program gives anything back, and leaves root those capabilities that a container has: with all of them there are
    ways around (since Linux 6.13 CAP_PERFMON reads any process's environment). Raises OSError when the kernel refuses,
    and then the process must not go on.
    """
    libc = _libc()
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if domain.capabilities is not None:
        header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
        _checked(libc.capset(ctypes.byref(header), domain.capabilities), "capset")
    _checked(libc.syscall(_RESTRICT_SELF, domain.descriptor, 0), "landlock_restrict_self")
    if domain.filter is not None:
        enter_filter(domain.filter)


def ruleset_as_json(ruleset: Ruleset) -> JsonObject:
    """For sending it to another process; `ruleset_from_json` reads it."""
    return {name: getattr(ruleset, name) for name in Ruleset.__slots__}


def ruleset_from_json(value: JsonObject) -> Ruleset:
    """The ruleset that `ruleset_as_json` wrote."""
    return Ruleset(
        grants=tuple((path, accesses) for path, accesses in value["grants"]),
        handled_files=value["handled_files"],
        handled_network=value["handled_network"],
        connect_ports=tuple(value["connect_ports"]),
        bind_ports=tuple(value["bind_ports"]),
        scopes=value["scopes"],
        keeps_capabilities=value["keeps_capabilities"],
        refusals=tuple(value["refusals"]),
    )


def _capabilities_to_keep(libc: ctypes.CDLL) -> "ctypes.Array[_CapabilityWord] | None":
    """Given up for good: under no_new_privs not even a program of root gains one by its exec."""
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    words = (_CapabilityWord * 2)()
    _checked(libc.capget(ctypes.byref(header), words), "capget")
    has_any = False
    for at, word in enumerate(words):
        has_any |= bool(word.permitted | word.inheritable)
        kept = KEPT_CAPABILITIES >> (32 * at) & 0xFFFFFFFF
        word.effective, word.permitted, word.inheritable = word.effective & kept, word.permitted & kept, 0
    return words if has_any else None


def _up_to(abi_version: int, by_abi: Mapping[int, int]) -> int:
    return reduce(or_, (bits for since, bits in by_abi.items() if since <= abi_version), 0)


def _ports(ruleset: Ruleset) -> list[tuple[int, int]]:
    wanted = [(port, CONNECT_TCP) for port in ruleset.connect_ports] + [(port, BIND_TCP) for port in ruleset.bind_ports]
    return [(port, access) for port, access in wanted if access & ruleset.handled_network]


def _grant_path(libc: ctypes.CDLL, ruleset: int, path: str, accesses: int) -> None:
    parent = _open_path(path)
    if parent is None:
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            accesses &= _OF_FILES
        if accesses:
            rule = _PathBeneath(accesses, parent)
            _checked(libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0), path)
    finally:
        os.close(parent)


def _open_path(path: str) -> int | None:
    """A descriptor that stands for the path; None when it is not there or leads through a link."""
    try:
        return openat2(_AT_FDCWD, os.fsencode(path), _O_PATH | os.O_CLOEXEC, FOLLOW_NO_LINKS)
    except OSError:
        return None


def _checked(result: int, what: str) -> None:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
