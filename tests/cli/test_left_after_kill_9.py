"""After `kill -9` of ci-agent the spawn server, which is left, removes the run's private folder for temporary files."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

Write = Callable[[str], str]

RULES = 'rules: [{id: fill, allow: bash, command: "bash fill.sh"}]\n'

FILL = """\
mkdir -p "$TMPDIR/locked/inner" && touch "$TMPDIR/locked/inner/file" && chmod 0 "$TMPDIR/locked"
ln -s "$PRECIOUS" "$TMPDIR/link"
python3 -c 'import os
os.chdir(os.environ["TMPDIR"])
for _ in range(LEVELS):
    os.mkdir("in")
    os.chdir("in")'
echo "$PPID" > supervisor.new && mv supervisor.new supervisor
sleep 300
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tmp"
    folder.mkdir()
    yield folder
    # Where it is left, it is too deep for Python to remove.
    subprocess.run(["rm", "-rf", folder], check=False)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    folder = tmp_path / "precious"
    folder.mkdir(mode=0o750)
    (folder / "file").write_text("precious")
    return folder


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(
    workspace: Path, environment: dict[str, str], script: Write, policy: Write, temporary: Path, precious: Path
) -> Iterator[Start]:
    """Starts a run whose command has filled its temporary folder and hangs."""
    started: list[subprocess.Popen[bytes]] = []
    call = {"name": "bash", "arguments": {"command": "bash fill.sh"}}

    def run(*, levels: int = 1200) -> "subprocess.Popen[bytes]":
        script(json.dumps({"turns": [{"tool_calls": [call]}, {"tool_calls": [call]}, {"text": "never"}]}))
        policy(RULES)
        (workspace / "fill.sh").write_text(FILL.replace("LEVELS", str(levels)))
        flags = ["--policy", "policy.yml", "--model", "scripted:script.yaml", "--pass-env", "PRECIOUS"]
        variables = {"TMPDIR": str(temporary), "PRECIOUS": str(precious)}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ci_agent", "run", *flags, "--transcript", "t.json", "Go."],
            cwd=workspace,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        comes(workspace / "supervisor")
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


def comes(path: Path) -> None:
    assert happens(path.exists), f"{path.name} never came"


def happens(event: Callable[[], bool], within_s: float = 30.0) -> bool:
    pause, deadline = threading.Event(), time.monotonic() + within_s
    while not event() and time.monotonic() < deadline:
        pause.wait(0.02)
    return event()


def is_empty(folder: Path) -> bool:
    return os.listdir(folder) == []


def test_the_folder_goes_with_all_that_is_in_it_and_nothing_else(start: Start, temporary: Path, precious: Path) -> None:
    process = start()
    assert len(os.listdir(temporary)) == 1
    (temporary / "of-somebody-else").mkdir()
    process.kill()
    assert happens(lambda: os.listdir(temporary) == ["of-somebody-else"])
    assert ((precious / "file").read_text(), precious.stat().st_mode & 0o777) == ("precious", 0o750)


def test_a_folder_that_was_renamed_goes_too(start: Start, temporary: Path) -> None:
    process = start()
    [folder] = temporary.iterdir()
    folder.rename(temporary / "elsewhere")
    folder.mkdir()
    (folder / "canary").touch()
    process.kill()
    assert happens(lambda: not (temporary / "elsewhere").exists())
    assert os.listdir(folder) == ["canary"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_server_that_took_the_place_of_one_that_was_killed_removes_it(
    start: Start, workspace: Path, temporary: Path
) -> None:
    """The first call ends with its server; the second has another."""
    process = start()
    server = _parent_of(int((workspace / "supervisor").read_text()))
    (workspace / "supervisor").unlink()
    os.kill(server, signal.SIGKILL)
    comes(workspace / "supervisor")
    assert _parent_of(int((workspace / "supervisor").read_text())) != server
    process.kill()
    assert happens(lambda: is_empty(temporary))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_where_the_server_was_killed_too_the_next_run_finds_the_folder_free(
    start: Start, workspace: Path, temporary: Path
) -> None:
    process = start()
    server = _parent_of(int((workspace / "supervisor").read_text()))
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    process.kill()
    process.wait()
    [folder] = temporary.iterdir()
    free = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    assert happens(
        lambda: subprocess.run([sys.executable, "-c", free, folder], check=False, capture_output=True).returncode == 0
    )


def test_nothing_is_left_of_a_run_that_was_cancelled(start: Start, temporary: Path) -> None:
    process = start(levels=20)  # a cancelled run and its server remove what they can in three seconds
    process.terminate()
    assert process.wait(110) == 143
    assert happens(lambda: is_empty(temporary))


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
