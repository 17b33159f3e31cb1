"""seccomp: a process refuses system calls to itself and all that it will start, by a small program in the kernel.

Landlock knows TCP alone, and not all of it: MPTCP, UDP and a connection that is opened by its first data are no TCP
to it. So who may not use the network gets no socket that is not of this machine. Structures and numbers are those of
linux/filter.h, linux/seccomp.h and linux/audit.h; docs.kernel.org/userspace-api/seccomp_filter.html explains them.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeAlias

Refusal: TypeAlias = Literal["keyrings", "network", "processes"]
"""`keyrings`: what the kernel keeps for a user, for longer than any process lives. `network`: sockets other than of
this machine (unix, netlink), and io_uring, by which they could be had all the same. `processes`: setting limits and
priorities of another process than the one that asks, which Landlock lets everybody do to all processes of a user."""


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit_number: int
    keyrings: tuple[int, ...]
    """The numbers of add_key, request_key and keyctl."""
    socket: int
    schedulings: tuple[int, ...]
    """sched_setparam, sched_setscheduler, sched_setaffinity and sched_setattr."""
    prlimit: int
    setpriority: int
    ioprio_set: int
    socketcall: int | None = None
    """What it is for cannot be seen from outside."""


_IO_URING_SETUP: Final = 425  # the same on every architecture but alpha

_ARCHITECTURES: Final = {
    "x86_64": (
        _Architecture(0xC000003E, (248, 249, 250), 41, (142, 144, 203, 314), 302, 141, 251),
        # Programs of 32 bits.
        _Architecture(0x40000003, (286, 287, 288), 359, (154, 156, 241, 351), 340, 97, 289, socketcall=102),
    ),
    "aarch64": (
        _Architecture(0xC00000B7, (217, 218, 219), 198, (118, 119, 122, 274), 261, 140, 30),
        _Architecture(0x40000028, (309, 310, 311), 281, (154, 156, 241, 380), 369, 97, 314, socketcall=102),
    ),
}
"""By machine, those whose programs it runs. All are little-endian."""

_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
"""The number of the call itself, for programs of 64 bits."""

_X32_BIT: Final = 0x40000000
"""In the numbers of an interface of x86-64 that hardly a kernel has."""

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_ARGUMENTS_AT: Final = (16, 24, 32)
_UPPER_HALF: Final = 4
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000

_AF_UNIX, _AF_NETLINK = 1, 16
_PRIO_PROCESS, _PRIO_PGRP = 0, 1
_IOPRIO_WHO_PROCESS, _IOPRIO_WHO_PGRP = 1, 2

_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_WITHOUT_SLOWDOWN: Final = 1 << 2
"""SECCOMP_FILTER_FLAG_SPEC_ALLOW: old kernels slow every program with a filter down, for those that trust nothing."""

_Line: TypeAlias = tuple[int, int, int, int]
"""Operation, how many to skip when it holds and when it does not, operand."""


class _Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    ]


class Filter(ctypes.Structure):
    """A program that the kernel runs at every system call."""

    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction))]


@cache
def is_available() -> bool:
    """Whether this kernel takes filters, and this machine's system calls are known."""
    is_known = os.uname().machine in _ARCHITECTURES and sys.maxsize > 1 << 32
    if not sys.platform.startswith("linux") or not is_known:
        return False
    action = ctypes.c_uint32(_FAIL_WITH)
    return bool(_seccomp(_GET_ACTION_AVAIL, 0, ctypes.byref(action)) == 0)


@cache
def build_filter(refusals: tuple[Refusal, ...]) -> Filter | None:
    """What refuses these, for `enter_filter`; None: there is nothing to refuse. For a machine where it is available."""
    if not refusals:
        return None
    instructions = [_Instruction(*line) for line in _lines(_ARCHITECTURES[os.uname().machine], refusals)]
    return Filter(len(instructions), (_Instruction * len(instructions))(*instructions))


def enter_filter(program: Filter) -> None:
    """Be held to it, this thread and all that it starts; there is no way back.

    Needs no_new_privs. Raises OSError when the kernel refuses, and then the process must not go on.
    """
    if _seccomp(_SET_MODE_FILTER, _WITHOUT_SLOWDOWN, ctypes.byref(program)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "seccomp")


def _lines(architectures: Sequence[_Architecture], refusals: Sequence[Refusal]) -> Iterator[_Line]:
    yield _LOAD, 0, 0, _ARCHITECTURE_AT
    for architecture in architectures:
        body = list(_refuse(architecture, refusals))
        yield _JUMP_IF_EQUAL, 0, len(body), architecture.audit_number
        yield from body
    yield _RETURN, 0, 0, _FAIL_WITH | errno.ENOSYS


def _refuse(architecture: _Architecture, refusals: Sequence[Refusal]) -> Iterator[_Line]:
    yield _LOAD, 0, 0, _NUMBER_AT
    yield from _fail_if(_JUMP_IF_AT_LEAST, _X32_BIT, errno.ENOSYS)
    if "keyrings" in refusals:
        for number in architecture.keyrings:
            yield from _fail_if(_JUMP_IF_EQUAL, number, errno.EPERM)
    if "network" in refusals:
        yield from _fail_if(_JUMP_IF_EQUAL, _IO_URING_SETUP, errno.ENOSYS)
        if architecture.socketcall is not None:
            yield from _fail_if(_JUMP_IF_EQUAL, architecture.socketcall, errno.EACCES)
        yield from _judge(architecture.socket, _make_socket())
    if "processes" in refusals:
        for number in architecture.schedulings:
            yield from _judge(number, _of_itself())
        yield from _judge(architecture.prlimit, _limit_itself())
        yield from _judge(architecture.setpriority, _prioritise_itself(_PRIO_PROCESS, _PRIO_PGRP))
        yield from _judge(architecture.ioprio_set, _prioritise_itself(_IOPRIO_WHO_PROCESS, _IOPRIO_WHO_PGRP))
    yield _RETURN, 0, 0, _ALLOW


def _judge(number: int, lines: Sequence[_Line]) -> Iterator[_Line]:
    """These decide about this system call; each of them ends with a return."""
    yield _JUMP_IF_EQUAL, 0, len(lines), number
    yield from lines


def _make_socket() -> Sequence[_Line]:
    return (
        (_LOAD, 0, 0, _ARGUMENTS_AT[0]),
        (_JUMP_IF_EQUAL, 2, 0, _AF_UNIX),
        (_JUMP_IF_EQUAL, 1, 0, _AF_NETLINK),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EACCES),
        (_RETURN, 0, 0, _ALLOW),
    )


def _of_itself() -> Sequence[_Line]:
    """The process is the first argument, and 0 is the one that asks."""
    return (
        (_LOAD, 0, 0, _ARGUMENTS_AT[0]),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )


def _limit_itself() -> Sequence[_Line]:
    """As above, but that without a pointer to new limits, the third argument, those of all may be read."""
    return (
        (_LOAD, 0, 0, _ARGUMENTS_AT[0]),
        (_JUMP_IF_EQUAL, 5, 0, 0),
        (_LOAD, 0, 0, _ARGUMENTS_AT[2]),
        (_JUMP_IF_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _ARGUMENTS_AT[2] + _UPPER_HALF),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )


def _prioritise_itself(process: int, group: int) -> Sequence[_Line]:
    """The first argument says of what kind the second is: a process or a group, and no user with all processes."""
    return (
        (_LOAD, 0, 0, _ARGUMENTS_AT[0]),
        (_JUMP_IF_EQUAL, 1, 0, process),
        (_JUMP_IF_EQUAL, 0, 2, group),
        (_LOAD, 0, 0, _ARGUMENTS_AT[1]),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )


def _fail_if(operation: int, operand: int, error: int) -> Iterator[_Line]:
    yield operation, 0, 1, operand
    yield _RETURN, 0, 0, _FAIL_WITH | error


def _seccomp(operation: int, flags: int, argument: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(_SECCOMP[os.uname().machine], operation, flags, argument)
    return result
