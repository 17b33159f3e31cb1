"""The real command where things are missing, full, closed or odd: it works, or says in a line why it does not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent.transcript.recovery import recover
from ci_agent.transcript.verify import verify

if TYPE_CHECKING:
    from tests.hard.conftest import Ended, Lab

IS_ROOT = os.geteuid() == 0

pytestmark = pytest.mark.hard

needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def in_shell(
    lab: "Lab", text: str, *flags: str, env: Mapping[str, str] | None = None, script: str = "script.yaml"
) -> "Ended":
    """Runs the command as `"$@"` in a line of shell."""
    return lab.wait_for(["bash", "-c", text, "bash", *lab.argv(*flags, script=script)], env=env)


def result(lab: "Lab") -> Any:
    return json.loads(lab.transcript.read_text())["result"]


def check_refused(done: "Ended", pattern: str) -> None:
    """One line says why; nothing on stdout."""
    assert (done.code, done.stdout) == (3, b""), done.stderr
    assert re.fullmatch(rf"ci-agent: {pattern}\n", done.stderr), done.stderr


# What is odd, and does no harm


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": None},
        {"HOME": "/nonexistent"},
        {"TMPDIR": "/nonexistent"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "tlh_QO.UTF-8", "LANG": "?"},
        {"PYTHONIOENCODING": "ascii"},
        {"TZ": "bad"},
        {"TZ": ":/nonexistent"},
        {"TZ": "UTC+99:99:99"},
        {"COLUMNS": "0", "TERM": "no-such-terminal"},
    ],
    ids=lambda given: ",".join(f"{name}={value or ''}" for name, value in given.items()),
)
@pytest.mark.parametrize("output", ["json", "text"])
def test_an_odd_environment_changes_nothing(lab: "Lab", environment: Mapping[str, str | None], output: str) -> None:
    lab.write_script((lab.folder / "script.yaml").read_text().replace("Done.", "Done \N{PARTY POPPER} é."))
    given = {name: value for name, value in {**lab.environment, **environment}.items() if value is not None}
    with lab.start(
        lab.argv("--output", output), clean=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        stdout, stderr = process.communicate(timeout=110)
    assert process.returncode == 0, stderr
    lab.check_success()
    text = stdout.decode()
    assert text == (lab.transcript.read_text() if output == "json" else "Done \N{PARTY POPPER} é.\n")


@pytest.mark.parametrize("path", [None, "", "/nonexistent"])
def test_without_programs_the_run_goes_on_and_says_what_is_lacking(lab: "Lab", path: str | None) -> None:
    """`env -i`, but for the interpreter's own variable."""
    given = {name: value for name, value in lab.environment.items() if name == "PYTHONPATH"}
    done = lab.wait_for(lab.argv(), clean=given if path is None else {**given, "PATH": path})
    assert "Traceback" not in done.stderr
    assert done.code == 0, done.stderr
    lab.check_whole()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which not even root can write")
def test_a_current_folder_that_cannot_be_written_is_not_needed(lab: "Lab") -> None:
    done = in_shell(lab, 'cd /proc && "$@"', "--workspace", str(lab.workspace))
    assert done.code == 0, done.stderr
    lab.check_success()


def test_a_current_folder_that_is_gone_is_no_bug(lab: "Lab") -> None:
    gone = lab.folder / "gone"
    done = in_shell(lab, f'mkdir {gone}; cd {gone}; rmdir {gone}; "$@"', "--workspace", str(lab.workspace))
    assert "Traceback" not in done.stderr
    if done.code == 0:
        lab.check_success()
    else:
        assert (done.code, done.stderr.splitlines()[-1][:10]) == (3, "ci-agent: ")


@pytest.mark.parametrize("files", [64, 32, 20, 16, 12, 9, 6])
def test_few_descriptors_are_enough_or_not_but_that_is_told(lab: "Lab", files: int) -> None:
    done = in_shell(lab, f'ulimit -n {files}; "$@"')
    assert "Traceback" not in done.stderr
    assert lab.orphans() == []
    if done.code == 0:
        lab.check_whole()
    else:
        assert files < 32, done.stderr
        assert done.code == 3, done.stderr


@pytest.mark.parametrize("blocks", [0, 1, 4, 8])
def test_a_file_that_may_not_grow_ends_the_run(lab: "Lab", blocks: int) -> None:
    """RLIMIT_FSIZE, in blocks of 1,024 bytes: a record of this task takes more."""
    done = in_shell(lab, f'ulimit -f {blocks}; "$@"')
    assert "Traceback" not in done.stderr
    assert (done.code, done.stderr.splitlines()[-1][:10]) == (3, "ci-agent: ")
    assert not lab.transcript.exists()
    assert lab.litter() == []
    if blocks > 1:
        lab.recovered()


def test_a_run_that_was_suspended_goes_on(lab: "Lab") -> None:
    (lab.workspace / "step.sh").write_text('touch "started-$1"; sleep 0.3; touch "done/$1"\n')
    with lab.start(lab.argv(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        _wait_until((lab.workspace / "started-one").exists, process)
        process.send_signal(signal.SIGSTOP)
        threading.Event().wait(1)
        process.send_signal(signal.SIGCONT)
        _, stderr = process.communicate(timeout=110)
    assert process.returncode == 0, stderr
    lab.check_success()


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
/* The wall clock jumps by an hour, there and back, each time that somebody looks at it. */
static long jump(void) { static long n; return (n++ % 2 ? 3600 : -3600); }
int clock_gettime(clockid_t clock, struct timespec *t) {
  int result = ((int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime"))(clock, t);
  if (clock == CLOCK_REALTIME) t->tv_sec += jump();
  return result;
}
time_t time(time_t *t) {
  time_t now = ((time_t (*)(time_t *))dlsym(RTLD_NEXT, "time"))(0) + jump();
  if (t) *t = now;
  return now;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  int result = ((int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday"))(t, zone);
  t->tv_sec += jump();
  return result;
}
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_a_wall_clock_that_jumps_moves_no_time_out_and_no_duration(lab: "Lab") -> None:
    library = lab.folder / "clock.so"
    build = ["cc", "-shared", "-fPIC", "-o", str(library), "-x", "c", "-", "-ldl"]
    subprocess.run(build, input=CLOCK, text=True, check=True, timeout=110)
    done = lab.run("--timeout", "60", "--tool-timeout", "30", env={"LD_PRELOAD": str(library)})
    assert done.code == 0, done.stderr
    lab.check_success()
    document = json.loads(lab.transcript.read_text())
    starts = [call["started_at"] for call in document["tool_calls"]]
    assert starts != sorted(starts), "the clock did not jump"
    durations = [document["run"]["duration_s"], *(call["duration_s"] for call in document["tool_calls"])]
    assert all(0 <= duration < 60 for duration in durations)


# What is full, read-only or no place for a record: refused before anything starts


@needs_dev_full
def test_a_transcript_that_is_a_full_device_is_refused_before_anything_starts(lab: "Lab") -> None:
    check_refused(lab.run("--transcript", "/dev/full"), r"the transcript '/dev/full' is a link or a device: .*")
    assert lab.effects() == set()


def _may_mount() -> bool:
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


def on_a_disk(lab: "Lab", options: str, then: str, *flags: str) -> "Ended":
    """Runs a line of shell with a small file system of its own as the record's folder, in which nobody else looks."""
    if shutil.which("unshare") is None or not _may_mount():
        pytest.skip("needs unshare, and a user who may mount for himself")
    mount = f"mount -t tmpfs -o {options} tmpfs {lab.out} || exit 99"
    argv = ["unshare", "-rm", "bash", "-c", f"{mount}\n{then}", "bash", *lab.argv(*flags)]
    done = lab.wait_for(argv)
    if done.code == 99:
        pytest.skip("this user may not mount a tmpfs")
    return done


def test_a_read_only_file_system_is_refused_before_anything_starts(lab: "Lab") -> None:
    done = on_a_disk(lab, "ro", '"$@"')
    check_refused(done, r"cannot open the run's journal '.*' for writing: Read-only file system")
    assert lab.effects() == set()


def test_a_full_disk_is_refused_before_anything_starts(lab: "Lab") -> None:
    done = on_a_disk(lab, "size=64k", f'cat /dev/zero > {lab.out}/full 2> /dev/null; "$@"')
    check_refused(done, r"the run's journal '.*' cannot be written: No space left on device")
    assert lab.effects() == set()


BIG = """
turns:
  - tool_calls: [{id: one, name: bash, arguments: {command: sh step.sh one}}]
  - tool_calls: [{id: two, name: read, arguments: {path: big.txt}}]
  - tool_calls: [{id: three, name: read, arguments: {path: big.txt}}]
  - tool_calls: [{id: four, name: write, arguments: {path: done/four, content: x}}]
  - text: Done.
"""


@pytest.mark.parametrize("size", ["12k", "16k", "24k", "32k", "48k", "64k", "80k"])
def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_was_written(lab: "Lab", size: str) -> None:
    lab.write_script(BIG)
    (lab.workspace / "big.txt").write_text(("y" * 99 + "\n") * 250)
    saved = lab.folder / "saved"
    done = on_a_disk(lab, f"size={size}", f'"$@"; code=$?; cp -r {lab.out} {saved}; exit $code')
    assert "Traceback" not in done.stderr
    if done.code == 6:  # the room that was set aside was enough to come to an end in order
        assert os.listdir(saved) == ["t.json"]
        assert verify(saved / "t.json") == []
        lab.check_effects(done.document)
        return
    assert (done.code, done.stdout) == (3, b""), done.stderr
    assert re.fullmatch(r"ci-agent: the .* cannot be written: .*", done.stderr.splitlines()[-1])
    assert os.listdir(saved) == ["t.json.journal"]
    document = json.loads(recover(saved / "t.json").read_text())
    lab.check_effects(document)


def test_a_full_disk_for_spilled_output_is_told_and_ends_nothing(lab: "Lab") -> None:
    lab.write_script("turns: [{tool_calls: [{id: one, name: bash, arguments: {command: sh big.sh}}]}, {text: Done.}]")
    (lab.workspace / "big.sh").write_text("head -c 300000 /dev/zero | tr '\\0' x\n")
    kept = lab.folder / "t.json"
    done = on_a_disk(lab, "size=64k", '"$@"', "--spill-dir", str(lab.out), "--transcript", str(kept))
    assert done.code == 0, done.stderr
    assert verify(kept) == []
    call = json.loads(kept.read_text())["tool_calls"][0]
    assert (call["status"], call["output_bytes"]) == ("ok", 300_000)
    assert call["details"]["output_file_problem"] == "No space left on device"


# Streams that take nothing


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
@pytest.mark.parametrize("output", ["json", "jsonl", "text"])
def test_without_stdin_or_stderr_nothing_is_lacking(lab: "Lab", closed: str, output: str) -> None:
    done = in_shell(lab, f'"$@" {closed}', "--output", output)
    assert done.code == 0
    lab.check_success()
    if output == "json":
        assert done.document == json.loads(lab.transcript.read_text())
    elif output == "text":
        assert done.stdout == b"Done.\n"
    else:
        assert all(json.loads(line)["seq"] for line in done.stdout.splitlines())


def test_without_stderr_no_message_goes_anywhere_else(lab: "Lab") -> None:
    done = in_shell(lab, '"$@" 2>&-', "--transcript", "/nonexistent/t.json")
    assert (done.code, done.stdout) == (3, b"")


FULL = pytest.param('"$@" > /dev/full', id="full", marks=needs_dev_full)
CLOSED = pytest.param('"$@" >&-', id="closed")
ALL_CLOSED = pytest.param('"$@" <&- >&- 2>&-', id="all-closed")
NO_READER = pytest.param('"$@" | true; exit ${PIPESTATUS[0]}', id="no-reader")
ONE_BYTE = pytest.param('"$@" | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}', id="one-byte")


@pytest.mark.parametrize("line", [FULL, CLOSED, ALL_CLOSED, NO_READER, ONE_BYTE])
@pytest.mark.parametrize("output", ["json", "jsonl", "text"])
def test_an_output_that_nobody_took_is_no_success_and_the_run_is_finished(lab: "Lab", line: str, output: str) -> None:
    text = "x" * 200_000  # more than a pipe holds, so that a reader who has gone is noticed
    lab.write_script((lab.folder / "script.yaml").read_text().replace("Done.", text))
    done = in_shell(lab, line, "--output", output)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.code == 1
    lab.check_whole(exit_code=1)
    lab.check_everything_was_done()
    assert result(lab)["reason"] == "completed"
    assert "stdout" in result(lab)["error"]


@needs_dev_full
@pytest.mark.parametrize("flags", [("--output", "json"), ("--verbose",)], ids=" ".join)
def test_a_log_that_nobody_takes_ends_nothing(lab: "Lab", flags: Sequence[str]) -> None:
    done = in_shell(lab, '"$@" 2> /dev/full', *flags)
    assert done.code == 0
    lab.check_success()


@needs_dev_full
def test_an_answer_that_cannot_be_written_is_no_success(lab: "Lab") -> None:
    done = lab.run("--answer-file", "/dev/full")
    assert "Traceback" not in done.stderr
    assert done.code == 1, done.stderr
    lab.check_whole(exit_code=1)
    assert result(lab)["error"] == "the answer file '/dev/full' cannot be written: No space left on device"
    assert done.document == json.loads(lab.transcript.read_text())


@pytest.mark.parametrize(
    "command", [["--help"], ["--version"], ["tools"], ["policy", "schema"], ["transcript", "schema"]]
)
@pytest.mark.parametrize("line", [FULL, NO_READER])
def test_other_commands_tell_that_nobody_took_their_output(lab: "Lab", line: str, command: Sequence[str]) -> None:
    if "true" in line:
        line = line.replace("| true", "| { exec <&-; sleep 0.2; }").replace('"$@"', '{ sleep 0.1; "$@"; }')
    done = lab.wait_for(["bash", "-c", line, "bash", *lab.argv()[:4], *command])
    assert (done.code, "Traceback" in done.stderr) == (1, False), done.stderr


def _wait_until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    while not holds():
        assert process.poll() is None, "the run ended early"
        pause.wait(0.01)
