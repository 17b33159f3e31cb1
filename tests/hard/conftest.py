"""The real command on a task with every kind of call, in folders of its own; what must hold of all that it leaves."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from forked_command import ForkedCommand, Run

from ci_agent.transcript.journal import read_journal
from ci_agent.transcript.journal_lines import JournalContents
from ci_agent.transcript.records import document_problems
from ci_agent.transcript.recovery import recover
from ci_agent.transcript.verify import verify

COMMAND = (sys.executable, "-P", "-m", "ci_agent")

POLICY = """
policy: 1
rules:
  - {id: files, allow: [read, write, edit, ls, grep, find], path: "**"}
  - {id: steps, allow: bash, command: ["sh *.sh **", "false"]}
  - {id: no-secrets, deny: read, path: "**/.env", because: secrets stay out}
"""

SCRIPT = """
turns:
  - text: Look around.
    tool_calls:
      - {id: look, name: ls, arguments: {path: .}}
      - {id: read-a, name: read, arguments: {path: a.txt}}
      - {id: read-b, name: read, arguments: {path: b.txt}}
      - {id: search, name: grep, arguments: {pattern: needle, path: .}}
  - tool_calls:
      - {id: one, name: bash, arguments: {command: sh step.sh one}}
      - {id: two, name: bash, arguments: {command: sh step.sh two}}
  - tool_calls:
      - {id: three, name: write, arguments: {path: done/three, content: three}}
      - {id: four, name: write, arguments: {path: done/four, content: four}}
      - {id: denied, name: read, arguments: {path: .env}}
      - {id: failed, name: bash, arguments: {command: "false"}}
  - text: Done.
"""

STEP = """\
echo "$1 begins"
touch "done/$1"
sleep 0.01
echo "$1 ends"
"""

SMALL_SCRIPT = """
turns:
  - tool_calls:
      - {id: read-a, name: read, arguments: {path: a.txt}}
      - {id: read-b, name: read, arguments: {path: b.txt}}
  - tool_calls:
      - {id: one, name: bash, arguments: {command: sh step.sh one}}
      - {id: three, name: write, arguments: {path: done/three, content: three}}
      - {id: denied, name: read, arguments: {path: .env}}
  - text: Done.
"""

STATUSES = dict.fromkeys(("look", "read-a", "read-b", "search", "one", "two", "three", "four"), "ok") | {
    "denied": "denied",
    "failed": "error",
}
"""How each call of the two tasks ends when nothing is wrong."""

EFFECTS = ("one", "two", "three", "four")
"""Calls that leave a file of their name in the folder `done`."""

UNFINISHED = {"its run did not come to its end: records after the last may be missing"}


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: bytes
    stderr: str
    duration_s: float

    @property
    def document(self) -> Any:
        return json.loads(self.stdout)


@dataclass(frozen=True)
class Lab:
    """One run's folders: `workspace`, where it works, and `out`, where its record stands."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.folder / "ws"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def transcript(self) -> Path:
        return self.out / "t.json"

    @property
    def journal(self) -> Path:
        return self.out / "t.json.journal"

    def argv(self, *flags: str, script: str = "script.yaml") -> list[str]:
        """The run's command line, its record at `transcript`."""
        model = ("--model", f"scripted:{self.folder / script}")
        policy = ("--policy", str(self.folder / "policy.yml"))
        return [*COMMAND, "run", *policy, *model, "--transcript", str(self.transcript), *flags, "Go."]

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        clean: Mapping[str, str] | None = None,
        **more: Any,
    ) -> subprocess.Popen[bytes]:
        """`env` is added to the environment, `clean` is all of it."""
        environment = {**self.environment, **(env or {})} if clean is None else clean
        streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL) | more
        return subprocess.Popen(argv, cwd=self.workspace, env=environment, **streams)

    def run(
        self,
        *flags: str,
        env: Mapping[str, str] | None = None,
        script: str = "script.yaml",
        timeout_s: float = 110,
        forked: Run | None = None,
    ) -> Ended:
        """The run, waited for; TimeoutExpired when it hangs. A fork spares it the start of Python: half of its time."""
        argv = self.argv(*flags, script=script)
        if forked is None:
            return self.wait_for(argv, env=env, timeout_s=timeout_s)
        started = time.monotonic()
        environment = {**self.environment, **(env or {})}
        done = forked(argv[len(COMMAND) :], cwd=self.workspace, env=environment, timeout_s=timeout_s)
        duration_s = time.monotonic() - started
        return Ended(done.returncode, done.stdout.encode(), done.stderr, duration_s)

    def wait_for(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        clean: Mapping[str, str] | None = None,
        timeout_s: float = 110,
        **more: Any,
    ) -> Ended:
        started = time.monotonic()
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        with self.start(argv, env=env, clean=clean, **streams) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
        duration_s = time.monotonic() - started
        return Ended(process.returncode, stdout or b"", (stderr or b"").decode(), duration_s)

    def write_script(self, text: str, name: str = "script.yaml") -> None:
        (self.folder / name).write_text(text)

    def effects(self) -> set[str]:
        """Calls that have had their effect."""
        return {path.name for path in (self.workspace / "done").iterdir() if path.name in EFFECTS}

    def litter(self) -> list[str]:
        """What lies beside the record and is no part of it."""
        names = ("t.json", "t.json.journal", "t.json.recovered")
        return [name for name in sorted(os.listdir(self.out)) if not name.startswith(names)]

    def orphans(self, within_s: float = 5.0) -> list[str]:
        """Commands that are still alive after so long; they are killed."""
        deadline = time.monotonic() + within_s
        pause = threading.Event()
        while (living := list(_processes_below(self.folder))) and time.monotonic() < deadline:
            pause.wait(0.02)
        for pid, _ in living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return [name for _, name in living]

    def recovered(self) -> Any:
        """The document that `transcript recover` makes, after everything that must hold of it was checked."""
        path = recover(self.transcript)
        document = json.loads(path.read_text())
        assert document_problems(document) == []
        problems = {str(problem) for problem in verify(path)}
        assert problems == (set() if document["integrity"]["complete"] else UNFINISHED)
        self.check_effects(document)
        return document

    def check_effects(self, document: Any) -> None:
        """Whatever had an effect is on record as begun and allowed."""
        begun = {call["id"]: call for call in document["tool_calls"] if call["started_at"] is not None}
        for effect in self.effects():
            assert begun[effect]["decision"]["effect"] == "allow"
            assert begun[effect]["status"] in ("ok", "error", "cancelled", "unknown")

    def check_whole(self, *, exit_code: int | None = 0) -> None:
        """The transcript stands, is what was written, and every call of its messages has its one result."""
        assert verify(self.transcript) == []
        document = json.loads(self.transcript.read_text())
        assert document_problems(document) == []
        if exit_code is not None:
            assert document["result"]["exit_code"] == exit_code
        self.check_effects(document)

    def check_success(self) -> None:
        """The whole task is on record, and was done."""
        self.check_whole()
        self.check_everything_was_done()
        assert os.listdir(self.out) == ["t.json"]

    def check_everything_was_done(self) -> None:
        """Every call of the task stands in the transcript, in order, and ended as it should."""
        document = json.loads(self.transcript.read_text())
        asked = re.findall(r"id: ([a-z-]+),", (self.folder / "script.yaml").read_text())
        ended = [(call["id"], call["status"]) for call in document["tool_calls"]]
        assert ended == [(call, STATUSES[call]) for call in asked]
        assert self.effects() == set(EFFECTS) & set(asked)

    def read_journal(self) -> JournalContents:
        return read_journal(self.journal)


@pytest.fixture(scope="session")
def failing_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of failing_calls.c, to be preloaded."""
    library = tmp_path_factory.mktemp("shim") / "failing_calls.so"
    source = Path(__file__).with_name("failing_calls.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=110)
    return library


@pytest.fixture(scope="session")
def failing_command(failing_calls: Path) -> Iterator[ForkedCommand]:
    """The command, with that library preloaded."""
    command = ForkedCommand(failing_calls)
    yield command
    command.close()


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator["MakeLab"]:
    yield MakeLab(tmp_path)
    for path in (tmp_path, *tmp_path.glob("*")):
        path.chmod(0o700)


@dataclass(frozen=True)
class MakeLab:
    folder: Path

    def __call__(self, name: object = "lab") -> Lab:
        """A fresh one; nothing in it has run yet."""
        lab = Lab(self.folder / str(name), self._environment())
        (lab.workspace / "done").mkdir(parents=True)
        lab.out.mkdir()
        (lab.folder / "policy.yml").write_text(POLICY)
        lab.write_script(SCRIPT)
        lab.write_script(SMALL_SCRIPT, "small.yaml")
        lab.write_script("turns: [{text: Done.}]", "short.yaml")
        files = {"a.txt": "needle\n", "b.txt": "b\n" * 50, ".env": "SECRET=1\n", "step.sh": STEP}
        for file, content in files.items():
            (lab.workspace / file).write_text(content)
        return lab

    def _environment(self) -> dict[str, str]:
        home = self.folder / "home"
        temporary = self.folder / "tmp"
        home.mkdir(exist_ok=True)
        temporary.mkdir(exist_ok=True)
        given = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return {**given, "HOME": str(home), "TMPDIR": str(temporary)}


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    return make_lab()


def _processes_below(folder: Path) -> Iterator[tuple[int, str]]:
    """Living processes whose current folder is below this one, or whose command line names it."""
    if not Path("/proc/self").exists():
        yield from _processes_named(folder)
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                name = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if name and (_is_below(entry / "cwd", folder) or str(folder) in name):
                    yield int(entry.name), name


def _is_below(link: Path, folder: Path) -> bool:
    try:
        return folder in Path(os.readlink(link)).parents
    except OSError:
        return False


def _processes_named(folder: Path) -> Iterator[tuple[int, str]]:
    listed = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        pid, _, name = line.strip().partition(" ")
        if str(folder) in name:
            yield int(pid), name
