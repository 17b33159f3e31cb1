"""Runs lines in real bash where nothing can be harmed, and reports what each started and which files it wrote.

Started by test_against_bash.py as a process of its own, with an empty folder to use: reads a JSON list of lines, writes
one JSON value for each.

No program exists where the lines run: PATH leads nowhere, and bash hands every command that it would start to the
function `command_not_found_handle`, which comes from the environment and writes the folder and the words to a log.
As far as it may, the process first moves into namespaces of its own, an empty root folder, and an unused user id;
where it may not, only lines run that can name nothing outside of their folder.
"""

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HANDLE = """() {
    builtin printf '%s\\0' "$PWD" "$#" "$@" >> "$FUZZ_LOG"
    case $1 in
        out1) builtin printf '%s\\n' 'a[$(pwned one)]' ;;
        out2) builtin printf '%s\\n' '-v a[$(pwned two)]' ;;
        out3) builtin printf '%s\\n' 'a b*; pwned three' ;;
        no*) builtin return 1 ;;
    esac
    builtin return 0
}"""
FILES = {
    "a.txt": "a[$(pwned four)]\n",
    "b.txt": "-v\n",
    "list": "x y\nz\n",
    "sub/c.txt": "",
    "sub/deep/d.txt": "",
    "src/e.py": "",
    "-rf": "",
    "x y": "",
}
ENVIRONMENT = {
    "BASH_FUNC_command_not_found_handle%%": HANDLE,
    "EVIL": "a[$(pwned five)]",
    "LC_ALL": "C.UTF-8",
    "OPT": "-v a[$(pwned six)]",
    "PATH": "/nowhere",
    "STAR": "*",
}
_UNTOUCHED = {name: (len(content), 1_000_000_000) for name, content in FILES.items()}
UNUSED_ID = 54_321
TIMEOUT_S = 1.5
_LONG_LOG = 1 << 20
_MOST_WRITTEN = 1 << 24
_NEW_NETWORK, _NEW_PROCESSES, _NEW_USERS = 0x40000000, 0x20000000, 0x10000000
_BECOME_SUBREAPER = 36


class Place(NamedTuple):
    """Where lines run: in `folder`, made again for each; `log` receives what they start.

    `enclosed`: no file outside can be reached. `apart`: no other process and no network.
    """

    bash: str
    folder: Path
    log: Path
    enclosed: bool
    apart: bool


def prepare(scratch: Path) -> Place:
    """Isolate this process as well as its rights allow."""
    bash = shutil.which("bash") or "/bin/bash"
    if sys.platform == "linux" and _copy_bash(bash, scratch):
        apart = _leave_namespaces()
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
        with contextlib.suppress(PermissionError):
            os.chroot(scratch)
            os.chdir("/")
            return Place("/bin/bash", Path("/work"), Path("/log"), enclosed=True, apart=apart)
    return Place(bash, scratch / "work", scratch / "log", enclosed=False, apart=False)


def _leave_namespaces() -> bool:
    """Move into a network and a set of processes of our own; False: not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    spaces = _NEW_NETWORK | _NEW_PROCESSES | (_NEW_USERS if user else 0)
    if libc.unshare(spaces) != 0:
        return False
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return True


def drop_rights() -> None:
    """Become an unused user where this process may become any."""
    with contextlib.suppress(PermissionError):
        os.setgroups([])
        os.setgid(UNUSED_ID)
        os.setuid(UNUSED_ID)


def _copy_bash(bash: str, root: Path) -> bool:
    """Put bash and its libraries, and nothing else, into `root`."""
    listing = subprocess.run(["ldd", bash], capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        return False
    for source in {word for word in listing.stdout.split() if word.startswith("/")}:
        (root / source[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / source[1:])
    for name in ("bin", "dev"):
        (root / name).mkdir(exist_ok=True)
    shutil.copy(bash, root / "bin/bash")
    (root / "dev/null").touch()
    (root / "dev/null").chmod(0o666)
    root.chmod(0o777)  # for the unused user
    return True


def is_harmless(line: str, place: Place) -> bool:
    """Whether a line can reach no file outside of its folder, no other process, no network."""
    unsafe: list[str] = []
    if not place.apart:
        unsafe += ("dev", "tcp", "udp", "kill", "$$")
    if not place.enclosed:
        unsafe += ("/", "~", "HOME", "PWD", "\\", "$'")
    return not any(text in line for text in unsafe)


def run(line: str, place: Place) -> dict[str, object] | None:
    """What the line started (each with its folder and words) and the files that it made or changed."""
    if not is_harmless(line, place):
        return None
    logged = place.log.stat().st_size
    if logged > _LONG_LOG:
        os.truncate(place.log, 0)
        logged = 0
    finished = _run_bash(line, place)
    found = _list_files(place.folder)
    written = sorted(name for name, state in found.items() if _UNTOUCHED.get(name) != state)
    if found != _UNTOUCHED:
        _restore(place, found)
    started = _read_log(place, logged)
    if started is None:
        return None
    return {"started": started, "written": written, "finished": finished, "folder": str(place.folder)}


def _fill(place: Place) -> None:
    for name in FILES:
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
    _restore(place, {})
    place.log.touch()
    os.chdir(place.folder)


def _restore(place: Place, found: dict[str, tuple[int, int]]) -> None:
    """Make the files again as they are before each line. No line can make a folder: there is no program for it."""
    for name in found.keys() - FILES.keys():
        os.unlink(place.folder / name)
    for name, content in FILES.items():
        if found.get(name) != _UNTOUCHED[name]:
            path = place.folder / name
            path.write_text(content)
            os.utime(path, (1, 1))


def _list_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of each file, by its path beneath the folder."""
    states: dict[str, tuple[int, int]] = {}
    pending = [""]
    while pending:
        inside = pending.pop()
        with contextlib.suppress(FileNotFoundError), os.scandir(folder / inside) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{inside}{entry.name}/")
                else:
                    state = entry.stat(follow_symlinks=False)
                    states[inside + entry.name] = (state.st_size, state.st_mtime_ns)
    return states


def _read_log(place: Place, start: int) -> list[list[str]] | None:
    """What was started; None when two programs with many arguments wrote into each other's lines."""
    with place.log.open("rb") as log:
        log.seek(start)
        written = log.read()
    fields = written.decode("utf-8", "surrogateescape").split("\0")[:-1]
    started: list[list[str]] = []
    position = 0
    while position < len(fields):
        if not (position + 1 < len(fields) and fields[position + 1].isdecimal()):
            return None
        count = int(fields[position + 1])
        started.append([fields[position], *fields[position + 2 : position + 2 + count]])
        position += 2 + count
    return started


def _run_bash(line: str, place: Place) -> bool:
    """Run the line and everything that it leaves behind; False: it had to be killed."""
    child = os.posix_spawn(
        place.bash,
        ["bash", "-c", line],
        {**ENVIRONMENT, "HOME": str(place.folder), "FUZZ_LOG": str(place.log)},
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, str(place.folder / "a.txt"), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return not os.WIFSIGNALED(status)


def main() -> None:
    lines: list[str] = json.load(sys.stdin)
    place = prepare(Path(sys.argv[1]))
    if place.enclosed:
        drop_rights()
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_WRITTEN, _MOST_WRITTEN))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _fill(place)
    print("\n".join(json.dumps(run(line, place)) for line in lines))


if __name__ == "__main__":
    main()
