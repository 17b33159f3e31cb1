import ctypes
import errno
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from ci_agent.sandbox import landlock, seccomp
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.landlock import SCOPE_SIGNAL, Ruleset, restrict
from ci_agent.sandbox.ruleset import ruleset_for, ruleset_without_sandbox
from ci_agent.sandbox.sandbox import Sandbox, find_sandbox
from ci_agent.sandbox.seccomp import Refusal

needs_filters = pytest.mark.skipif(
    not seccomp.is_available() or landlock.abi() < 6, reason="no filters for system calls are to be had here"
)

PF_INET, SOCK_STREAM = 2, 1


def error_of(refusals: tuple[Refusal, ...], call: Callable[[], int]) -> int:
    """The number of the error that a system call ends with, 0 for none, in a child that is refused these."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            restrict(Ruleset((), 0, scopes=SCOPE_SIGNAL, keeps_capabilities=True, refusals=refusals))
            os._exit(call())
        finally:
            os._exit(254)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def make_socket() -> int:
    try:
        socket.socket()
    except OSError as error:
        return error.errno or 255
    return 0


def call_as_32_bits(number: int, *arguments: int) -> int:
    """The error of a call by int 0x80, as programs of 32 bits enter the kernel; those of 64 may do so, too."""
    push_rbx, eax_is_first, ebx_is_second, swap_third_and_fourth = "53", "89f8", "89f3", "87d1"
    enter_kernel, pop_rbx, back = "cd80", "5b", "c3"
    steps = (push_rbx, eax_is_first, ebx_is_second, swap_third_and_fourth, enter_kernel, pop_rbx, back)
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("".join(steps)))
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * 4)
    result: int = function(ctypes.addressof(ctypes.c_char.from_buffer(code)))(number, *arguments)
    return max(-result, 0)


@needs_filters
def test_only_what_is_refused_fails() -> None:
    assert error_of((), make_socket) == 0
    assert error_of(("keyrings",), make_socket) == 0
    assert error_of(("network",), make_socket) == errno.EACCES
    assert error_of(("keyrings", "network"), make_socket) == errno.EACCES


def error_number(work: Callable[[], object]) -> int:
    try:
        work()
    except OSError as error:
        return error.errno or 255
    return 0


LIMITS = (0, resource.RLIM_INFINITY)
IDLE = os.SCHED_IDLE if sys.platform == "linux" else 0

TO_A_PROCESS: dict[str, Callable[[int], object]] = {
    "its limits": lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE, LIMITS),
    "its priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "the priority of its group": lambda pid: os.setpriority(os.PRIO_PGRP, pid and os.getpgid(pid), 19),
    "its scheduling": lambda pid: os.sched_setscheduler(pid, IDLE, os.sched_param(0)),
    "its parameters": lambda pid: os.sched_setparam(pid, os.sched_param(0)),
    "its processors": lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(0)),
    "its attributes": lambda pid: call(314, 274, pid, struct.pack("IIQiIQQQ", 48, 0, 0, 19, 0, 0, 0, 0), 0),
    "its priority with disks": lambda pid: call(251, 30, 1, pid, 2 << 13),
}


def call(on_x86_64: int, on_arm64: int, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": on_x86_64, "aarch64": on_arm64}[os.uname().machine]
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


@pytest.fixture
def victim() -> Iterator[int]:
    """A process that a command must leave alone, whose user it has."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process.pid
    process.kill()
    process.wait()


@needs_filters
@pytest.mark.parametrize("attack", TO_A_PROCESS.values(), ids=TO_A_PROCESS)
def test_attack_change_another_process(victim: int, attack: Callable[[int], object]) -> None:
    assert error_of((), lambda: error_number(lambda: attack(victim))) == 0
    assert error_of(("processes",), lambda: error_number(lambda: attack(victim))) == errno.EPERM
    assert error_of(("processes",), lambda: error_number(lambda: attack(0))) == 0


@needs_filters
def test_attack_change_all_processes_of_the_user() -> None:
    refused: tuple[Refusal, ...] = ("processes",)
    assert error_of(refused, lambda: error_number(lambda: os.setpriority(os.PRIO_USER, 0, 19))) == errno.EPERM
    assert error_of(refused, lambda: error_number(lambda: call(251, 30, 3, 0, 2 << 13))) == errno.EPERM


@needs_filters
def test_limits_of_others_may_be_read(victim: int) -> None:
    assert error_of(("processes",), lambda: error_number(lambda: resource.prlimit(victim, resource.RLIMIT_CORE))) == 0


@needs_filters
def test_attack_hide_new_limits_where_half_of_a_pointer_is_zero(victim: int) -> None:
    """At 4 GiB."""

    def attack() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        private, anonymous, fixed = 2, 0x20, 0x10
        at = libc.mmap(ctypes.c_void_p(1 << 32), 4096, 3, private | anonymous | fixed, -1, 0)
        assert at == 1 << 32
        call(302, 261, victim, resource.RLIMIT_CORE, ctypes.c_void_p(at), None)

    assert error_of((), lambda: error_number(attack)) == 0
    assert error_of(("processes",), lambda: error_number(attack)) == errno.EPERM


@needs_filters
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="int 0x80 is of x86-64")
def test_attack_call_the_kernel_as_a_program_of_32_bits() -> None:
    socket_call, socketcall = 359, 102
    if error_of((), lambda: call_as_32_bits(socket_call, PF_INET, SOCK_STREAM, 0)) != 0:
        pytest.skip("this kernel runs no programs of 32 bits")
    refused: tuple[Refusal, ...] = ("keyrings", "network")
    assert error_of(refused, lambda: call_as_32_bits(socket_call, PF_INET, SOCK_STREAM, 0)) == errno.EACCES
    assert error_of(refused, lambda: call_as_32_bits(socketcall, 1, 0, 0)) == errno.EACCES
    assert error_of(refused, lambda: call_as_32_bits(288, 0, -4, 0)) == errno.EPERM  # keyctl
    assert error_of(refused, lambda: call_as_32_bits(20, 0, 0, 0)) == 0  # getpid
    assert error_of(("processes",), lambda: call_as_32_bits(97, 0, os.getppid(), 19)) == errno.EPERM  # setpriority


@needs_filters
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is of x86-64")
def test_attack_call_the_kernel_by_the_numbers_of_x32() -> None:
    def make_socket_by_x32() -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        return 0 if libc.syscall(0x40000000 + 41, PF_INET, SOCK_STREAM, 0) >= 0 else ctypes.get_errno()

    assert error_of(("network",), make_socket_by_x32) == errno.ENOSYS


def test_who_may_use_the_network_is_refused_all_but_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "is_available", lambda: True)
    assert ruleset_for(Access(), 7).refusals == ("processes", "keyrings", "network")
    assert ruleset_for(Access(network=True), 7).refusals == ("processes", "keyrings")
    apart = ruleset_without_sandbox(7)
    assert apart is not None
    assert apart.refusals == ("processes",)


def test_a_system_without_filters_has_landlock_and_says_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "is_available", lambda: False)
    assert ruleset_for(Access(), 7).refusals == ()
    found = find_sandbox("auto", "", landlock_abi=7)
    assert found == Sandbox("landlock", abi=7, gap=found.gap)
    assert found.gap is not None
    assert "UDP, name servers, MPTCP" in found.gap


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("linux", "riscv64")])
def test_where_the_numbers_are_not_known_there_are_none(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("", "", "", "", machine)))
    assert seccomp.is_available.__wrapped__() is False
