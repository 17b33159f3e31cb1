"""Attacks by a program that the policy knows nothing of, each with a canary that must stay untouched or unseen."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

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
