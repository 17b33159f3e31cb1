"""Commands hunt for the key of the run: in their environment, in that of every process above them, in memory.

The real command is asked by a model's server on this machine, so that the key is in use while they hunt. Where the
tests are root's, each attack is made as root and as nobody.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ci_agent as package

if TYPE_CHECKING:
    from tests.conftest import Faults

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")

KEY = "canary-kqzjx-9f8e7d6c5b4a3021"
NOBODY = 65534

HUNT = r"""
import os, re, sys

canary, stop = sys.argv[1][::-1].encode(), int(sys.argv[2])


def memory_of(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, end = (int(text, 16) for text in line.split()[0].split("-"))
            try:
                memory.seek(start)
                yield memory.read(min(end - start, 64_000_000))
            except (OSError, ValueError, OverflowError):
                continue


def descriptors_of(pid):
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        if os.path.isfile(path):
            with open(path, "rb") as file:
                yield file.read(10_000_000)


def file_of(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        yield file.read()


def look(pid):
    for name in ("environ", "cmdline", "fd", "mem"):
        try:
            places = memory_of(pid) if name == "mem" else descriptors_of(pid) if name == "fd" else file_of(pid, name)
            found = any(canary in place for place in places)
            print(name, pid, "FOUND" if found else "nothing")
        except OSError as error:
            print(name, pid, type(error).__name__)


print("own", "FOUND" if any(canary in value for value in os.environb.values()) else "nothing")
print("descriptors", sorted(map(int, os.listdir("/proc/self/fd")))[3:-1])
pid = int(sys.argv[3]) if len(sys.argv) > 3 else os.getppid()
while pid not in (0, 1, stop):
    look(pid)
    with open(f"/proc/{pid}/stat") as file:
        pid = int(file.read().rpartition(")")[2].split()[1])
"""

POLICY = """
policy: 1
rules:
  - {id: hunt, allow: bash, command: ["python3 hunt.py **", env]}
"""


@dataclass(frozen=True)
class User:
    """As whom a run is made, and with which Python."""

    identity: dict[str, Any]
    python: str
    folder: Path

    def environment(self) -> dict[str, str]:
        packages = [str(Path(package.__file__).parents[1]), *site.getsitepackages()]
        path = f"{Path(self.python).parent}:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self.folder), "PYTHONPATH": ":".join(packages)}


def python_for(identity: Mapping[str, Any]) -> str:
    """One that this user may start, of the version that the installed packages are for."""
    check = f"import sys; assert sys.version_info[:2] == {sys.version_info[:2]}"
    for python in (sys.executable, "/usr/bin/python3", f"/usr/bin/python3.{sys.version_info[1]}"):
        try:
            subprocess.run([python, "-c", check], check=True, cwd="/", stderr=subprocess.DEVNULL, **identity)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("nobody may start none of the Pythons here")


@pytest.fixture(params=["the tests' own user", "nobody"])
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    """With a folder of its own that it can reach."""
    as_nobody = request.param == "nobody"
    if as_nobody and os.getuid() != 0:
        pytest.skip("only root can become nobody")
    identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_nobody else {}
    folder = Path(tempfile.mkdtemp(prefix="keys-", dir="/tmp"))
    (folder / "hunt.py").write_text(HUNT)
    (folder / "policy.yml").write_text(POLICY)
    if as_nobody:
        os.chown(folder, NOBODY, NOBODY)
    yield User(identity, python_for(identity), folder)
    shutil.rmtree(folder)


Attack = Callable[..., tuple[list[str], Any, str]]


@pytest.fixture
def attack(user: User, faults: "Faults") -> Attack:
    """Runs one command of a hijacked model; gives its lines, the document, and stderr."""

    def run(
        command: str, *flags: str, shell: str = 'exec "$@"', env: Mapping[str, str] = {}
    ) -> tuple[list[str], Any, str]:
        call = {
            "index": 0,
            "id": "c",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": command})},
        }
        server = faults.serve(faults.answer("", finish="tool_calls", tool_calls=[call]), faults.answer("Done."))
        model = ["--model", "openai-chat:m", "--base-url", f"{server.url}/v1"]
        command_line = ["-P", "-m", "ci_agent", "run"]
        done = subprocess.run(
            [
                "bash",
                "-c",
                shell,
                "bash",
                user.python,
                *command_line,
                "--policy",
                "policy.yml",
                *model,
                *flags,
                "Hello.",
            ],
            check=False,
            cwd=user.folder,
            env={**user.environment(), **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=110,
            **user.identity,
        )
        assert done.returncode == 0, done.stderr
        assert KEY not in done.stdout + done.stderr
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        document = json.loads(done.stdout)
        return document["tool_calls"][0]["content"][0]["text"].splitlines(), document, done.stderr

    return run


def hunt() -> str:
    return f"python3 hunt.py {KEY[::-1]} {os.getpid()}"


def found(lines: list[str], document: Any) -> list[str]:
    """Where the key was found. Root reads the memory of every process that no sandbox keeps it from."""
    open_to_root = os.getuid() == 0 and document["run"]["sandbox"]["kind"] == "none"
    return [line for line in lines if "FOUND" in line and not (open_to_root and line.startswith("mem"))]


def places(lines: list[str]) -> set[str]:
    return {line.split()[0] for line in lines}


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY"])
def test_a_command_finds_the_key_of_a_variable_nowhere(attack: Attack, variable: str) -> None:
    lines, document, _ = attack(hunt(), env={variable: KEY})
    assert places(lines) == {"own", "descriptors", "environ", "cmdline", "fd", "mem"}
    assert (found(lines, document), lines[0], lines[1]) == ([], "own nothing", "descriptors []")


def test_a_command_finds_the_key_of_a_descriptor_nowhere(attack: Attack, user: User) -> None:
    flags = ("--api-key-file", "/dev/fd/3")
    lines, document, _ = attack(hunt(), *flags, shell=f'exec "$@" 3< <(printf {KEY[:9]}; printf {KEY[9:]})')
    assert places(lines) >= {"environ", "cmdline", "fd", "mem"}
    assert (found(lines, document), lines[0], lines[1]) == ([], "own nothing", "descriptors []")


def test_a_shell_above_the_run_that_shows_the_key_is_told_of(attack: Attack) -> None:
    """A control of the hunt, too: without a sandbox it does find the key there."""
    lines, document, stderr = attack(hunt(), shell='"$@"; exit $?', env={"OPENAI_API_KEY": KEY})
    if document["run"]["sandbox"]["kind"] == "none":
        assert [line.split()[0] for line in found(lines, document)] == ["environ"]
        assert "(bash), which started this run, shows OPENAI_API_KEY to commands: start ci-agent by `exec`" in stderr
        assert [note["about"] for note in document["notes"]].count("security") >= 1
    else:
        assert found(lines, document) == []


def test_a_process_of_the_same_user_beside_the_run_looks_into_nothing_of_it(user: User) -> None:
    """It is no command: no sandbox holds it, and without it commands of an older kernel were as free."""
    script = user.folder / "script.yaml"
    script.write_text("turns: [{text: Done., delay_s: 60}]\n")
    command = [user.python, "-P", "-m", "ci_agent", "run", "--policy", "policy.yml", "--model", f"scripted:{script}"]
    with subprocess.Popen(
        [*command, "--workspace", str(user.folder), "Hello."],
        cwd=user.folder,
        env={**user.environment(), "OPENAI_API_KEY": KEY},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **user.identity,
    ) as run:
        assert run.stderr is not None
        assert "policy.yml" in run.stderr.readline()  # it has begun
        hunt = [user.python, "hunt.py", KEY[::-1], str(os.getpid()), str(run.pid)]
        looked = subprocess.run(hunt, cwd=user.folder, capture_output=True, text=True, check=True, **user.identity)
        run.terminate()
        run.stderr.read()
    found = dict(line.rsplit(" ", 1) for line in looked.stdout.splitlines()[2:])
    closed = {f"{name} {run.pid}": "PermissionError" for name in ("environ", "fd", "mem")}
    if user.identity or os.getuid() != 0:
        assert found == {**closed, f"cmdline {run.pid}": "nothing"}
    else:  # root looks everywhere: what the kernel shows of the environment has no value left
        assert found[f"environ {run.pid}"] == found[f"cmdline {run.pid}"] == "nothing"


NOT_FOR_COMMANDS = """
    GITHUB_TOKEN ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL ACTIONS_CACHE_URL GITHUB_ENV GITHUB_PATH
    GITHUB_OUTPUT GITHUB_STATE GITHUB_STEP_SUMMARY GITHUB_ARTIFACTS ANTHROPIC_API_KEY NPM_TOKEN DATABASE_URL NO_PROXY
    HTTPS_PROXY http_proxy ALL_PROXY LESSOPEN TAR_OPTIONS GREP_OPTIONS PYTHONSTARTUP NODE_OPTIONS PERL5OPT RUBYOPT
    GIT_DIR GIT_EXTERNAL_DIFF GIT_SSH_COMMAND LD_AUDIT BASH_ENV ENV CI_AGENT_X
""".split()  # noqa: SIM905 - reads better than thirty quoted names


def test_env_shows_a_command_nothing_that_is_the_runs_or_the_runners(attack: Attack) -> None:
    canaries = {name: f"canary-{number}" for number, name in enumerate(NOT_FOR_COMMANDS)}
    lines, _, _ = attack("env", env={**canaries, "OPENAI_API_KEY": KEY, "RUNNER_TRACKING_ID": "github_1"})
    assert [line for line in lines if "canary" in line] == []
    assert "RUNNER_TRACKING_ID=github_1" in lines
