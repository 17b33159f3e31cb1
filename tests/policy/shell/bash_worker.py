"""Runs lines in real shells where nothing can be harmed, and reports what each started and which files it wrote.

Started by test_against_bash.py as a process of its own, with an empty folder to use: reads a JSON list of pairs of a
shell and a line, writes one JSON value for each; null when the machine has no such shell.

No program exists where bash runs the lines: PATH leads nowhere, and bash hands every command that it would start to the
function `command_not_found_handle`, which comes from the environment and writes the folder and the words to a log.
Other shells have no such function. For them PATH leads to programs of the names that lines are made of, which do so.
As far as it may, the process first moves into namespaces of its own, an empty root folder, and an unused user id;
where it may not, only lines run that can name nothing outside of their folder.
"""

import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

LOGGING = """
    builtin printf '%s\\0' "$PWD" "$#" "$@" >> "$FUZZ_LOG"
    case $STAR in '*') ;; *) builtin printf '%s\\0' "$PWD" 1 'STAR has another value' >> "$FUZZ_LOG" ;; esac
    case $1 in
        out1) builtin printf '%s\\n' 'a[$(pwned one)]' ;;
        out2) builtin printf '%s\\n' '-v a[$(pwned two)]' ;;
        out3) builtin printf '%s\\n' 'a b*; pwned three' ;;
        no*) builtin return 1 ;;
    esac
    builtin return 0
"""
HANDLE = f"() {{{LOGGING}}}"
NAMES = """
ls rm git wc cat no noo out1 out2 out3 pwned make npm a b x y z q f g i o E -rf a.txt sub x\\ y a\\ b*; d do done in if
e sed find grep head tail xargs tee sort node python pytest mypy ruff cargo go curl bash sh env timeout seq date declare
source pushd popd dirs help mapfile builtin chdir let shopt time coproc function select typeset local
"""
"""Every one a program for shells other than bash."""
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

    shells: dict[str, list[str]]
    """For each shell, the path and the arguments before the line."""
    programs: Path
    folder: Path
    log: Path
    enclosed: bool
    apart: bool


def prepare(scratch: Path) -> Place:
    """Isolate this process as well as its rights allow."""
    bash = shutil.which("bash") or "/bin/bash"
    sources = {"bash": bash, "sh": shutil.which("dash"), "ash": shutil.which("busybox")}
    copied = {name: source for name, source in sources.items() if source and _copy_shell(source, name, scratch)}
    if sys.platform == "linux" and "bash" in copied:
        _make_root(scratch)
        _make_programs(scratch / "programs", "/bin/bash")
        apart = _leave_namespaces()
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
        with contextlib.suppress(PermissionError):
            os.chroot(scratch)
            os.chdir("/")
            shells = _commands({name: f"/bin/{name}" for name in copied})
            return Place(shells, Path("/programs"), Path("/work"), Path("/log"), enclosed=True, apart=apart)
    _make_programs(scratch / "own-programs", bash)
    shells = _commands({name: source for name, source in sources.items() if source})
    places = (scratch / "own-programs", scratch / "work", scratch / "log")
    return Place(shells, *places, enclosed=False, apart=False)


def _commands(paths: dict[str, str]) -> dict[str, list[str]]:
    commands = {name: [path, name, "-c"] for name, path in paths.items()}
    return commands | {"bash --posix": [paths["bash"], "bash", "--posix", "-c"]}


def _make_programs(folder: Path, bash: str) -> None:
    folder.mkdir(mode=0o755)
    program = (
        LOGGING.replace("return", "exit")
        .replace('"$#" "$@"', '"$(($# + 1))" "${0##*/}" "$@"')
        .replace("$1", "${0##*/}")
    )
    (folder / "ls").write_text(f"#!{bash}\n{program}")
    (folder / "ls").chmod(0o755)
    for name in {name.replace("\\", "") for name in re.split(r"(?<!\\)\s+", NAMES.strip())} - {"ls"}:
        (folder / name).symlink_to("ls")


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


def _copy_shell(path: str, name: str, root: Path) -> bool:
    """Put a shell and its libraries, and nothing else, into `root`."""
    listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    if listing.returncode != 0 and "not a dynamic" not in listing.stderr:
        return False
    for source in {word for word in listing.stdout.split() if word.startswith("/")}:
        (root / source[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / source[1:])
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy(path, root / "bin" / name)
    return True


def _make_root(root: Path) -> None:
    (root / "dev").mkdir()
    (root / "dev/null").touch()
    (root / "dev/null").chmod(0o666)
    root.chmod(0o777)  # for the unused user


def is_harmless(line: str, place: Place) -> bool:
    """Whether a line can reach no file outside of its folder, no other process, no network."""
    unsafe: list[str] = []
    if not place.apart:
        unsafe += ("dev", "tcp", "udp", "kill", "$$")
    if not place.enclosed:
        unsafe += ("/", "~", "HOME", "PWD", "\\", "$'")
    return not any(text in line for text in unsafe)


def run(shell: str, line: str, place: Place) -> dict[str, object] | None:
    """What the line started (each with its folder and words) and the files that it made or changed."""
    if shell not in place.shells or not is_harmless(line, place):
        return None
    logged = place.log.stat().st_size
    if logged > _LONG_LOG:
        os.truncate(place.log, 0)
        logged = 0
    finished = _run_shell(shell, line, place)
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
        if position + 2 + count > len(fields):
            break  # cut off, as the shell was killed or the log as long as it may be
        started.append([fields[position], *fields[position + 2 : position + 2 + count]])
        position += 2 + count
    return started


def _run_shell(shell: str, line: str, place: Place) -> bool:
    """Run the line and everything that it leaves behind; False: it had to be killed."""
    path, *arguments = place.shells[shell]
    programs = {} if "bash" in shell else {"PATH": str(place.programs)}
    child = os.posix_spawn(
        path,
        [*arguments, line],
        {**ENVIRONMENT, **programs, "HOME": str(place.folder), "FUZZ_LOG": str(place.log)},
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, str(place.folder / "a.txt"), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    signal.signal(signal.SIGALRM, lambda *_: _kill_group(child))
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _kill_group(child)
    return not os.WIFSIGNALED(status)


def _kill_group(leader: int) -> None:
    """Kill what is left of a shell's group; it may be gone by itself at any moment, also when its time is up."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    lines: list[tuple[str, str]] = json.load(sys.stdin)
    place = prepare(Path(sys.argv[1]))
    if place.enclosed:
        drop_rights()
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_WRITTEN, _MOST_WRITTEN))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _fill(place)
    print("\n".join(json.dumps(run(shell, line, place)) for shell, line in lines))


if __name__ == "__main__":
    main()
