"""A process of its own finds its environment, hides it, and says what is left of it and for whom."""

import json
import os
import sys
from typing import Any

import pytest

CANARY = b"canary-0123456789abcdef"

SUBJECT = """
import json, os, resource, subprocess, sys
from ci_agent import own_environment
if "without-kernel" in sys.argv:
    own_environment._entries_of_kernel = lambda: []
given = own_environment.withdraw_environment()
if "refuse" in sys.argv:
    own_environment.refuse_inspection()
try:
    shown = open("/proc/self/environ", "rb").read()
except PermissionError:
    shown = b"no permission"
child = subprocess.run(["env", "-0"], capture_output=True, check=True).stdout
hexed = lambda pairs: {os.fsencode(name).hex(): os.fsencode(value).hex() for name, value in pairs.items()}
print(json.dumps({
    "given": hexed(given),
    "left": hexed(dict(os.environ)),
    "shown": shown.hex(),
    "child": [entry.hex() for entry in child.split(b"\\0")],
    "core": resource.getrlimit(resource.RLIMIT_CORE),
}))
"""

PYTHON = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PATH": os.environ["PATH"]}

linux = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")


def answer_of(environment: list[bytes], *options: str) -> Any:
    """What the subject says, started with exactly these entries, in this order, doubles included."""
    read_end, write_end = os.pipe()
    array = [*(f"{name}={value}".encode() for name, value in PYTHON.items()), *environment]
    argv = [sys.executable, "-P", "-c", SUBJECT, *options]
    pid = os.fork()
    if pid == 0:
        os.dup2(write_end, 1)
        _execve(argv, array)
    os.close(write_end)
    with open(read_end, "rb") as file:
        said = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(said)


def _execve(argv: list[str], environment: list[bytes]) -> None:
    """`execve` itself: `os.execve` takes a mapping, which cannot hold a name twice or an entry without a name."""
    import ctypes

    def array(texts: list[bytes]) -> Any:
        return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)

    ctypes.CDLL(None).execve(os.fsencode(argv[0]), array([os.fsencode(text) for text in argv]), array(environment))
    os._exit(1)


def unhexed(pairs: dict[str, str]) -> dict[bytes, bytes]:
    return {bytes.fromhex(name): bytes.fromhex(value) for name, value in pairs.items()}


ODD = [
    b"OPENAI_API_KEY=" + CANARY,
    b"MY_LOGIN=" + CANARY,
    b"HTTPS_PROXY=http://me:" + CANARY + b"@proxy:3128",
    b"LONG_TOKEN=" + CANARY * 4000,
    b"LONG=" + b"x" * 100_000,
    b"EMPTY=",
    b"EMPTY_TOKEN=",
    b"DOUBLE=first",
    b"DOUBLE=" + CANARY,
    b"DOUBLE_KEY=" + CANARY,
    b"DOUBLE_KEY=" + CANARY,
    b"=" + CANARY,
    CANARY,
    b"",
    b"BYTES=\xff\xfe\x80",
    b"N\xffME=value",
    b"BYTES_TOKEN=\xff" + CANARY,
    b"SAME=a=b=c",
    b"RUNNER_TRACKING_ID=github_1",
]


@linux
@pytest.mark.parametrize("options", [(), ("without-kernel",)])
def test_the_kernel_shows_no_value_to_others_and_python_keeps_what_is_no_secret(options: tuple[str, ...]) -> None:
    answer = answer_of(ODD, *options)
    shown = bytes.fromhex(answer["shown"])
    assert CANARY[:8] not in shown
    assert set(filter(None, shown.split(b"\0"))) == {
        *(entry.partition(b"=")[0] + b"=" for entry in ODD if entry.partition(b"=")[1] and b"TRACKING" not in entry),
        b"PATH=",
        b"PYTHONPATH=",
        b"RUNNER_TRACKING_ID=github_1",
    }
    given, left = unhexed(answer["given"]), unhexed(answer["left"])
    assert given[b"OPENAI_API_KEY"] == given[b"MY_LOGIN"] == CANARY
    assert given[b"LONG_TOKEN"] == CANARY * 4000
    assert given[b"DOUBLE"] == b"first"
    secret = {b"OPENAI_API_KEY", b"HTTPS_PROXY", b"LONG_TOKEN", b"EMPTY_TOKEN", b"DOUBLE_KEY", b"BYTES_TOKEN"}
    assert given.keys() - left.keys() == secret
    assert {name: given[name] for name in left} == left


@linux
@pytest.mark.parametrize("options", [(), ("without-kernel",)])
def test_a_child_that_is_given_no_environment_inherits_what_is_no_secret(options: tuple[str, ...]) -> None:
    answer = answer_of(ODD, *options)
    child = dict(bytes.fromhex(entry).partition(b"=")[::2] for entry in answer["child"])
    assert CANARY not in b"".join(child[name] for name in child if name != b"MY_LOGIN")
    assert child[b"LONG"] == b"x" * 100_000
    assert (child[b"EMPTY"], child[b"DOUBLE"], child[b"SAME"]) == (b"", b"first", b"a=b=c")
    assert (child[b"BYTES"], child[b"N\xffME"]) == (b"\xff\xfe\x80", b"value")
    assert child[b"RUNNER_TRACKING_ID"] == b"github_1"


@linux
def test_without_any_environment_there_is_nothing_to_hide() -> None:
    assert unhexed(answer_of([])["given"]).keys() >= {b"PATH", b"PYTHONPATH"}


@linux
def test_no_core_file_is_written() -> None:
    assert answer_of([], "refuse")["core"] == [0, 0]


@linux
@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_nobody_else_of_the_user_may_look_into_the_process() -> None:
    assert bytes.fromhex(answer_of([], "refuse")["shown"]) == b"no permission"
