"""Attacks by a program that the policy knows nothing of, each with a canary that must stay untouched or unseen."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_agent.sandbox import landlock, seccomp
from ci_agent.sandbox.sandbox import Sandbox

Place = Any  # tests/sandbox/conftest.py

CANARY = "canary-3f9c1d"

PYTHON = "python3 -c"


@pytest.fixture
def outside_file(place: Place) -> Path:
    written: Path = place.write(place.outside / "file.txt", "as it was")
    return written


WRITES = {
    "an interpreter opens the file": f"{PYTHON} \"open('$FILE', 'w').write('{CANARY}')\"",
    "through a symlink in the workspace": f'ln -s "$FILE" link; echo {CANARY} > link',
    "through a symlinked folder": f'ln -s "$(dirname "$FILE")" folder; echo {CANARY} > folder/file.txt',
    "by renaming a file over it": f'echo {CANARY} > mine; mv -f mine "$FILE"',
    "by renaming in one system call": f"echo {CANARY} > mine; {PYTHON} \"import os; os.rename('mine', '$FILE')\"",
    "by swapping it out": f"{PYTHON} \"import os; os.rename('$FILE', 'mine')\"",
    "by a hard link to it": f'ln "$FILE" mine; echo {CANARY} > mine',
    "by cutting it off": 'truncate -s 0 "$FILE"',
    "by cutting it off in one system call": f"{PYTHON} \"import os; os.truncate('$FILE', 0)\"",
    "through the process's own root": f'echo {CANARY} > "/proc/self/root$FILE"',
    "through the process's own folder": f'cd "$(dirname "$FILE")"; echo {CANARY} > /proc/self/cwd/file.txt',
    "through a descriptor that is opened again": f'exec 5< "$FILE"; echo {CANARY} > /proc/self/fd/5',
    "by deleting it": 'rm -f "$FILE"',
    "by deleting its folder": 'rm -rf "$(dirname "$FILE")"',
    "by mounting over it": 'echo mine > mine; mount --bind mine "$FILE"; unshare -Urm mount --bind mine "$FILE"',
    "from a process that outlives the command": f'(setsid bash -c "echo {CANARY} > $FILE" &) ; sleep 0.2',
    "by a set-user-id program": f'sudo -n sh -c "echo {CANARY} > $FILE"; su -c "echo {CANARY} > $FILE"',
}


@pytest.mark.parametrize("attack", WRITES.values(), ids=WRITES)
def test_attack_write_a_file_outside(place: Place, outside_file: Path, attack: str) -> None:
    place.run(attack, FILE=str(outside_file))
    assert outside_file.read_text() == "as it was"


NEW_THINGS = {
    "a file": 'echo x > "$NEW"',
    "a folder": 'mkdir "$NEW"',
    "a symlink": 'ln -s /etc/passwd "$NEW"',
    "a hard link": 'echo x > mine; ln mine "$NEW"',
    "a fifo": 'mkfifo "$NEW"',
    "a socket": f"{PYTHON} \"import socket; socket.socket(socket.AF_UNIX).bind('$NEW')\"",
    "a moved file": 'echo x > mine; mv mine "$NEW"',
    "a moved folder": 'mkdir mine; mv mine "$NEW"',
}


@pytest.mark.parametrize("attack", NEW_THINGS.values(), ids=NEW_THINGS)
def test_attack_put_something_new_outside(place: Place, attack: str) -> None:
    place.run(attack, NEW=str(place.outside / "new"))
    assert os.listdir(place.outside) == []


@pytest.mark.parametrize("device", ["c 1 3", "b 7 0"])
def test_attack_make_a_device_file(place: Place, device: str) -> None:
    ran = place.run(f"mknod device {device}")
    assert ran.status != 0
    assert os.listdir(place.workspace) == []


READS = {
    "plainly": 'cat "$SECRET"',
    "through a symlink": 'ln -s "$SECRET" link; cat link',
    "by a hard link": 'ln "$SECRET" mine && cat mine',
    "by moving it into the workspace": 'mv "$SECRET" mine; cat mine',
    "by moving its folder into the workspace": 'mv "$(dirname "$SECRET")" mine; cat mine/*',
    "through the process's own root": 'cat "/proc/self/root$SECRET"',
    "by running it": '"$SECRET"; . "$SECRET"; bash "$SECRET"',
    "by a mapping": f"{PYTHON} \"import mmap, os; f = os.open('$SECRET', os.O_RDWR); print(mmap.mmap(f, 0)[:])\"",
    "by an archive of the whole home": 'tar cf - "$HOME"',
    "by mounting its folder elsewhere": "mkdir m; unshare -Urm sh -c 'mount --bind $HOME m; cat m/.ssh/id_rsa'",
}


@pytest.mark.parametrize("attack", READS.values(), ids=READS)
def test_attack_read_a_key_in_the_home_folder(place: Place, attack: str) -> None:
    secret = place.write(place.home / ".ssh" / "id_rsa", f"#!/bin/sh\necho {CANARY}\n")
    secret.chmod(0o700)
    access = place.access(writable=(str(place.workspace), str(place.temporary), str(place.home)))
    ran = place.run(attack, access, SECRET=str(secret))
    assert CANARY not in ran.text


@pytest.mark.parametrize("attack", READS.values(), ids=READS)
def test_attack_read_a_denied_file_of_the_workspace(place: Place, attack: str) -> None:
    secret = place.write(place.workspace / "conf" / "secret.env", f"echo {CANARY}\n")
    ran = place.run(attack, place.access(hidden=(str(secret),)), SECRET=str(secret))
    assert CANARY not in ran.text


def test_attack_close_a_folder_so_that_the_next_call_may_open_it(place: Place) -> None:
    """Whoever cannot look into the home folder does not see that there is a key in it."""
    secret = place.write(place.home / ".ssh" / "id_rsa", CANARY)
    access = place.access(writable=(str(place.workspace), str(place.temporary), str(place.home)))
    assert place.run('chmod 0 "$HOME"', access).status == 0
    ran = place.run('chmod 755 "$HOME"; cat "$SECRET"', access, SECRET=str(secret))
    place.home.chmod(0o755)  # bubblewrap does not let it be opened again, nor could the folder be removed
    assert CANARY not in ran.text
    assert ran.status != 0


def test_attack_find_a_key_in_the_environment_of_any_process(place: Place) -> None:
    # Whoever runs the tests has it in the environment, as a shell above ci-agent may have the key of a model.
    holder = subprocess.Popen(["sleep", "60"], env={"MODEL_KEY": CANARY}, user=place.user)
    try:
        ran = place.run(
            "cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ 2>/dev/null | tr '\\0' '\\n'", SEEN="mine"
        )
    finally:
        holder.kill()
        holder.wait()
    assert "SEEN=mine" in ran.text  # it looked
    assert CANARY not in ran.text


def test_attack_read_the_memory_of_a_process_outside(place: Place) -> None:
    holder = subprocess.Popen(["sleep", "60"], user=place.user)
    try:
        ran = place.run(f"cat /proc/{holder.pid}/maps; head -c 1 /proc/{holder.pid}/mem; ls -l /proc/{holder.pid}/fd/")
    finally:
        holder.kill()
        holder.wait()
    assert ran.status != 0
    assert "heap" not in ran.text


PTRACE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
for request in (PTRACE_ATTACH, PTRACE_SEIZE):
    print(libc.ptrace(request, int(sys.argv[1]), 0, 0))
"""


def test_attack_trace_a_process_outside(place: Place) -> None:
    holder = subprocess.Popen(["sleep", "60"], user=place.user)
    try:
        ran = place.run(f"python3 - {holder.pid} <<'END'\n{PTRACE}\nEND")
        assert ran.text == "-1\n-1\n"
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait()


def test_attack_kill_a_process_outside(place: Place) -> None:
    if place.sandbox.kind == "landlock" and (place.sandbox.abi or 0) < 6:
        pytest.skip("this version of Landlock does not keep signals in")
    victim = subprocess.Popen(["sleep", "60"], user=place.user, start_new_session=True)
    try:
        pid = victim.pid
        ran = place.run(
            f"kill -9 {pid}; kill -9 -- -{pid}; kill -STOP {pid}; kill -9 {os.getpid()}; kill -9 {os.getppid()}"
        )
        assert ran.status != 0
        with pytest.raises(subprocess.TimeoutExpired):
            victim.wait(0.2)
    finally:
        victim.kill()
        assert victim.wait() == -signal.SIGKILL


@pytest.fixture
def server() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        yield listening


CONNECT = "import socket; s = socket.create_connection(('127.0.0.1', {port}), 2); s.sendall(b'" + CANARY + "')"


def test_attack_connect_without_a_grant(place: Place, server: socket.socket) -> None:
    port = server.getsockname()[1]
    ran = place.run(f'{PYTHON} "{CONNECT.format(port=port)}"; echo {CANARY} > /dev/tcp/127.0.0.1/{port}')
    assert ran.status != 0
    with pytest.raises(TimeoutError):
        server.accept()


WAYS_TO_SEND = {
    "by TCP": "s = socket.socket(); s.connect(AT); s.sendall(CANARY)",
    "by MPTCP, which becomes TCP where a server knows no better": (
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(AT); s.sendall(CANARY)"
    ),
    "by data that opens its connection": "s = socket.socket(); s.sendto(CANARY, socket.MSG_FASTOPEN, AT)",
    "by UDP": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(CANARY, AT)",
    "by UDP that is connected": "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect(('::1', PORT))",
    "by waiting on a port that the kernel chooses": "socket.socket().listen()",
    "by a socket of the host of a virtual machine": "socket.socket(40, socket.SOCK_STREAM)",
    "by raw packets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "by a ping": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)",
    "by a socket of the kernel's ciphers": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "by io_uring": (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True); ring = ctypes.create_string_buffer(256)\n"
        "if libc.syscall(425, 4, ring) < 0: raise OSError(ctypes.get_errno(), 'io_uring_setup')"
    ),
}
"""Each raises OSError where it does not work."""


@pytest.fixture(params=["self", "nobody"])
def filtered(request: pytest.FixtureRequest, make_place: Any) -> Place:
    """Under Landlock: bubblewrap gives a command a network of its own, where it may do what it likes."""
    if request.param == "nobody" and os.getuid() != 0:
        pytest.skip("only root can become another user")
    if landlock.abi() == 0 or not seccomp.is_available():
        pytest.skip("this kernel offers no Landlock, or no filters for system calls")
    user = 65534 if request.param == "nobody" else os.getuid()
    return make_place(Sandbox("landlock", abi=landlock.abi()), user)


@pytest.mark.parametrize("attack", WAYS_TO_SEND.values(), ids=WAYS_TO_SEND)
def test_attack_send_something_without_a_grant(filtered: Place, server: socket.socket, attack: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(server.getsockname())
        listening.setblocking(False)
        filtered.write(
            filtered.workspace / "attack.py", f"import socket, sys\n{facts_of(server)}{attack}\nprint('it works')\n"
        )
        ran = filtered.run("python3 attack.py")
        with pytest.raises(BlockingIOError):
            listening.recv(100)
    assert "it works" not in ran.text
    with pytest.raises(TimeoutError):
        server.accept()


def facts_of(server: socket.socket) -> str:
    port = server.getsockname()[1]
    return f"PORT, AT, CANARY = {port}, ('127.0.0.1', {port}), b'{CANARY}'\n"


def test_with_a_granted_network_other_things_than_tcp_can_be_sent(place: Place, server: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(server.getsockname())
        listening.settimeout(5)
        place.write(place.workspace / "send.py", f"import socket\n{facts_of(server)}{WAYS_TO_SEND['by UDP']}\n")
        ran = place.run("python3 send.py", place.access(network=True))
        assert ran == type(ran)(0, "")
        assert listening.recv(100).decode() == CANARY


LEAVE_IN_A_KEYRING = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for ring in (-3, -4, -5):  # of the session, of the user, of the user's sessions
    added = libc.syscall({add_key}, b"user", b"{name}", b"x", ctypes.c_size_t(1), ctypes.c_int(ring))
    print(added, ctypes.get_errno())
"""


def test_attack_leave_something_in_the_keyrings_of_the_kernel(filtered: Place) -> None:
    """They outlive every process, and hold the keys of whoever uses them."""
    add_key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
    name = f"{CANARY}-{os.getpid()}"
    filtered.write(filtered.workspace / "attack.py", LEAVE_IN_A_KEYRING.format(add_key=add_key, name=name))
    ran = filtered.run("python3 attack.py")
    assert ran == type(ran)(0, "-1 1\n" * 3)


@pytest.fixture
def terminal(place: Place) -> Iterator[tuple[int, str]]:
    """Somebody's shell: what arrives there, and its name."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    os.fchown(theirs, place.user, -1)
    yield ours, os.ttyname(theirs)
    os.close(theirs)
    os.close(ours)


def test_attack_write_to_the_terminal_of_somebody_else(place: Place, terminal: tuple[int, str]) -> None:
    """It may be the log of a CI service, and what is written there has passed no redaction."""
    arrives, name = terminal
    ran = place.run(f"for each in {name} /dev/pts/*; do echo {CANARY} > $each; done")
    assert f"{name}: " in ran.text
    with pytest.raises(BlockingIOError):
        os.read(arrives, 100)


def test_attack_close_a_terminal_so_that_the_next_call_may_open_it(place: Place, terminal: tuple[int, str]) -> None:
    arrives, name = terminal
    place.run(f"chmod 0 {name}")
    ran = place.run(f"chmod 600 {name}; echo {CANARY} > {name}")
    assert ran.status != 0
    with pytest.raises(BlockingIOError):
        os.read(arrives, 100)


def test_attack_read_what_somebody_types(place: Place, terminal: tuple[int, str]) -> None:
    arrives, name = terminal
    os.write(arrives, f"{CANARY}\n".encode())
    assert CANARY not in place.run(f"timeout 1 head -n 1 {name}").text


def test_a_granted_network_is_reached(place: Place, server: socket.socket) -> None:
    port = server.getsockname()[1]
    ran = place.run(f'{PYTHON} "{CONNECT.format(port=port)}"', place.access(network=True))
    assert ran == type(ran)(0, "")
    connection, _ = server.accept()
    with connection:
        assert connection.recv(100).decode() == CANARY


def test_attack_listen_without_a_grant(place: Place) -> None:
    if place.sandbox.kind == "bubblewrap":
        pytest.skip("there the command has a network of its own, which nobody else reaches")
    ran = place.run(f"{PYTHON} \"import socket; socket.create_server(('127.0.0.1', 0))\"")
    assert "PermissionError" in ran.text


def test_attack_talk_to_an_abstract_socket_outside(place: Place) -> None:
    if place.sandbox.kind == "landlock" and (place.sandbox.abi or 0) < 6:
        pytest.skip("this version of Landlock does not keep abstract sockets in")
    name = f"\0ci-agent-test-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        ran = place.run(
            f'{PYTHON} "import socket; socket.socket(socket.AF_UNIX).connect({name!r})"'.replace("\\x00", "\\\\0")
        )
    assert "Error" in ran.text
    assert ran.status != 0


def test_attack_have_an_ssh_agent_sign(place: Place) -> None:
    if place.sandbox.kind == "landlock":
        pytest.skip("Landlock does not know sockets in the file system: the guide says so")
    with tempfile.TemporaryDirectory(prefix="ssh-", dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as agent:
        os.chmod(folder, 0o755)
        agent.bind(f"{folder}/agent.1")
        os.chmod(f"{folder}/agent.1", 0o777)
        agent.listen()
        ran = place.run(f"{PYTHON} \"import socket; socket.socket(socket.AF_UNIX).connect('{folder}/agent.1')\"")
    assert "FileNotFoundError" in ran.text


def test_attack_regain_privileges(place: Place) -> None:
    ran = place.run("grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    status = dict(line.split(":\t") for line in ran.text.splitlines())
    effective = int(status["CapEff"], 16)
    dangerous = {
        "DAC_READ_SEARCH": 2,
        "SYS_MODULE": 16,
        "SYS_RAWIO": 17,
        "SYS_PTRACE": 19,
        "SYS_ADMIN": 21,
        "PERFMON": 38,
    }
    assert status["NoNewPrivs"] == "1"
    assert [name for name, bit in dangerous.items() if effective >> bit & 1] == []


def test_attack_write_what_was_granted_to_nobody_as_a_read_only_call(place: Place) -> None:
    tracked = place.write(place.workspace / "main.py", "as it was")
    place.run(f"echo {CANARY} > main.py; rm main.py; echo x > new", place.access(writable=(str(place.temporary),)))
    assert tracked.read_text() == "as it was"
    assert os.listdir(place.workspace) == ["main.py"]


def test_attack_change_what_is_protected_in_the_workspace(place: Place) -> None:
    if place.sandbox.kind == "landlock":
        pytest.skip("Landlock knows grants alone: these names are held by the policy")
    config = place.write(place.workspace / ".git" / "config", "as it was")
    place.write(place.workspace / ".git" / "HEAD", "ref")
    attacks = f"echo {CANARY} > .git/config; rm -f .git/config; mv .git/config x; mv .git other; rm -rf .git"
    ran = place.run(attacks, place.access(protected=(str(config),)))
    assert ran.status != 0
    assert config.read_text() == "as it was"
